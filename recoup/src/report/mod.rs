//! The failure report: what failed, whose fault it was, where, what may be learned, what to do next.
//!
//! ```text
//! ReportInput ── summarize ──▶ Report ──┬─ html      one self-contained page
//!   (plain rows, redacted)              ├─ markdown  the same for a terminal or an issue
//!                                       └─ json      the same for a program
//! ```
//!
//! Every count is made once, in [`summarize`], and every phrase once, in `wording`, so the three twins
//! cannot disagree. The input is plain data: the report knows neither the store nor the stages.
//! A report of 50,000 runs stays readable and small: lists are [`Capped`] and say what they leave out.
//! Trace text arrives redacted and never becomes markup: escaped in HTML, fenced in Markdown, control
//! characters made visible ([`crate::visible`]).

mod advice;
mod breakdown;
mod command;
mod detectors;
mod html;
mod input;
mod json;
mod judges;
mod learning;
mod markdown;
mod model;
mod summary;
mod wording;

pub use self::html::html;
pub use self::input::{
    DetectorInfo, ExportRow, FindingRow, ImportRow, QuoteRow, ReplayRow, ReportInput, RunRow, SkippedRow,
};
pub use self::json::json;
pub use self::markdown::markdown;
pub use self::model::{
    Action, AmbiguousFile, Attach, BlameCount, Breakdown, Capped, ClassCount, Curves, DetectorCount,
    Disagreement, Example, GateCount, Group, Headline, ImportSummary, Judges, KeptOut, Learning, LossCount,
    Named, Outcomes, Piece, Positions, Preview, PreviewMessage, Rate, Replays, Report, RunEntry, Severities,
};
pub use self::summary::summarize;
