//! Loop: does the last two things again, and again.

use super::{Moment, Style};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// See the module.
pub(super) struct Loop;

impl Style for Loop {
    fn name(&self) -> &'static str {
        "loop"
    }

    fn describe(&self) -> &'static str {
        "does the last two things again and again"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        let [.., before, _] = moment.situation.transcript else { return Ok(None) };
        let is_call = matches!(before.action, Action::Call { .. });
        Ok(is_call.then(|| before.action.clone()))
    }

    fn hold(&self, situation: &Situation<'_>) -> f64 {
        let turns = matches!(situation.transcript, [.., before, _, last] if before.action == last.action);
        if turns { 0.9 } else { 0.0 }
    }
}
