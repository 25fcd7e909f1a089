//! Missed step: does what comes after the next step, as if that were done.

use super::{Moment, Style, has_just_failed};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// See the module.
pub(super) struct SkipStep;

impl Style for SkipStep {
    fn name(&self) -> &'static str {
        "skip-step"
    }

    fn describe(&self) -> &'static str {
        "leaves a step out: does what would come after it"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        if matches!(moment.expert, Action::Say(_)) {
            return Ok(None);
        }
        let next = moment.scene.expert_after(moment.expert)?;
        Ok(next.filter(|next| next != moment.expert))
    }

    /// It takes a refusal for something else than the step it left out.
    fn hold(&self, situation: &Situation<'_>) -> f64 {
        if has_just_failed(situation) { 0.7 } else { 0.0 }
    }
}
