//! The runs: in groups, by what they may teach, as they were read, and one by one.

use serde::Serialize;

use super::super::input::{RunRow, SkippedRow};
use super::{Capped, Outcomes, Rate};
use crate::warning::{Loss, Quarantine};

/// Success by one attribute.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LossCount {
    /// What was lost.
    pub loss: Loss,
    /// How often.
    pub count: u64,
}

/// A run in the list.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RunEntry {
    /// The run, its long texts cut, without its findings.
    #[serde(flatten)]
    pub run: RunRow,
    /// Detectors with an unresolved finding.
    pub detectors: Vec<String>,
}
