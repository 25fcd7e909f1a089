//! Labels: what a source, a person or a file of outcomes says of a run.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::trajectory::Status;

/// A label that came with a source (a benchmark's answer); judges never see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReferenceLabel {
    /// Benchmark or label set (`who-and-when`).
    pub source: String,
    /// Number of the first message in the label's own counting: 0 or 1.
    pub index_base: u8,
    /// The label, as the source writes it.
    pub native: Json,
    /// Position of the node it means, where it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Agent it blames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a person or an outcome file attached to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Label {
    /// Outcome that replaces the source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Status>,
    /// Score beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Task key that replaces the source's or a derived one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Environment, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// What brings that environment to the run's first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Json>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}
