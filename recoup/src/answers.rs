//! Answers: what a command says under `--json` where no stage's own record says it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::artifact::Body;
use crate::models::{Amount, Estimate, Finish, LedgerLine, Usage};
use crate::pipeline::{AtifExport, Diagnosing, Summary};
use crate::store::{ForgetReport, GcReport, Stats, VerifyReport};
use crate::trajectory::Trajectory;
use crate::verdict::Verdict;

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

impl Body for ModelAnswer<'_> {
    const FORMAT: &'static str = "recoup.answer";
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
    /// A model's provider.
    Provider,
}

/// What a model answered (`ask`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelAnswer<'a> {
    /// The model that was asked.
    pub model: &'a str,
    /// The model that answered, as the provider names it.
    pub answered_by: &'a str,
    /// Its answer.
    pub text: &'a str,
    /// Its reasoning, where the provider gives it apart.
    pub reasoning: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Finish,
    /// Tokens, as the provider counts them.
    pub usage: Option<Usage>,
    /// Money, in dollars; `None` without a price.
    pub cost_usd: Option<f64>,
    /// Time until the answer was whole, in milliseconds.
    pub latency_ms: u64,
}

/// An answer to one of several questions (`ask --prompts`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NumberedAnswer<'a> {
    /// Which question, from 0.
    pub index: usize,
    /// The answer; `None` where there is none.
    pub text: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Option<Finish>,
    /// Why there is no answer.
    pub error: Option<String>,
}

/// What several questions took (`ask --prompts`): the last line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Questioned {
    /// Questions.
    pub prompts: u64,
    /// Questions without an answer.
    pub failed: u64,
    /// Questions that are answered later.
    pub pending: u64,
    /// Questions that the model answered now.
    pub calls: u64,
    /// Questions that were answered from before.
    pub cached: u64,
    /// What was spent now.
    pub spent: Amount,
    /// What it took, by stage and model.
    pub ledger: Vec<LedgerLine>,
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
    Estimate: "recoup.estimate",
    Questioned: "recoup.questioned",
}
