//! Who failed, how, where and by what signs.

use std::collections::BTreeMap;

use serde::Serialize;

use super::super::input::QuoteRow;
use super::{Outcomes, Rate};
use crate::trajectory::Status;
use crate::verdict::{Class, Party};

/// Failures of one party.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Severities {
    /// Runs that have one.
    pub runs: u64,
    /// Mean.
    pub mean: f64,
    /// Runs in each tenth of 0 … 1.
    pub tenths: [u64; 10],
    /// Runs above [`crate::triage::SEVERITY_MAX_TRAINED`].
    pub too_severe: u64,
}

/// A name with a count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Named {
    /// The name.
    pub name: String,
    /// How many runs.
    pub runs: u64,
}

/// What one detector saw.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
