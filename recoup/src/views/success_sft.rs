//! `success_sft`: successful runs, every turn that the policy sampled.

use super::input::learn;
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
        Self::demonstration(self, input).map(|example| vec![example])
    }
}

impl SuccessSft {
    /// A successful run as an example of a view.
    pub(super) fn demonstration(view: &dyn View, input: &ViewInput<'_>) -> Result<Example, Exclusion> {
        match input.run.outcome().status {
            Status::Success => {}
            Status::Failure => return Err(Exclusion::because("failed")),
            Status::Unknown => return Err(Exclusion::because("outcome-unknown")),
        }
        input.for_training()?;
        let mut context = Message::of_branch(input.run, &input.run.main_branch());
        let segments = learn(&mut context, |message| input.is_learnable(message))
            .ok_or(Exclusion::because("no-sampled-turn"))?;
        Ok(input.example(view, context, segments))
    }
}
