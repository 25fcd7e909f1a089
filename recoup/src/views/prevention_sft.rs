//! `prevention_sft`: the state before the decisive step, and the action that was executed there and passed.
//!
//! The example is the repair arm's first continuation: a run of its own, whose messages before the fork are
//! context. [`PreventionTarget`] says what is learned of it. A reflection is the reason that the admitted
//! diagnosis gave for its candidate; a candidate from elsewhere has none that the agent could have had.

use std::sync::Arc;

use super::input::{is_learnable, learn};
use super::turn::{Turn, repaired};
use super::{Example, Exclusion, Fork, Message, Objective, PreventionTarget, View, ViewInput};
use crate::replay::Proposer;
use crate::trajectory::Part;

/// See the module.
pub struct PreventionSft;

impl View for PreventionSft {
    fn name(&self) -> &'static str {
        "prevention_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let examples: Vec<Example> = repaired(input)?
            .iter()
            .filter_map(|(fork, turn)| {
                let lineage = fork.lineage(self, turn, input);
                match input.settings.prevention_target {
                    PreventionTarget::Action => Some(turn.example(lineage)),
                    PreventionTarget::Continuation => {
                        let action = turn.example(lineage);
                        Some(continued(turn, action))
                    }
                    PreventionTarget::ReflectionAndAction => {
                        let reason = reflection(input, fork)?;
                        let parts = [vec![Part::text(reason)], turn.message.parts.clone()].concat();
                        let message = Message::written(turn.message.role, &turn.message.agent, parts);
                        let turn = Turn {
                            message: Arc::new(message),
                            state: turn.state.clone(),
                            rest: Vec::new(),
                            ..*turn
                        };
                        Some(turn.example(lineage))
                    }
                }
            })
            .collect();
        if examples.is_empty() { Err(Exclusion::because("no-reflection")) } else { Ok(examples) }
    }
}

/// The same with every later turn of the policy, to the end.
fn continued(turn: &Turn<'_>, mut example: Example) -> Example {
    example.context.extend(turn.rest.iter().cloned());
    let learned = learn(&mut example.context, |message| is_learnable(&turn.branch.run, message));
    example.segments = learned.unwrap_or_default();
    example
}

/// Why the candidate is right, in words that the gates admitted.
fn reflection(input: &ViewInput<'_>, fork: &Fork) -> Option<String> {
    input.admitted_diagnosis().ok()?;
    let is_tested = input.reviews.iter().any(|review| fork.pair.diagnosis == Some(review.of));
    let is_own = is_tested && fork.pair.proposed_by.as_deref() == Some(Proposer::Rules.as_str());
    fork.rationale.clone().filter(|reason| is_own && !reason.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fixture;
    use super::PreventionSft;
    use crate::views::{Evidence, PreventionTarget, View};

    #[test]
    fn the_repair_is_learned_and_the_state_before_it_is_context() {
        let fixture = fixture();
        let examples = PreventionSft.build(&fixture.input()).unwrap();
        let [example] = examples.as_slice() else { panic!("one example") };
        assert_eq!(example.context.len(), 4);
        assert!(example.learns_all_of(3) && example.segments.len() == 1);
        assert_eq!(example.context[3].parts[0].cited_text(), Some(r#"{"id":"A1"}"#));
        let lineage = &example.lineage;
        assert_eq!((lineage.evidence, lineage.origin), (Evidence::Replay, Some(fixture.run.id)));
        assert_eq!(lineage.verdicts, [fixture.forks[0].repair.unwrap(), fixture.forks[0].id]);
    }

    #[test]
    fn the_target_is_a_setting() {
        let mut fixture = fixture();
        fixture.settings.prevention_target = PreventionTarget::Continuation;
        let example = PreventionSft.build(&fixture.input()).unwrap().remove(0);
        let learned: Vec<usize> = example.segments.iter().map(|segment| segment.message).collect();
        assert_eq!((learned, example.context.len()), (vec![3, 5], 6));
        fixture.settings.prevention_target = PreventionTarget::ReflectionAndAction;
        let example = PreventionSft.build(&fixture.input()).unwrap().remove(0);
        let said = &example.context[3];
        assert_eq!(said.parts[0].cited_text(), fixture.forks[0].rationale.as_deref());
        assert_eq!((said.parts.len(), said.node, example.segments.len()), (2, None, 2));
        fixture.forks[0].pair.proposed_by = Some("sibling".to_owned());
        assert_eq!(PreventionSft.build(&fixture.input()).unwrap_err().reason, "no-reflection");
    }

    #[test]
    fn a_candidate_without_a_verdict_is_no_repair() {
        let mut fixture = fixture();
        fixture.forks[0].repair = None;
        assert_eq!(PreventionSft.build(&fixture.input()).unwrap_err().reason, "no-passing-repair");
        fixture.forks.clear();
        assert_eq!(PreventionSft.build(&fixture.input()).unwrap_err().reason, "not-replayed");
    }
}
