//! Diagnoses: where a run went wrong and why, and what was found on the way.

use serde::{Deserialize, Serialize};

use crate::json::Json;
use crate::trajectory::Citation;

/// Where a run went wrong and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// Position of the decisive node in the trajectory.
    pub decisive_node: usize,
    /// Its author.
    pub responsible_agent: String,
    /// Free text.
    pub explanation: String,
    /// The exact bytes it rests on.
    pub citations: Vec<Quote>,
    /// What should have been done instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// 0 for the best of several on one run.
    pub rank: u32,
    /// All that was found on the way, in order of node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// True where every required gate admitted it.
    pub admitted: bool,
    /// True where the outcome is unknown.
    pub suspected: bool,
}

/// A citation with its text, so that a reader need not look it up and a gate can compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quote {
    /// Where.
    pub at: Citation,
    /// The bytes that must stand there.
    pub quote: String,
}

/// What one detector saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Detector's name (`unknown-tool`).
    pub detector: String,
    /// Position of the node at fault.
    pub node: usize,
    /// What is wrong, for a person.
    pub message: String,
    /// How sure the detector is, between 0 and 1.
    pub strength: f64,
    /// The capability whose lack it shows (`tool_grounding`).
    pub capability: String,
    /// The exact bytes.
    pub citations: Vec<Citation>,
    /// Position of the node that made up for it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<usize>,
}

impl Finding {
    /// Whether it cites something at or before the node at fault.
    pub fn is_cited_in_time(&self) -> bool {
        self.citations.iter().any(|citation| citation.node <= self.node)
    }
}

/// A proposed repair, not yet proved by any re-execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The action in the tool schema or the environment's grammar.
    pub action: Json,
    /// Why.
    pub rationale: String,
}
