//! Blame: whose failure it was.

use serde::{Deserialize, Serialize};

/// Who failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The policy itself; only such failures teach.
    Agent,
    /// Provider, network, container, harness.
    Infrastructure,
    /// The simulated user.
    UserSimulator,
    /// The scorer.
    Verifier,
    /// The environment contradicted its own contract.
    Environment,
    /// The task is unsolvable or its gold answer wrong.
    Task,
    /// Nobody can say.
    Unknown,
}

impl Party {
    /// Every party, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Agent,
        Self::Infrastructure,
        Self::UserSimulator,
        Self::Verifier,
        Self::Environment,
        Self::Task,
        Self::Unknown,
    ];

    /// The party's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Infrastructure => "infrastructure",
            Self::UserSimulator => "user_simulator",
            Self::Verifier => "verifier",
            Self::Environment => "environment",
            Self::Task => "task",
            Self::Unknown => "unknown",
        }
    }
}

/// Whose failure it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blame {
    /// Who failed.
    pub party: Party,
    /// The rule that said so.
    pub rule: String,
    /// In words, for a person.
    pub reason: String,
    /// True where the run's outcome is unknown: the failure is suspected, not scored.
    pub suspected: bool,
}
