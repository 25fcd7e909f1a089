//! Hallucinated tool: calls a tool that nobody offers, and again when told so.

use super::{Moment, Style};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// How names of tools are continued that do not exist.
const ENDINGS: &[&str] = &["_all", "_now", "_by_name", "_info"];

/// See the module.
pub(super) struct HallucinatedTool;

impl Style for HallucinatedTool {
    fn name(&self) -> &'static str {
        "hallucinated-tool"
    }

    fn describe(&self) -> &'static str {
        "calls a tool that is not offered"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        let Action::Call { tool, arguments } = moment.expert else { return Ok(None) };
        let Some(ending) = moment.dice.choose(ENDINGS) else { return Ok(None) };
        let name = format!("{tool}{ending}");
        let is_free = !moment.situation.tools.iter().any(|known| known.name == name);
        Ok(is_free.then(|| Action::call(name, arguments.clone())))
    }

    fn hold(&self, situation: &Situation<'_>) -> f64 {
        let unknown = |action: &Action| {
            matches!(action, Action::Call { tool, .. }
            if !situation.tools.iter().any(|known| known.name == **tool))
        };
        if situation.transcript.last().is_some_and(|last| unknown(&last.action)) { 0.6 } else { 0.0 }
    }

    fn takes_advice(&self) -> bool {
        false
    }
}
