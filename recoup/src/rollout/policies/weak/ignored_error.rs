//! Ignored error: makes a call that is refused, and makes it again as it was.

use super::{Moment, Style, has_just_failed};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// See the module.
pub(super) struct IgnoredError;

impl Style for IgnoredError {
    fn name(&self) -> &'static str {
        "ignored-error"
    }

    fn describe(&self) -> &'static str {
        "repeats a refused call unchanged"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        if let Some(last) = moment.situation.transcript.last().filter(|last| last.step.is_error) {
            return Ok(Some(last.action.clone()));
        }
        Ok(moment.with_invention())
    }

    fn hold(&self, situation: &Situation<'_>) -> f64 {
        if has_just_failed(situation) { 0.85 } else { 0.0 }
    }
}
