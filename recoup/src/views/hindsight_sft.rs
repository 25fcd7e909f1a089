//! `hindsight_sft`: failed runs under a goal that they did achieve.
//!
//! The run is cut after the step that completed the goal; the goal stands where the original one stood. Every
//! turn of the policy up to there is learned with `loss_weight × (c₁ + c₂)/2`, but for calls that failed and for
//! words that speak of the original goal. The run's own last words are learned where they satisfy the goal. One
//! composed of facts is left out, which is the same as masking it since nothing follows it, unless
//! [`super::ViewSettings::synthetic_answers`] asks for it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Evidence, Example, Exclusion, Lineage, Message, Objective, Segment, View, ViewInput};
use crate::hindsight::echoes;
use crate::hindsight::episode::{Act, Episode};
use crate::trajectory::{Part, Role};
use crate::verdict::{self, Acceptance, FinalAnswer};

/// See the module.
pub struct HindsightSft;

impl View for HindsightSft {
    fn name(&self) -> &'static str {
        "hindsight_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn is_weighted(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let relabeled = Relabeled::of(input)?;
        let composed = input.settings.synthetic_answers;
        relabeled.example(self, input, relabeled.goal, composed).map(|example| vec![example])
    }
}

/// A run with the goal that it achieved.
pub(super) struct Relabeled<'a> {
    pub(super) goal: &'a str,
    acceptance: &'a Acceptance,
    weight: f64,
}

impl<'a> Relabeled<'a> {
    /// # Errors
    /// Where a run has no such goal, or none that may be learned under.
    pub(super) fn of(input: &ViewInput<'a>) -> Result<Self, Exclusion> {
        input.agents_failure()?;
        let (_, relabel) = input.relabels.accepted.ok_or(Exclusion::because("no-achieved-goal"))?;
        let acceptance = relabel.accepted.as_ref().ok_or(Exclusion::because("no-achieved-goal"))?;
        if acceptance.evidence == verdict::Evidence::OneJudge && !input.settings.one_judge {
            return Err(Exclusion::because("one-judge-alone"));
        }
        let weight = input.class.map_or(0.0, |class| class.loss_weight) * relabel.confidence();
        if weight <= 0.0 {
            return Err(Exclusion::because("weight-zero"));
        }
        Ok(Self { goal: &relabel.goal, acceptance, weight })
    }

    /// The cut run under a goal, with the answer composed for it where that is asked for.
    pub(super) fn example(
        &self,
        view: &dyn View,
        input: &ViewInput<'_>,
        goal: &str,
        with_composed_answer: bool,
    ) -> Result<Example, Exclusion> {
        let mut context = self.cut(input)?;
        let original = &input.run.task.goal;
        place(&mut context, original, goal)?;
        let failed = failed_calls(input);
        let mut segments = Vec::new();
        for (index, message) in context.iter().enumerate() {
            let is_failed = message.node.is_some_and(|node| failed.contains(&node));
            if !input.is_learnable(message) || is_failed {
                continue;
            }
            let own = message.segments(index).filter(|segment| {
                let part = segment.part_path.first().and_then(|part| message.parts.get(*part));
                part.is_some_and(|part| match part {
                    Part::Text(_) | Part::Reasoning { .. } => {
                        part.cited_text().is_some_and(|text| !echoes(text, original, self.goal))
                    }
                    _ => true,
                })
            });
            segments.extend(own.map(|segment| Segment { weight: self.weight, ..segment }));
        }
        if with_composed_answer && let FinalAnswer::Composed { text } = &self.acceptance.answer {
            let agent = context.iter().rev().find(|message| message.role == Role::Assistant);
            let agent = agent.map_or("assistant", |message| message.agent.as_str()).to_owned();
            let end = text.len();
            context.push(Arc::new(Message::written(Role::Assistant, &agent, vec![Part::text(text.clone())])));
            let message = context.len() - 1;
            segments.push(Segment { message, part_path: vec![0], start: 0, end, weight: self.weight });
        }
        // What comes after the last thing learned would only be read.
        let last = segments.iter().map(|segment| segment.message).max();
        let last = last.ok_or(Exclusion::because("nothing-to-learn"))?;
        context.truncate(last + 1);
        let lineage = Lineage {
            evidence: Evidence::Hindsight,
            verdicts: input.relabels.accepted.iter().map(|(id, _)| *id).collect(),
            gates: vec![self.acceptance.evidence.as_str().to_owned()],
            ..input.lineage(view)
        };
        Ok(Example { lineage, ..input.example(view, context, segments) })
    }

    /// The messages up to the cut, and the run's own answer behind them where it is kept.
    fn cut(&self, input: &ViewInput<'_>) -> Result<Vec<Arc<Message>>, Exclusion> {
        let mut context = Message::of_branch(input.run, &input.run.main_branch());
        let end = match self.acceptance.answer {
            FinalAnswer::Kept { node } => node,
            FinalAnswer::Composed { .. } => self.acceptance.cut_node,
        };
        let at = context.iter().position(|message| message.node == Some(end));
        context.truncate(at.ok_or(Exclusion::because("cut-on-another-branch"))? + 1);
        Ok(context)
    }
}

/// Puts a goal in the place of the original one wherever the user's first message states that, else in the place of
/// its first text.
///
/// # Errors
/// Where no user's message can hold it, or another message repeats the original one.
fn place(context: &mut [Arc<Message>], original: &str, goal: &str) -> Result<(), Exclusion> {
    let at = context.iter().position(|message| message.role == Role::User);
    let at = at.ok_or(Exclusion::because("no-message-states-the-goal"))?;
    let mut parts = context[at].parts.clone();
    let holds =
        |part: &Part| part.as_text().is_some_and(|text| !original.is_empty() && text.contains(original));
    if parts.iter().any(holds) {
        // What the run opened with may repeat its goal.
        for part in parts.iter_mut().filter(|part| holds(part)) {
            *part = Part::text(part.as_text().unwrap_or_default().replace(original, goal));
        }
    } else {
        let place = parts.iter().position(|part| part.as_text().is_some());
        let place = place.ok_or(Exclusion::because("no-message-states-the-goal"))?;
        parts[place] = Part::text(goal);
    }
    context[at] = Arc::new(Message { node: None, parts, ..(*context[at]).clone() });
    let repeats = |message: &&Arc<Message>| message.parts.iter().any(holds);
    if original.len() > 20 && original != goal && context.iter().find(repeats).is_some() {
        return Err(Exclusion::because("original-goal-repeated"));
    }
    Ok(())
}

/// Messages whose every call failed.
fn failed_calls(input: &ViewInput<'_>) -> BTreeSet<usize> {
    let episode = Episode::read(input.run);
    let (mut failed, mut succeeded) = (BTreeSet::new(), BTreeSet::new());
    for call in episode.exchanges.iter().filter(|exchange| matches!(exchange.act, Act::Call { .. })) {
        if call.success().is_some() {
            succeeded.insert(call.node);
        } else if call.shown.is_some() {
            failed.insert(call.node);
        }
    }
    &failed - &succeeded
}

#[cfg(test)]
mod tests {
    use super::HindsightSft;
    use crate::verdict::{Evidence, FinalAnswer};
    use crate::views::fixture::{Fixture, achieved, class, fixture};
    use crate::views::{self, Example, Exclusion, Relabels, View, ViewInput};

    fn built(fixture: &Fixture, evidence: Evidence, answer: FinalAnswer) -> Result<Vec<Example>, Exclusion> {
        let (goal, class) = (achieved(evidence, answer), class());
        let relabels = Relabels { accepted: Some(&goal), shuffled: None };
        HindsightSft.build(&ViewInput { class: Some(&class), relabels, ..fixture.input() })
    }

    fn composed() -> FinalAnswer {
        FinalAnswer::Composed { text: "A1 is open.".to_owned() }
    }

    #[test]
    fn the_run_is_cut_where_the_goal_was_completed() {
        let examples = built(&fixture(), Evidence::TwoJudges, composed()).unwrap();
        let [example] = examples.as_slice() else { panic!("one example") };
        assert_eq!(example.context[0].parts[0].cited_text(), Some("Is order A1 open?"));
        // The answer made of facts is not learned, so what was shown before it need not be read.
        assert_eq!(example.context.len(), 2);
        assert!(!example.segments.is_empty());
        for segment in &example.segments {
            assert_eq!(segment.message, 1);
            assert!((segment.weight - 0.4 * 0.9).abs() < 1e-9, "{}", segment.weight);
        }
        assert_eq!(example.lineage.evidence, views::Evidence::Hindsight);
        assert_eq!(example.lineage.gates, ["two_judges"]);
    }

    #[test]
    fn an_own_answer_is_learned_and_a_failed_call_before_it_is_not() {
        let kept = built(&fixture(), Evidence::Rules, FinalAnswer::Kept { node: 5 }).unwrap().remove(0);
        let learned: Vec<usize> = kept.segments.iter().map(|segment| segment.message).collect();
        assert_eq!((kept.context.len(), learned), (6, vec![1, 5]));
    }

    #[test]
    fn a_composed_answer_is_learned_only_where_asked_for() {
        let mut fixture = fixture();
        fixture.settings.synthetic_answers = true;
        let example = built(&fixture, Evidence::Rules, composed()).unwrap().remove(0);
        let learned: Vec<usize> = example.segments.iter().map(|segment| segment.message).collect();
        assert_eq!((example.context.len(), learned), (4, vec![1, 3]));
        assert_eq!(example.context[3].parts[0].cited_text(), Some("A1 is open."));
        assert_eq!(example.context[3].node, None);
    }

    #[test]
    fn one_judge_is_not_enough_unless_asked_for() {
        let mut fixture = fixture();
        let refused = built(&fixture, Evidence::OneJudge, composed()).unwrap_err();
        assert_eq!(refused.reason, "one-judge-alone");
        fixture.settings.one_judge = true;
        assert_eq!(built(&fixture, Evidence::OneJudge, composed()).unwrap().len(), 1);
    }

    #[test]
    fn a_goal_that_stands_in_another_message_too_is_refused() {
        let mut fixture = fixture();
        "Please cancel the garden hose order.".clone_into(&mut fixture.run.task.goal);
        let text = "Please cancel the garden hose order. It is A1.";
        fixture.run.nodes[0].parts = vec![crate::trajectory::Part::text(text)];
        let example = built(&fixture, Evidence::Rules, composed()).unwrap().remove(0);
        assert_eq!(example.context[0].parts[0].cited_text(), Some("Is order A1 open? It is A1."));
        fixture.run.nodes[2].parts = vec![crate::trajectory::Part::text(text)];
        assert_eq!(
            built(&fixture, Evidence::Rules, composed()).unwrap_err().reason,
            "original-goal-repeated"
        );
    }
}
