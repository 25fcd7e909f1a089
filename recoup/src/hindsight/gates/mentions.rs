//! `mentions`: a goal does not speak of the original goal, of failure or of its own making.
//!
//! What stands in a claim is quoted from the run, so a ticket named `Login error` may be named.

use super::{Gate, Ground, outside_claims};
use crate::hindsight::proposal::{Proposal, Source};
use crate::hindsight::tokens::{stem, words};

/// See the module.
pub(super) struct Mentions;

/// Stems that no user's request has about itself.
const STEMS: &[&str] = &[
    "fail",
    "failur",
    "unsuccessful",
    "unsuccessfully",
    "mistak",
    "wrong",
    "incorrect",
    "error",
    "instead",
    "original",
    "originally",
    "relabel",
    "hindsight",
    "trajectory",
    "transcript",
    "attempt",
    "previou",
    "retry",
    "alternativ",
    "despit",
    "unabl",
    "cannot",
    "agent",
    "goal",
    "incomplet",
    "impossibl",
    "abandon",
    "unfortunately",
    "sorry",
];

/// The first word of a text that no request has.
pub(in crate::hindsight) fn mention(text: &str) -> Option<String> {
    words(text).find(|word| STEMS.contains(&stem(word).as_str()) || STEMS.contains(&word.as_str()))
}

impl Gate for Mentions {
    fn name(&self) -> &'static str {
        "mentions"
    }

    fn check(&self, proposal: &Proposal, _: &Ground<'_>) -> Result<(), String> {
        // The environment's own goals are sentences of its own.
        if proposal.source == Source::Environment {
            return Ok(());
        }
        mention(&outside_claims(proposal)).map_or(Ok(()), |word| Err(format!("the goal speaks of `{word}`")))
    }
}
