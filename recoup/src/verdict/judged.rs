//! What judges decide beside a diagnosis: answers that were not admitted, the panel's protocol, and what
//! people say when they look at the run alone.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Decision, Diagnosis};
use crate::id::VerdictId;

/// An answer of a judge that was not admitted. It is kept as data and decides nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RejectedAnswer {
    /// Which answer to the same question it was, from 0.
    pub attempt: u32,
    /// Which of several judgements of the run it belongs to, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sample: u32,
    /// The first gate that refused it (`S4`).
    pub gate: String,
    /// Why.
    pub reason: String,
    /// The judge's words, redacted as it wrote them, cut after some thousand bytes.
    pub answer: String,
    /// The diagnosis that it proposed, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<Diagnosis>,
}

/// How a panel of judges came to its word on a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judging {
    /// Who proposed first, then who reviewed.
    pub members: Vec<Member>,
    /// True where the judges saw the gold answer: for comparison with benchmarks only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub with_ground_truth: bool,
    /// Which of several judgements of the run this is, from 0. Only the first decides anything.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sample: u32,
    /// Whether the last answer was admitted by every gate and member.
    pub admitted: bool,
    /// What the last answer's reviews are about: the diagnosis, admitted or kept for its step only, or the blame
    /// of somebody other than the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diagnosis: Option<VerdictId>,
    /// The answers that the proposer gave, in order.
    pub attempts: Vec<Attempt>,
    /// Questions that were answered.
    pub calls: u64,
    /// Tokens of the questions, as far as the providers say.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Cost in US dollars at the prices that were known; `None` where a model had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// A judge of a panel, and what it held in the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Member {
    /// Model (`openai:gpt-4o`).
    pub model: String,
    /// Family of the model.
    pub family: String,
    /// Names under which other models than it answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub answered_by: BTreeSet<String>,
    /// Position of the node that it holds for decisive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Its word on the proposal; `None` for the proposer, and where it was not asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub word: Option<Decision>,
}

/// One answer of the proposer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Attempt {
    /// The first gate that refused it; `None` for the one that was admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<String>,
}

/// What a person says of a run, shown without its outcome and without any verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PersonReview {
    /// `admit`: nothing went wrong; `reject`: it failed; `abstain`: cannot be told.
    pub verdict: Decision,
    /// Position of the node at which it went wrong, where the person says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(count: &u32) -> bool {
    *count == 0
}
