//! `success_sft`: successful runs, every turn that the policy sampled.

use super::{Example, Exclusion, Message, Objective, View, ViewInput};
use crate::trajectory::Status;

/// See the module.
pub struct SuccessSft;

impl View for SuccessSft {
    fn name(&self) -> &'static str {
        "success_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn learns_whole_runs(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        match input.run.outcome().status {
            Status::Success => {}
            Status::Failure => return Err(Exclusion::because("failed")),
            Status::Unknown => return Err(Exclusion::because("outcome-unknown")),
        }
        input.for_training()?;
        let mut context = Message::of_branch(input.run, &input.run.main_branch());
        let learned: Vec<usize> =
            (0..context.len()).filter(|index| input.is_learnable(&context[*index])).collect();
        let Some(last) = learned.last() else { return Err(Exclusion::because("no-sampled-turn")) };
        context.truncate(last + 1);
        let segments = learned.iter().flat_map(|index| context[*index].segments(*index)).collect();
        Ok(vec![input.example(self, context, segments)])
    }
}
