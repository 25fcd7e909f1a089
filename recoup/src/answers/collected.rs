//! What `collect` has made, and what it would make.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::interleaving::RequestOutcome;
use crate::models::{Amount, Estimate, LedgerLine};
use crate::rollout::{self, interleave};

/// What a policy has done in an environment (`collect`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Collected<'a> {
    /// Runs that were asked for, all of which are now stored.
    pub episodes: u64,
    /// Those that were made by this call.
    pub new: u64,
    /// Runs that a verifier passed.
    pub success: Success,
    /// Runs by how they ended.
    pub end_modes: &'a BTreeMap<String, u64>,
    /// Runs that an error of the environment or the policy ended, by its code.
    pub errors: BTreeMap<&'a str, u64>,
}

/// How many runs passed.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Success {
    /// Runs that a verifier passed.
    pub passed: u64,
    /// Runs that a verifier scored: all but those that an error ended.
    pub n: u64,
    /// Their quotient.
    pub rate: f64,
    /// Lower bound at 95 % (Wilson).
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl<'a> From<&'a rollout::Collected> for Collected<'a> {
    fn from(collected: &'a rollout::Collected) -> Self {
        let success = collected.success();
        Self {
            episodes: collected.episodes,
            new: collected.new,
            success: Success {
                passed: collected.passed,
                n: collected.scored,
                rate: success.rate,
                low: success.low,
                high: success.high,
            },
            end_modes: &collected.end_modes,
            errors: collected.errors.iter().map(|(code, (count, _))| (code.as_str(), *count)).collect(),
        }
    }
}

/// What would be collected (`collect --dry-run`).
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CollectPlan {
    /// Runs that are asked for.
    pub episodes: u64,
    /// Those that are not in the project yet.
    pub new: u64,
}

/// What a round of runs that a student and a teacher share has made (`collect --student --teacher`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundCollected<'a> {
    /// Runs that were asked for.
    pub requests: u64,
    /// Those that were made by this call.
    pub new: u64,
    /// Tasks that are held out of training, which the student ran alone.
    pub held_out: u64,
    /// Requests by what became of them: they sum to `requests`.
    pub outcomes: &'a BTreeMap<RequestOutcome, u64>,
    /// Runs that a model's failure ended, by its message: the same command makes them again.
    pub unfinished: &'a BTreeMap<String, u64>,
    /// The rounds that count, from all that is stored of the environment.
    pub report: &'a interleave::Report,
    /// What asking models took in this call.
    pub spent: Amount,
    /// The same by stage and model.
    pub ledger: Vec<LedgerLine>,
}

/// What a round would make (`collect --student --teacher --dry-run`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundPlan {
    /// Runs that are asked for.
    pub requests: u64,
    /// Those that are not in the project with all their labels.
    pub new: u64,
    /// Tasks that are held out of training.
    pub held_out: u64,
    /// What asking models may take.
    pub estimate: Estimate,
}
