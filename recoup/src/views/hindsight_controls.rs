//! Controls of hindsight: the same runs, cut alike and weighted alike, under another goal than the one they achieved.
//!
//! * `failure_sft` leaves the original goal, which they missed (`SFT-random`).
//! * `shuffled_sft` gives each the goal that a run of another task achieved.
//!
//! A gain of `hindsight_sft` counts as one of relabeling only beside what these two reach.

use super::hindsight_sft::Relabeled;
use super::{Example, Exclusion, Objective, View, ViewInput};

/// The runs under the goal that they missed.
pub struct FailureSft;

/// The runs under goals of other runs.
pub struct ShuffledSft;

impl View for FailureSft {
    fn name(&self) -> &'static str {
        "failure_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        Relabeled::of(input)?.example(self, input, &input.run.task.goal).map(|example| vec![example])
    }
}

impl View for ShuffledSft {
    fn name(&self) -> &'static str {
        "shuffled_sft"
    }

    fn objective(&self) -> Objective {
        Objective::TokenSum
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let relabeled = Relabeled::of(input)?;
        let goal = input.relabels.shuffled.ok_or(Exclusion::because("no-goal-of-another-task"))?;
        relabeled.example(self, input, goal).map(|example| vec![example])
    }
}
