//! `kto`: single turns, each wanted or not, without a counterpart.
//!
//! The labelled turns of failed runs ([`super::step_labels`]), each behind the messages before it; and
//! the repairs that passed, which are wanted.

use std::sync::Arc;

use super::step_labels::step_labels;
use super::turn::repaired;
use super::{Evidence, Example, Exclusion, Lineage, Message, Objective, View, ViewInput};

/// See the module.
pub struct Kto;

impl View for Kto {
    fn name(&self) -> &'static str {
        "kto"
    }

    fn objective(&self) -> Objective {
        Objective::Desirability
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let labels = step_labels(input);
        let repairs = repaired(input).unwrap_or_default();
        let mut examples = Vec::new();
        if let Ok(labels) = &labels {
            let context = Message::of_branch(input.run, &input.run.main_branch());
            let whole = input.example(self, context, Vec::new());
            let diagnosed = input.diagnosed_lineage(self);
            for (index, message) in whole.context.iter().enumerate() {
                let Some(label) = message.node.and_then(|node| labels.get(&node)) else { continue };
                let evidence = if label.is_replayed { Evidence::Replay } else { Evidence::Diagnosis };
                let lineage = Lineage { evidence, ..diagnosed.clone() };
                let segments = message.segments(index).collect();
                let context = whole.context[..=index].to_vec();
                let example = Example::new(context, Arc::clone(&whole.tools), segments, lineage);
                examples.push(Example { desirable: Some(label.correct), ..example });
            }
        }
        for (fork, turn) in &repairs {
            let example = turn.example(fork.lineage(self, turn, input));
            examples.push(Example { desirable: Some(true), ..example });
        }
        examples.retain(|example| !example.segments.is_empty());
        if examples.is_empty() {
            labels?;
            return Err(Exclusion::because("no-labelled-step"));
        }
        let objective = Objective::Desirability;
        Ok(examples.into_iter().map(|example| Example { objective, ..example }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fixture;
    use super::Kto;
    use crate::views::View;

    #[test]
    fn labelled_turns_and_the_repair_are_wanted_or_not() {
        let fixture = fixture();
        let examples = Kto.build(&fixture.input()).unwrap();
        let seen: Vec<(usize, Option<bool>)> =
            examples.iter().map(|example| (example.context.len(), example.desirable)).collect();
        assert_eq!(seen, [(2, Some(true)), (4, Some(false)), (4, Some(true))]);
        assert!(examples.iter().all(|example| example.learns_all_of(example.context.len() - 1)));
        assert_eq!(examples[1].context[3].node, Some(3));
        assert_ne!(examples[1].lineage.trajectory, examples[2].lineage.trajectory);
    }
}
