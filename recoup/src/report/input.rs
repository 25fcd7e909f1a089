//! What a report is made from: rows that a caller fills from its store, already redacted.

use std::collections::BTreeMap;

use serde::Serialize;

use super::model::{Curves, Judges, Preview};
use crate::artifact::Provenance;
use crate::exporters::TokenCounts;
use crate::replay::ReplaySummary;
use crate::rollout::interleave;
use crate::trajectory::Status;
use crate::verdict::{Class, Party, Side};
use crate::views::Tally;
use crate::warning::{Loss, Quarantine};

/// Everything a report is made from.
#[derive(Clone, Debug, Default)]
pub struct ReportInput {
    /// Heading of the report.
    pub title: String,
    /// The project folder, as the commands in the report should name it.
    pub project: String,
    /// Who makes the report, from what.
    pub provenance: Provenance,
    /// What the import had to say; `None` where nothing was imported this time.
    pub import: Option<ImportRow>,
    /// Every run of the project; their order does not matter.
    pub runs: Vec<RunRow>,
    /// Every file written for training.
    pub exports: Vec<ExportRow>,
    /// What re-execution shows, where anything was replayed.
    pub replay: Option<ReplayRow>,
    /// What judges say, where any were asked.
    pub judges: Option<Judges>,
    /// What the runs that students and teachers share came to, round by round.
    pub shared: interleave::Report,
    /// Every detector that looked, so that the silent ones show too.
    pub detectors: Vec<DetectorInfo>,
}

/// One run with its current verdicts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunRow {
    /// Trajectory id in full.
    pub id: String,
    /// File it came from, `#member` for an archive's.
    pub uri: String,
    /// Format it was read from.
    pub format: String,
    /// Task key.
    pub task: String,
    /// Agent, or the first of several.
    pub agent: String,
    /// Model, where known.
    pub model: Option<String>,
    /// Harness, where known.
    pub harness: Option<String>,
    /// Outcome of the main branch.
    pub outcome: Status,
    /// Who failed; `None` where nobody was blamed.
    pub blame: Option<Party>,
    /// The rule that blamed.
    pub blame_rule: Option<String>,
    /// True where blame and diagnosis are suspicions because the outcome is unknown.
    pub suspected: bool,
    /// Failure class.
    pub class: Option<Class>,
    /// Finer mode within it.
    pub mode: Option<String>,
    /// Severity, 0 mild … 1 catastrophic.
    pub severity: Option<f64>,
    /// Messages on the main branch.
    pub nodes: usize,
    /// Sampled messages on the main branch.
    pub steps: usize,
    /// Index of the decisive node, 0-based.
    pub decisive_node: Option<usize>,
    /// Its step, 0-based among the sampled ones.
    pub decisive_step: Option<usize>,
    /// Agent that took it.
    pub responsible: Option<String>,
    /// Why it was decisive.
    pub explanation: Option<String>,
    /// True where every gate admitted the diagnosis.
    pub admitted: bool,
    /// What the detectors found, in order of node. A report counts them and quotes the clearest.
    #[serde(skip)]
    pub findings: Vec<FindingRow>,
    /// Side of the split.
    pub split: Option<Side>,
    /// Where several scorers ran and none was chosen: `several scorers, none chosen: a, b`.
    #[serde(skip)]
    pub scorers: Option<String>,
}

/// One finding on one run.
#[derive(Clone, Debug, PartialEq)]
pub struct FindingRow {
    /// Detector's name.
    pub detector: String,
    /// Capability whose lack it shows.
    pub capability: String,
    /// What is wrong, for a person.
    pub message: String,
    /// How sure the detector is, between 0 and 1.
    pub strength: f64,
    /// Index of the node at fault.
    pub node: usize,
    /// Its step, where it is a sampled one.
    pub step: Option<usize>,
    /// True where a later node made up for it.
    pub resolved: bool,
    /// The text it rests on.
    pub quotes: Vec<QuoteRow>,
}

/// A cited piece of a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuoteRow {
    /// Index of the node it stands in.
    pub node: usize,
    /// The text, redacted.
    pub text: String,
}

/// One file written for training.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportRow {
    /// View (`step_masked_sft`).
    pub view: String,
    /// Trainer's format (`trl-messages`).
    pub format: String,
    /// Path relative to the output folder.
    pub path: String,
    /// Rows written.
    pub rows: u64,
    /// Runs the view looked at.
    pub considered: u64,
    /// Runs it left out, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// Rows it refused to write, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Rows dropped as equal to an earlier one.
    pub duplicates: u64,
    /// What the view built, before equal examples were dropped and any was refused.
    pub built: Tally,
    /// What its rows count in tokens of the model that they are made or proved for; absent where none is named.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCounts>,
    /// Pieces of text replaced by placeholders, by kind.
    pub redactions: BTreeMap<String, u64>,
    /// A few of its examples, with what is learned marked.
    pub previews: Vec<Preview>,
}

/// What an import read and could not read.
#[derive(Clone, Debug, Default)]
pub struct ImportRow {
    /// Files and archive members looked at.
    pub files: u64,
    /// Files that no importer recognized.
    pub unrecognized: Vec<String>,
    /// Runs read.
    pub trajectories: u64,
    /// Runs that were not in the store before.
    pub new: u64,
    /// Runs that were.
    pub duplicates: u64,
    /// Records that could not be read.
    pub quarantined: Vec<Quarantine>,
    /// What the records cannot carry, with how often it occurred.
    pub losses: Vec<(Loss, u64)>,
    /// Files that could not be opened or were refused.
    pub skipped: Vec<SkippedRow>,
}

/// A file that was not read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedRow {
    /// The path as the user gave it.
    pub uri: String,
    /// Stable word for the cause.
    pub code: String,
    /// For a person.
    pub reason: String,
}

/// What the project's replays show.
#[derive(Clone, Debug, Default)]
pub struct ReplayRow {
    /// The pairs, counted.
    pub summary: ReplaySummary,
    /// Diagnoses by the rung that they stand on.
    pub claims: BTreeMap<String, u64>,
    /// Runs whose curves were made.
    pub curves: Vec<Curves>,
}

/// A detector that looked at every run.
#[derive(Clone, Debug)]
pub struct DetectorInfo {
    /// Name (`unknown-tool`).
    pub name: String,
    /// Capability whose lack it shows.
    pub capability: String,
    /// What it looks for, in one sentence.
    pub description: String,
}
