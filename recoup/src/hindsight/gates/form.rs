//! `form`: a request in plain text, neither a word nor an essay.

use super::{Gate, Ground};
use crate::hindsight::proposal::{Proposal, Source};

/// See the module.
pub(super) struct Form;

/// Fewest and most bytes of a goal.
const BYTES: std::ops::RangeInclusive<usize> = 12..=4_000;
/// Most bytes of a goal that a model writes.
const MODEL_BYTES_MAX: usize = 600;

impl Gate for Form {
    fn name(&self) -> &'static str {
        "form"
    }

    fn check(&self, proposal: &Proposal, _: &Ground<'_>) -> Result<(), String> {
        let goal = &proposal.goal;
        let is_models = proposal.source == Source::Model;
        if !BYTES.contains(&goal.trim().len()) || (is_models && goal.len() > MODEL_BYTES_MAX) {
            return Err(format!("the goal has {} bytes", goal.len()));
        }
        if goal.chars().any(|c| c.is_control() && (c != '\n' || is_models)) {
            return Err("the goal holds control characters".to_owned());
        }
        Ok(())
    }
}
