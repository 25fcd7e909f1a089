//! What re-execution decides: matched pairs, repairs that passed, the curves of a sweep, and how far a
//! diagnosis is proved.

use serde::{Deserialize, Serialize};

use super::Candidate;
use crate::id::{Hash, TrajectoryId, VerdictId};

/// One alternative of a matched replay: what is done first from the checkpoint, before the policy
/// continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The original turn again.
    Retry,
    /// What the policy samples there now.
    Resample,
    /// What it samples after "reconsider your next action".
    Reconsider,
    /// What it samples after reading the diagnosis, which does not name the action.
    Guided,
    /// The candidate.
    Repair,
}

impl Arm {
    /// Every arm, controls first.
    pub const ALL: [Self; 5] = [Self::Retry, Self::Resample, Self::Reconsider, Self::Guided, Self::Repair];

    /// The arm's word in records and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Resample => "resample",
            Self::Reconsider => "reconsider",
            Self::Guided => "guided",
            Self::Repair => "repair",
        }
    }

    /// The arm of a word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|arm| arm.as_str() == word)
    }
}

/// The arms of one checkpoint, continued under the same conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct ReplayPair {
    /// Position of the node whose turn is replaced.
    pub node: usize,
    /// Its turn, 0-based.
    pub step: usize,
    /// Environment and version.
    pub environment: String,
    /// The policy that continued; empty where it is not known.
    pub policy: String,
    /// Hash of policy, harness, budget, verifier and the source of candidates that was asked for: pairs
    /// are pooled only where it is equal.
    pub config_hash: Hash,
    /// Hash of everything that was asked for, so that the same request finds its answer.
    pub plan_hash: Hash,
    /// The diagnosis that was put to the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<VerdictId>,
    /// What the repair arm did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// Where the candidate came from (`rules`, `sibling`, `expert`, `file`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proposed_by: Option<String>,
    /// True where the fault was put in on purpose; never pooled with natural ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub injected: bool,
    /// What the arms led to; empty where the pair is unsupported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmOutcome>,
    /// Why nothing could be replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<Unsupported>,
}

/// What one arm led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ArmOutcome {
    /// The arm.
    pub arm: Arm,
    /// True where the policy takes advice by a rule that was written for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub synthetic: bool,
    /// One for each continuation, in order.
    pub continuations: Vec<ContinuationOutcome>,
}

/// How one continuation ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContinuationOutcome {
    /// The run that it became.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trajectory: Option<TrajectoryId>,
    /// The verifier's word; absent where something other than the policy failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// What failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a run could not be replayed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unsupported {
    /// Stable word (`diverged`, `environment-version`).
    pub code: String,
    /// For a person.
    pub reason: String,
    /// The first difference, for `diverged`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub divergence: Option<Divergence>,
}

/// The first difference between a stored run and its execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Divergence {
    /// The turn in which it shows; 0 also for what the start shows.
    pub step: usize,
    /// Position of the message that holds the recorded side.
    pub node: usize,
    /// What is recorded.
    pub expected: String,
    /// What the environment said this time.
    pub observed: String,
}

impl ReplayPair {
    /// What an arm led to, where it was run.
    pub fn arm(&self, arm: Arm) -> Option<&ArmOutcome> {
        self.arms.iter().find(|outcome| outcome.arm == arm)
    }
}

impl ArmOutcome {
    /// Continuations that passed, out of those that were scored.
    pub fn passed(&self) -> (u64, u64) {
        let scored = self.continuations.iter().filter_map(|continuation| continuation.passed);
        scored.fold((0, 0), |(passed, of), pass| (passed + u64::from(pass), of + 1))
    }

    /// Share of scored continuations that passed.
    pub fn rate(&self) -> Option<f64> {
        let (passed, of) = self.passed();
        (of > 0).then(|| passed as f64 / of as f64)
    }
}

/// A candidate that passed when it was executed. There is no other way to make one than from the
/// pair that proves it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Repair {
    pair: VerdictId,
    node: usize,
    candidate: Candidate,
    trajectory: TrajectoryId,
    passed: u64,
    of: u64,
}

impl Repair {
    /// The repair that a pair proves: its candidate, where the first continuation of it passed.
    pub(crate) fn proved(id: VerdictId, pair: &ReplayPair) -> Option<Self> {
        let outcome = pair.arm(Arm::Repair)?;
        let first = outcome.continuations.first().filter(|first| first.passed == Some(true))?;
        let (passed, of) = outcome.passed();
        Some(Self {
            pair: id,
            node: pair.node,
            candidate: pair.candidate.clone()?,
            trajectory: first.trajectory?,
            passed,
            of,
        })
    }

    /// The pair that proves it.
    pub fn pair(&self) -> VerdictId {
        self.pair
    }

    /// Position of the node that it replaces.
    pub fn node(&self) -> usize {
        self.node
    }

    /// The action that passed.
    pub fn candidate(&self) -> &Candidate {
        &self.candidate
    }

    /// The run in which it passed: the first continuation.
    pub fn trajectory(&self) -> TrajectoryId {
        self.trajectory
    }

    /// Continuations that passed, out of those that were scored.
    pub fn passed(&self) -> (u64, u64) {
        (self.passed, self.of)
    }
}

/// How far a diagnosis is proved; each rung includes those below.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Rung {
    /// It cites what stands in the run.
    Grounded,
    /// Every gate admitted it, and every other judge that was asked.
    Reviewed,
    /// Its repair passed more often than the original action from the same checkpoint.
    BeatsRetry,
    /// And more often than being told to reconsider.
    BeatsReconsider,
    /// And repairs of the same fault beat the original action on other tasks, with an interval above 0.
    Transfers,
}

impl Rung {
    /// Every rung, the lowest first.
    pub const ALL: [Self; 5] =
        [Self::Grounded, Self::Reviewed, Self::BeatsRetry, Self::BeatsReconsider, Self::Transfers];

    /// How many rungs stand above it.
    pub fn steps_to_top(self) -> u32 {
        Self::ALL.iter().filter(|rung| **rung > self).count() as u32
    }

    /// The rung's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grounded => "grounded",
            Self::Reviewed => "reviewed",
            Self::BeatsRetry => "beats_retry",
            Self::BeatsReconsider => "beats_reconsider",
            Self::Transfers => "transfers",
        }
    }
}

/// The rung that a diagnosis stands on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Claim {
    /// The diagnosis.
    pub of: VerdictId,
    /// How far it is proved.
    pub rung: Rung,
    /// The pair that it rests on, for the rungs above `reviewed`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<VerdictId>,
    /// In words, for a person.
    pub reason: String,
}

/// Where a run could still be saved, and which of its turns decided it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// The policy that continued.
    pub policy: String,
    /// As in [`ReplayPair::config_hash`].
    pub config_hash: Hash,
    /// As in [`ReplayPair::plan_hash`].
    pub plan_hash: Hash,
    /// True where the fault was put in on purpose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub injected: bool,
    /// Whether the expert, taking over before a turn, reached the goal: the turns looked at, in order.
    pub recoverability: Vec<Recoverable>,
    /// False where a later takeover succeeded and an earlier one had not: the expert is not complete.
    pub is_monotone: bool,
    /// The last turn before which the expert could still save the run; none where it never could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_recoverable: Option<usize>,
    /// What correcting one turn changes, for each turn that was tested, in order.
    pub flips: Vec<Flip>,
    /// The earliest turn whose correction helps, by its step and node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decisive: Option<DecisiveStep>,
}

/// Whether a takeover before a turn succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Recoverable {
    /// The turn.
    pub step: usize,
    /// The verifier's word on the expert's continuation.
    pub recovered: bool,
}

/// What correcting one turn changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Flip {
    /// The turn.
    pub step: usize,
    /// Pairs of continuations.
    pub n: u64,
    /// Of them, passed with the corrected action.
    pub corrected: u64,
    /// Of them, passed with the original one.
    pub retried: u64,
    /// P(success | corrected) − P(success | original).
    pub effect: f64,
    /// Lower bound of the effect at 95 %, at any time of looking; the effect itself where policy and
    /// environment are deterministic.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// p-value after Holm over the tested turns; 0 or 1 where nothing is random.
    pub p_holm: f64,
}

/// The turn that a sweep found decisive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DecisiveStep {
    /// The turn, 0-based.
    pub step: usize,
    /// Position of its node.
    pub node: usize,
}
