//! False claim: says that it made the change that it was about to make.

use serde_json::Value;

use super::claim::claim;
use super::{Moment, Style, only_looks};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// See the module.
pub(super) struct FalseClaim;

impl Style for FalseClaim {
    fn name(&self) -> &'static str {
        "false-claim"
    }

    fn describe(&self) -> &'static str {
        "says that it made a change which it did not make"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        if moment.situation.turn == 0 || only_looks(moment.situation, moment.expert) {
            return Ok(None);
        }
        Ok(moment.call().map(|call| {
            let about = call.arguments.values().find_map(Value::as_str);
            Action::say(claim(&call.tool.name, about))
        }))
    }

    /// Having said so, it goes on as if it were so.
    fn hold(&self, situation: &Situation<'_>) -> f64 {
        let said = |action: &Action| matches!(action, Action::Say(text) if text.starts_with("I have "));
        if situation.transcript.last().is_some_and(|last| said(&last.action)) { 0.9 } else { 0.0 }
    }
}
