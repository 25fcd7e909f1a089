//! Malformed call: an argument is left out, of another type, or has a name that the tool does not know.

use serde_json::Value;

use super::{Moment, Style, has_just_failed};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// See the module.
pub(super) struct MalformedCall;

impl Style for MalformedCall {
    fn name(&self) -> &'static str {
        "malformed-call"
    }

    fn describe(&self) -> &'static str {
        "calls a tool with arguments that do not fit its schema"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        let Some(mut call) = moment.call() else { return Ok(None) };
        let names: Vec<String> = call.arguments.keys().cloned().collect();
        let Some(name) = moment.dice.choose(&names) else { return Ok(None) };
        let value = call.arguments.shift_remove(name).unwrap_or_default();
        match moment.dice.below(3) {
            0 => {}
            1 => drop(call.arguments.insert(name.clone(), Value::Array(vec![value]))),
            _ => drop(call.arguments.insert(format!("{name}_value"), value)),
        }
        Ok(call.into_action())
    }

    fn hold(&self, situation: &Situation<'_>) -> f64 {
        if has_just_failed(situation) { 0.6 } else { 0.0 }
    }

    fn takes_advice(&self) -> bool {
        false
    }
}
