//! The report as data: what [`super::json`] writes and the other twins show.

use std::collections::BTreeMap;

use serde::Serialize;

use super::input::{ExportRow, QuoteRow, SkippedRow};
use crate::trajectory::Status;
use crate::verdict::{Class, Party, Side};
use crate::warning::{Loss, Quarantine};

/// The whole report; its first five fields are the header every artifact has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// `recoup.report`.
    pub format: &'static str,
    /// Version of this form.
    pub format_version: u32,
    /// Program and version that wrote it.
    pub producer: String,
    /// Hash of the resolved settings.
    pub config_hash: String,
    /// Hash of what was read.
    pub inputs_hash: String,
    /// Heading.
    pub title: String,
    /// Project folder.
    pub project: String,
    /// The first figures.
    pub headline: Headline,
    /// How to attach outcomes, where some are unknown.
    pub attach: Option<Attach>,
    /// Who failed: every party, in the order of [`Party::ALL`].
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
    /// What the import could not carry or read.
    pub import: Option<ImportSummary>,
    /// What to do next, the most useful first.
    pub next: Vec<Action>,
    /// The most informative runs.
    pub runs: Capped<RunEntry>,
}

/// A list cut to a length that can be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Capped<T> {
    /// The first ones.
    pub items: Vec<T>,
    /// How many were left out.
    pub left_out: u64,
}

impl<T> Capped<T> {
    /// Keeps the first `most` items.
    pub(super) fn new(mut items: Vec<T>, most: usize) -> Self {
        let left_out = items.len().saturating_sub(most) as u64;
        items.truncate(most);
        Self { items, left_out }
    }
}

/// Runs by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
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
pub struct Action {
    /// In the imperative.
    pub title: String,
    /// Why.
    pub why: String,
    /// Commands to copy, each a line.
    pub commands: Vec<String>,
}

/// Failures of one party.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BlameCount {
    /// Who failed.
    pub party: Party,
    /// Scored failures; those nobody was blamed for count as unknown.
    pub failures: u64,
    /// Share among all scored failures.
    pub share: Option<Rate>,
    /// Runs without an outcome that it is suspected of.
    pub suspected: u64,
    /// Rules that said so, with how many runs, scored and suspected.
    pub rules: BTreeMap<String, u64>,
}

/// Failures of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClassCount {
    /// What kind of failure.
    pub class: Class,
    /// Scored failures.
    pub failures: u64,
    /// Runs without an outcome.
    pub suspected: u64,
    /// How severe, over both.
    pub severity: Option<Severities>,
    /// Finer modes, with how many runs.
    pub modes: BTreeMap<String, u64>,
}

/// Distribution of severities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Severities {
    /// Runs that have one.
    pub runs: u64,
    /// Mean.
    pub mean: f64,
    /// Runs in each tenth of 0 … 1.
    pub tenths: [u64; 10],
    /// Runs above 0.7, whose loss weight is 0.
    pub too_severe: u64,
}

/// A name with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// How many runs.
    pub runs: u64,
}

/// What one detector saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DetectorCount {
    /// Name.
    pub name: String,
    /// Capability whose lack it shows.
    pub capability: String,
    /// What it looks for.
    pub description: String,
    /// Findings in all.
    pub findings: u64,
    /// Findings that a later node made up for.
    pub resolved: u64,
    /// Runs whose decisive node it points at.
    pub decisive: u64,
    /// Runs with at least one finding, by outcome.
    pub runs: Outcomes,
    /// Share of failed runs.
    pub on_failures: Option<Rate>,
    /// Share of successful runs.
    pub on_successes: Option<Rate>,
    /// Share of runs without an outcome.
    pub on_unknown: Option<Rate>,
    /// The clearest findings, from different runs.
    pub examples: Vec<Example>,
}

/// A finding with its citations.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Example {
    /// Trajectory id.
    pub run: String,
    /// File.
    pub uri: String,
    /// The run's outcome.
    pub outcome: Status,
    /// Index of the node at fault.
    pub node: usize,
    /// Its step.
    pub step: Option<usize>,
    /// What is wrong.
    pub message: String,
    /// How sure.
    pub strength: f64,
    /// Made up for later.
    pub resolved: bool,
    /// True where this node is the run's decisive one.
    pub decisive: bool,
    /// Cited text.
    pub quotes: Vec<QuoteRow>,
    /// Shows the run.
    pub command: String,
}

/// Where in the runs the decisive steps stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Positions {
    /// Scored failures in each tenth of the run.
    pub failures: [u64; 10],
    /// Suspected ones.
    pub suspected: [u64; 10],
    /// Diagnosed runs of a single step, which have no relative position.
    pub single_step: u64,
    /// Failed or unscored runs without a decisive step.
    pub none: u64,
}

/// Success by one attribute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Breakdown {
    /// `task`, `agent`, `model`, `harness` or `format`.
    pub by: &'static str,
    /// Distinct values, not counting "not recorded".
    pub values: u64,
    /// The ones with the most failures first.
    pub groups: Vec<Group>,
    /// All others together.
    pub rest: Option<Group>,
    /// How many groups those are.
    pub pooled: u64,
}

/// Runs that share an attribute.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Group {
    /// The shared value; `None` where the runs do not say, or for the rest.
    pub name: Option<String>,
    /// Runs by outcome.
    pub outcomes: Outcomes,
    /// Failures that are the agent's own.
    pub agent_failures: u64,
    /// Share of successes among scored runs.
    pub success_rate: Option<Rate>,
}

/// Which runs may be learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Learning {
    /// Successful runs on the training side.
    pub successes: u64,
    /// Failed runs on the training side with an admitted diagnosis.
    pub failures: u64,
    /// All others, each under the first reason that applies.
    pub kept_out: Vec<KeptOut>,
}

/// Runs that may not be learned from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptOut {
    /// Stable word.
    pub code: String,
    /// For a person.
    pub reason: String,
    /// How many.
    pub runs: u64,
}

/// What the import could not carry or read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportSummary {
    /// Files looked at.
    pub files: u64,
    /// Runs read.
    pub trajectories: u64,
    /// New ones.
    pub new: u64,
    /// Known ones.
    pub duplicates: u64,
    /// Records that could not be read.
    pub quarantined: Capped<Quarantine>,
    /// Files that no importer recognized.
    pub unrecognized: Capped<String>,
    /// Files that were not read.
    pub skipped: Capped<SkippedRow>,
    /// What the records cannot carry.
    pub losses: Capped<LossCount>,
}

/// A loss with how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LossCount {
    /// What was lost.
    pub loss: Loss,
    /// How often.
    pub count: u64,
}

/// A run in the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEntry {
    /// Trajectory id.
    pub id: String,
    /// File.
    pub uri: String,
    /// Format.
    pub format: String,
    /// Task.
    pub task: String,
    /// Agent.
    pub agent: String,
    /// Model.
    pub model: Option<String>,
    /// Outcome.
    pub outcome: Status,
    /// Who failed.
    pub blame: Option<Party>,
    /// The rule that says so.
    pub blame_rule: Option<String>,
    /// A suspicion, the outcome being unknown.
    pub suspected: bool,
    /// Failure class.
    pub class: Option<Class>,
    /// Finer mode.
    pub mode: Option<String>,
    /// Severity.
    pub severity: Option<f64>,
    /// Messages.
    pub nodes: usize,
    /// Sampled messages.
    pub steps: usize,
    /// Decisive node.
    pub decisive_node: Option<usize>,
    /// Decisive step.
    pub decisive_step: Option<usize>,
    /// Agent that took it.
    pub responsible: Option<String>,
    /// Why.
    pub explanation: Option<String>,
    /// Whether the gates admitted the diagnosis.
    pub admitted: bool,
    /// Detectors with an unresolved finding.
    pub detectors: Vec<String>,
    /// Side of the split.
    pub split: Option<Side>,
}
