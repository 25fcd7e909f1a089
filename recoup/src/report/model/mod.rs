//! The report as data: what [`super::json`] writes and the other twins show.

mod failures;
mod judges;
mod previews;
mod replays;
mod runs;

use serde::Serialize;

pub use self::failures::{BlameCount, ClassCount, DetectorCount, Example, Named, Positions, Severities};
pub use self::judges::{Disagreement, GateCount, Judges};
pub use self::previews::{Piece, Preview, PreviewMessage};
pub use self::replays::{Curves, Replays};
pub use self::runs::{Breakdown, Group, ImportSummary, KeptOut, Learning, LossCount, RunEntry};
use super::input::ExportRow;
use crate::artifact::Provenance;
use crate::rollout::interleave;

/// The whole report; its first five fields are the header every artifact has.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// `recoup.report`.
    pub format: &'static str,
    /// Version of this form.
    pub format_version: u32,
    /// Who made it, from what.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// Heading.
    pub title: String,
    /// Project folder.
    pub project: String,
    /// The first figures.
    pub headline: Headline,
    /// How to attach outcomes, where some are unknown.
    pub attach: Option<Attach>,
    /// Who failed: every party, in the order of [`crate::verdict::Party::ALL`].
    pub blame: Vec<BlameCount>,
    /// How: every class, the most frequent first.
    pub classes: Vec<ClassCount>,
    /// Agents that took the decisive steps, where runs have several.
    pub responsible: Capped<Named>,
    /// What the detectors saw, the most decisive first.
    pub detectors: Vec<DetectorCount>,
    /// Where in the runs the decisive steps stand.
    pub positions: Positions,
    /// Success by task, agent, model, harness and format.
    pub breakdowns: Vec<Breakdown>,
    /// Which runs may be learned from, and why the others may not.
    pub learning: Learning,
    /// What was written.
    pub exports: Vec<ExportRow>,
    /// What re-execution shows, where anything was replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<Replays>,
    /// What judges say, where any were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judges: Option<Judges>,
    /// What the runs that students and teachers share came to, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shared: Option<interleave::Report>,
    /// What the import could not carry or read.
    pub import: Option<ImportSummary>,
    /// What to do next, the most useful first.
    pub next: Vec<Action>,
    /// The most informative runs.
    pub runs: Capped<RunEntry>,
}

/// A list cut to a length that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Capped<T> {
    /// The first ones.
    pub items: Vec<T>,
    /// How many were left out.
    pub left_out: u64,
}

impl<T> Capped<T> {
    /// Keeps the first `most` items.
    pub(crate) fn new(mut items: Vec<T>, most: usize) -> Self {
        let left_out = items.len().saturating_sub(most) as u64;
        items.truncate(most);
        Self { items, left_out }
    }
}

impl<T> Default for Capped<T> {
    fn default() -> Self {
        Self { items: Vec::new(), left_out: 0 }
    }
}

/// Runs by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outcomes {
    /// Passed.
    pub success: u64,
    /// Not passed.
    pub failure: u64,
    /// Not scored.
    pub unknown: u64,
}

impl Outcomes {
    /// All of them.
    pub fn total(self) -> u64 {
        self.scored() + self.unknown
    }

    /// Those with a known outcome.
    pub fn scored(self) -> u64 {
        self.success + self.failure
    }
}

/// A share of runs with Wilson's 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rate {
    /// Runs counted.
    pub hits: u64,
    /// Out of how many.
    pub of: u64,
    /// Their quotient.
    pub rate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The first figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Headline {
    /// Runs.
    pub runs: u64,
    /// Runs by outcome.
    pub outcomes: Outcomes,
    /// Share of successes among scored runs.
    pub success_rate: Option<Rate>,
    /// Scored failures that are the agent's own.
    pub agent_failures: u64,
    /// Scored failures with a decisive step.
    pub diagnosed: u64,
    /// Runs without an outcome that have a decisive step.
    pub suspected: u64,
    /// Steps of the median failed run (the lower of two).
    pub median_steps_failure: Option<u64>,
    /// Steps of the median successful run.
    pub median_steps_success: Option<u64>,
}

/// How to attach outcomes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Attach {
    /// Runs without an outcome.
    pub unknown: u64,
    /// True where most runs are, so the report opens with this.
    pub opens: bool,
    /// Files whose runs have several scorers of which none was chosen.
    pub ambiguous: Capped<AmbiguousFile>,
    /// The ways, each with its commands.
    pub ways: Vec<Action>,
}

/// A file with several scorers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AmbiguousFile {
    /// The file.
    pub uri: String,
    /// What is to be chosen from.
    pub scorers: String,
    /// Its runs without an outcome.
    pub runs: u64,
}

/// Something a person can do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Action {
    /// In the imperative.
    pub title: String,
    /// Why.
    pub why: String,
    /// Commands to copy, each a line.
    pub commands: Vec<String>,
}
