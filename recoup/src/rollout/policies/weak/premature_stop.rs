//! Premature stop: says that all is done while it is not.

use super::{Moment, Style};
use crate::environments::{Action, EnvironmentError};
use crate::rollout::Situation;

/// What it says.
const WORDS: &[&str] = &[
    "Everything you asked for has been taken care of.",
    "That is all done.",
    "I am finished here. Is there anything else?",
];

/// See the module.
pub(super) struct PrematureStop;

impl Style for PrematureStop {
    fn name(&self) -> &'static str {
        "premature-stop"
    }

    fn describe(&self) -> &'static str {
        "says that all is done while it is not"
    }

    fn lapse(&self, moment: &mut Moment<'_>) -> Result<Option<Action>, EnvironmentError> {
        let has_begun = moment.situation.turn > 0 && !matches!(moment.expert, Action::Say(_));
        Ok(moment.dice.choose(WORDS).filter(|_| has_begun).map(|words| Action::say(*words)))
    }

    /// Having said so, it stays with it.
    fn hold(&self, situation: &Situation<'_>) -> f64 {
        let said = |action: &Action| matches!(action, Action::Say(text) if WORDS.contains(&&**text));
        if situation.transcript.last().is_some_and(|last| said(&last.action)) { 0.9 } else { 0.0 }
    }
}
