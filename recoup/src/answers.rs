//! Answers: what a command says under `--json` where no stage's own record says it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::artifact::Body;
use crate::judges::quality::Quality;
use crate::pipeline::{AtifExport, Diagnosing, Summary};
use crate::store::{ForgetReport, GcReport, Stats, VerifyReport};
use crate::trajectory::Trajectory;
use crate::verdict::{Decision, PersonReview, Verdict};

/// The formats that can be read (`import --formats`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Formats {
    /// Their names.
    pub formats: Vec<&'static str>,
}

/// A file that was looked at (`import --dry-run`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Found<'a> {
    /// The file.
    pub uri: &'a str,
    /// Its format, `not a trace` or `unreadable`.
    pub format: &'static str,
}

/// What was labelled (`label`).
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Labelled {
    /// Runs whose label changed.
    pub labelled: u64,
}

/// What was exported, and where to (`export`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exported<'a> {
    /// What was exported.
    #[serde(flatten)]
    pub export: &'a AtifExport,
    /// The folder.
    pub out: &'a str,
}

impl Body for Exported<'_> {
    const FORMAT: &'static str = "recoup.exported";
}

/// Training rows that were exported, and where to (`export --format` of rows).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportedRows<'a> {
    /// Rows written, by view.
    pub exported: BTreeMap<String, u64>,
    /// The folder.
    pub out: &'a str,
}

impl Body for ExportedRows<'_> {
    const FORMAT: &'static str = "recoup.exported-rows";
}

/// A run with what was decided about it (`show`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shown {
    /// The run, with an outcome that was attached to it later in place.
    pub trajectory: Trajectory,
    /// The verdicts in force.
    pub verdicts: Vec<Verdict>,
}

/// A run shown without outcome and verdicts (`review`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blind<'a> {
    /// Trajectory id in full.
    pub run: String,
    /// Its messages, for a person.
    pub text: &'a str,
}

/// What people said of runs (`review`).
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reviewed {
    /// Runs shown.
    pub shown: u64,
    /// Answers kept.
    pub recorded: u64,
    /// Of them, those that say that nothing went wrong.
    pub admitted: u64,
    /// Those that say that the run failed.
    pub rejected: u64,
    /// Those that say that it cannot be told.
    pub abstained: u64,
    /// Those that name a step.
    pub with_step: u64,
    /// How far the project's judges can be believed, on all that people have said.
    pub quality: Option<Quality>,
}

impl Reviewed {
    /// Counts an answer.
    pub fn count(&mut self, review: &PersonReview) {
        self.recorded += 1;
        self.with_step += u64::from(review.node.is_some());
        match review.verdict {
            Decision::Admit => self.admitted += 1,
            Decision::Reject => self.rejected += 1,
            Decision::Abstain => self.abstained += 1,
        }
    }
}

/// Why a command could not do its work: the last line where the exit code is 2, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Failed<'a> {
    /// The failure.
    pub error: Problem<'a>,
}

/// A failure in words.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Problem<'a> {
    /// Stable word for the cause.
    pub code: &'a str,
    /// Who can do something about it.
    pub origin: Origin,
    /// Whether trying again may help.
    pub retryable: bool,
    /// For a person.
    pub message: &'a str,
    /// What to do about it.
    pub hint: Option<&'a str>,
}

/// Who can do something about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The command line, the settings, the place it was started in.
    User,
    /// The machine: disk, memory, permissions.
    Machine,
    /// An environment that was named.
    Environment,
}

macro_rules! bodies {
    ($($body:ty: $format:literal,)*) => {$(
        impl Body for $body {
            const FORMAT: &'static str = $format;
        }
    )*};
}

bodies! {
    Summary: "recoup.summary",
    Formats: "recoup.formats",
    Diagnosing: "recoup.diagnosing",
    Stats: "recoup.stats",
    VerifyReport: "recoup.verification",
    GcReport: "recoup.collection",
    ForgetReport: "recoup.forgetting",
    Labelled: "recoup.labelling",
    Shown: "recoup.run",
    AtifExport: "recoup.export",
    Reviewed: "recoup.reviewing",
}
