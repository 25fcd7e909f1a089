//! `process_reward`: a failed run with a label on each turn of which something can be said
//! ([`super::step_labels`]), for a model of process rewards. No byte of it is imitated.

use super::step_labels::step_labels;
use super::{Evidence, Example, Exclusion, Lineage, Message, Objective, StepLabel, View, ViewInput};

/// See the module.
pub struct ProcessReward;

impl View for ProcessReward {
    fn name(&self) -> &'static str {
        "process_reward"
    }

    fn objective(&self) -> Objective {
        Objective::StepRewards
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let labels = step_labels(input)?;
        let mut context = Message::of_branch(input.run, &input.run.main_branch());
        let step_labels: Vec<StepLabel> = context
            .iter()
            .enumerate()
            .filter_map(|(index, message)| {
                let label = labels.get(&message.node?)?;
                Some(StepLabel { message: index, correct: label.correct, value: label.value })
            })
            .collect();
        let last = step_labels.last().ok_or(Exclusion::because("no-labelled-step"))?;
        context.truncate(last.message + 1);
        let is_replayed = labels.values().any(|label| label.is_replayed || label.value.is_some());
        let evidence = if is_replayed { Evidence::Replay } else { Evidence::Diagnosis };
        let lineage = Lineage { evidence, ..input.diagnosed_lineage(self) };
        let example = input.example(self, context, Vec::new());
        Ok(vec![Example { step_labels, lineage, ..example }])
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::fixture;
    use super::ProcessReward;
    use crate::views::{StepLabel, View};

    #[test]
    fn labelled_turns_are_labels_and_nothing_is_imitated() {
        let fixture = fixture();
        let examples = ProcessReward.build(&fixture.input()).unwrap();
        let [example] = examples.as_slice() else { panic!("one example") };
        assert!(example.segments.is_empty());
        assert_eq!(example.context.len(), 4);
        let right = StepLabel { message: 1, correct: true, value: None };
        assert_eq!(example.step_labels, [right, StepLabel { message: 3, correct: false, value: Some(0.0) }]);
    }
}
