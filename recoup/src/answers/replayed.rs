//! What `replay` has shown, and what it would re-execute.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::pipeline::Replaying;
use crate::replay::ReplaySummary;

/// What matched arms have shown (`replay`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Replayed<'a> {
    /// What the pairs show together.
    #[serde(flatten)]
    pub summary: &'a ReplaySummary,
    /// Runs looked at.
    pub runs: u64,
    /// Pairs made by this call, unsupported ones included.
    pub new: u64,
    /// Runs whose score or observations could not be reproduced.
    pub regraded: u64,
    /// Diagnoses by the rung that they stand on.
    pub claims: &'a BTreeMap<&'static str, u64>,
    /// Sweeps that were made or found.
    pub sweeps: u64,
    /// Sweeps that found a decisive turn.
    pub decisive: u64,
}

impl<'a> From<&'a Replaying> for Replayed<'a> {
    fn from(done: &'a Replaying) -> Self {
        Self {
            summary: &done.summary,
            runs: done.runs,
            new: done.new,
            regraded: done.regraded,
            claims: &done.claims,
            sweeps: done.decisive.1,
            decisive: done.decisive.0,
        }
    }
}

/// What would be re-executed (`replay --dry-run`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReplayPlanned {
    /// Runs.
    pub runs: u64,
    /// Runs by the name of their environment.
    pub environments: BTreeMap<String, u64>,
    /// Most continuations.
    pub continuations_max: u64,
}
