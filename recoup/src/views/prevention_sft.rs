//! `prevention_sft`: the state before the decisive step, and the action that was executed there and passed.
//!
//! The example is the repair arm's first continuation: a run of its own, whose messages before the fork are
//! context. [`PreventionTarget`] says what is learned of it. A reflection is the reason that the admitted
//! diagnosis gave for its candidate; a candidate from elsewhere has none that the agent could have had.

use std::sync::Arc;

use super::input::is_learnable;
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
    let learned = |index: &usize| is_learnable(&turn.branch.run, &example.context[*index]);
    let learned: Vec<usize> = (0..example.context.len()).filter(learned).collect();
    example.segments = learned.iter().flat_map(|index| example.context[*index].segments(*index)).collect();
    example.context.truncate(learned.last().map_or(0, |last| last + 1));
    example
}

/// Why the candidate is right, in words that the gates admitted.
fn reflection(input: &ViewInput<'_>, fork: &Fork) -> Option<String> {
    input.admitted_diagnosis().ok()?;
    let is_tested = input.reviews.iter().any(|review| fork.pair.diagnosis == Some(review.of));
    let is_own = is_tested && fork.pair.proposed_by.as_deref() == Some(Proposer::Rules.as_str());
    fork.rationale.clone().filter(|reason| is_own && !reason.trim().is_empty())
}
