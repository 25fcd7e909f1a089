//! Budget overrun: looks around, here and there and once more, until the budget is gone.

use super::super::random;
use super::{Moment, Style, only_looks};
use crate::environments::{Action, EnvironmentError, ToolSpec};
use crate::rollout::Situation;

/// See the module.
pub(super) struct BudgetOverrun;

impl Style for BudgetOverrun {
    fn name(&self) -> &'static str {
        "budget-overrun"
    }

    fn describe(&self) -> &'static str {
        "dithers: looks at what it has seen, and at anything else"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        let situation = moment.situation;
        let looks: Vec<&Action> = situation
            .transcript
            .iter()
            .map(|exchange| &exchange.action)
            .filter(|action| only_looks(situation, action))
            .collect();
        if !looks.is_empty() && moment.dice.below(2) == 0 {
            return Ok(moment.dice.choose(&looks).map(|action| (*action).clone()));
        }
        let tools: Vec<&ToolSpec> = situation.tools.iter().filter(|tool| tool.only_looks()).collect();
        let dice = &mut moment.dice;
        Ok(dice.choose(&tools).map(|tool| random::call(tool, situation, dice)))
    }

    /// A second look at the same thing is rarely the last.
    fn hold(&self, situation: &Situation<'_>) -> f64 {
        let Some((last, before)) = situation.transcript.split_last() else { return 0.0 };
        let again = before.iter().any(|exchange| exchange.action == last.action);
        if again && only_looks(situation, &last.action) { 0.85 } else { 0.0 }
    }
}
