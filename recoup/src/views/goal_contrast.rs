//! `goal_contrast`: the same actions under the goal that they reached and under the one they missed.
//!
//! The two halves share their actions and differ in what was asked, so this is no ordinary preference: its loss is
//! `−w·log σ(β[(log π(τ∣ĝ) − log π_ref(τ∣ĝ)) − (log π(τ∣g) − log π_ref(τ∣g))])`, and formats of preferences refuse it.

use super::hindsight_sft::Relabeled;
use super::{Example, Exclusion, Objective, View, ViewInput};

/// See the module.
pub struct GoalContrast;

impl View for GoalContrast {
    fn name(&self) -> &'static str {
        "goal_contrast"
    }

    fn objective(&self) -> Objective {
        Objective::GoalContrast
    }

    fn is_on_request(&self) -> bool {
        true
    }

    fn build(&self, input: &ViewInput<'_>) -> Result<Vec<Example>, Exclusion> {
        let relabeled = Relabeled::of(input)?;
        // An answer that was composed for the new goal is no action of the run.
        let settings = super::ViewSettings { synthetic_answers: false, ..input.settings.clone() };
        let input = &ViewInput { settings: &settings, ..*input };
        let reached = relabeled.example(self, input, &relabeled.relabel().goal)?;
        let missed = relabeled.example(self, input, &input.run.task.goal)?;
        Ok(Example::paired(reached, missed, Objective::GoalContrast).into())
    }
}
