//! Lost state: does again what it has done, or asks again what it was told.

use super::{Moment, Style};
use crate::environments::{Action, EnvironmentError};

/// See the module.
pub(super) struct LostState;

impl Style for LostState {
    fn name(&self) -> &'static str {
        "lost-state"
    }

    fn describe(&self) -> &'static str {
        "repeats a change that it made, or a look-up whose answer it had"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        let done: Vec<&Action> = moment
            .situation
            .transcript
            .iter()
            .filter(|exchange| !exchange.step.is_error && exchange.action != *moment.expert)
            .map(|exchange| &exchange.action)
            .filter(|action| matches!(action, Action::Call { .. }))
            .collect();
        Ok(moment.dice.choose(&done).map(|action| (*action).clone()))
    }

    fn takes_advice(&self) -> bool {
        false
    }
}
