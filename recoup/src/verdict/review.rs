//! Reviews: a gate's word on another verdict.

use serde::{Deserialize, Serialize};

use crate::id::VerdictId;

/// A gate's word on a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Review {
    /// The verdict reviewed.
    pub of: VerdictId,
    /// Gate (`S4`).
    pub gate: String,
    /// The decision.
    pub verdict: Decision,
    /// Why.
    pub reason: String,
}

/// A gate's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It holds.
    Admit,
    /// It does not.
    Reject,
    /// The gate cannot say.
    Abstain,
}
