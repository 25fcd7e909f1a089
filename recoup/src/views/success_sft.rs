//! `success_sft`: successful runs, every turn that the policy sampled.

use super::{Example, Exclusion, Message, View, ViewInput, is_learnable};
use crate::trajectory::Status;

/// See the module.
pub struct SuccessSft;

impl View for SuccessSft {
    fn name(&self) -> &'static str {
        "success_sft"
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        match input.run.outcome().status {
            Status::Success => {}
            Status::Failure => return Err(Exclusion::because("failed")),
            Status::Unknown => return Err(Exclusion::because("outcome-unknown")),
        }
        input.for_training()?;
        let branch = input.run.main_branch();
        let mut context = Message::of_branch(&branch);
        let learned: Vec<usize> = branch
            .nodes()
            .enumerate()
            .filter(|(_, (_, node))| is_learnable(node))
            .map(|(index, _)| index)
            .collect();
        let Some(last) = learned.last() else { return Err(Exclusion::because("no-sampled-turn")) };
        context.truncate(last + 1);
        let segments = learned
            .iter()
            .filter_map(|index| Some((context[*index].node?, &context[*index])))
            .flat_map(|(node, message)| message.segments(node))
            .collect();
        Ok(vec![Example::new(context, segments, input.lineage(self))])
    }
}
