//! Detectors: one file a fault, or a pair of faults that are told apart by one look.
//!
//! Adding one is a file here and a line in [`DETECTORS`]. Messages are written for a reader who has only
//! the run: they name no other run and quote nothing that does not stand in it (gate S9).

mod admission;
mod answer;
mod arguments;
mod claims;
mod contrast;
mod doings;
mod ending;
mod errors;
mod fence;
mod lookup;
mod repetition;
mod submission;
mod ungrounded;
mod unknown_tool;
mod verification;

pub(super) use self::ending::closing_turn;
use super::{Detector, FINDINGS_MAX, Run, finding};
use crate::trajectory::Citation;

/// Every detector, in the order of the report.
pub const DETECTORS: &[&dyn Detector] = &[
    &unknown_tool::UnknownTool,
    &arguments::SchemaViolation,
    &arguments::UnparsableArguments,
    &ungrounded::UngroundedArgument,
    &repetition::RepeatedCall,
    &repetition::Loop,
    &errors::UnaddressedError,
    &errors::IgnoredError,
    &answer::UnsupportedAnswer,
    &claims::ClaimedAction,
    &admission::AdmittedMistake,
    &lookup::MutationWithoutLookup,
    &contrast::WrongOrder,
    &contrast::DeviatingMutation,
    &verification::UnverifiedMutation,
    &submission::MissingSubmission,
    &ending::PrematureStop,
    &ending::LimitReached,
    &fence::BrokenFence,
];

/// Longest quotation in a message, in bytes.
const QUOTED_MAX: usize = 120;

/// A piece of the run's text in quotation marks: one line, cut at the first mark that would end the
/// quotation early.
fn quoted(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let line = line.split(['"', '`', '“', '”']).find(|piece| !piece.trim().is_empty()).unwrap_or_default();
    let cut = &line[..line.floor_char_boundary(QUOTED_MAX)];
    // A word cut in two would be a word that nobody wrote.
    let whole = if cut.len() < line.len() { cut.rfind(' ').map_or(cut, |space| &cut[..space]) } else { cut };
    format!("\"{}\"", whole.trim())
}

/// The cited bytes in quotation marks.
fn quoted_at(run: &Run<'_>, citation: &Citation) -> String {
    quoted(citation.quote(run.trajectory).unwrap_or_default())
}
