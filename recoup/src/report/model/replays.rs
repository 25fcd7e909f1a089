//! What the report says of replays.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Capped;
use crate::replay::Group;
use crate::verdict::Sweep;

/// What the project's replays show.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Replays {
    /// Runs that could not be replayed, by the code of the reason.
    pub unsupported: BTreeMap<String, u64>,
    /// Pairs of one configuration each, the largest first.
    pub groups: Vec<Group>,
    /// Diagnoses by the rung that they stand on.
    pub claims: BTreeMap<String, u64>,
    /// Runs whose curves were made.
    pub curves: Capped<Curves>,
}

/// The curves of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Curves {
    /// Trajectory id in full.
    pub run: String,
    /// Task key.
    pub task: String,
    /// Turns of the run.
    pub steps: usize,
    /// The curves.
    pub sweep: Sweep,
}
