//! How a branch ended, and what says so.

use serde::{Deserialize, Serialize};

/// Whether the task was solved. Unknown is a third value, not a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// A scorer passed it.
    Success,
    /// A scorer ran and did not pass it.
    Failure,
    /// No scorer's verdict is known.
    Unknown,
}

impl Status {
    /// The status's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Failure => "failure",
            Self::Unknown => "unknown",
        }
    }
}

/// Outcome of one branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Outcome {
    /// Solved or not.
    pub status: Status,
    /// The scorer's number, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// How the run came to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub termination: Option<Termination>,
    /// The field and rule that the status rests on (`reward 0 < 1`); empty when unknown.
    #[serde(default)]
    pub evidence: String,
}

/// How a run came to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Termination {
    /// In the words of all harnesses.
    pub kind: TerminationKind,
    /// In the source's own word.
    pub native: String,
}

/// Kinds of end, over all harnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TerminationKind {
    /// The agent stopped by itself or submitted.
    Completed,
    /// The user (or its simulator) ended the conversation.
    UserStop,
    /// The step or turn limit was reached.
    StepLimit,
    /// The context window was exceeded.
    ContextOverflow,
    /// A cost or token budget was used up.
    BudgetExceeded,
    /// The harness's wall time ran out.
    Timeout,
    /// The harness gave up after repeated errors of the agent.
    TooManyErrors,
    /// The agent's own program failed.
    AgentError,
    /// The simulated user failed.
    UserError,
    /// Provider, network, container or harness failed.
    InfrastructureError,
    /// Somebody stopped it.
    Cancelled,
    /// The source's word says nothing to recoup.
    Other,
}

impl Outcome {
    /// Nothing is known.
    pub fn unknown() -> Self {
        Self { status: Status::Unknown, score: None, termination: None, evidence: String::new() }
    }

    /// The source's own pass flag, under the name it has there.
    pub fn from_flag(passed: bool, field: &str) -> Self {
        let status = if passed { Status::Success } else { Status::Failure };
        Self { status, score: None, termination: None, evidence: format!("{field} = {passed}") }
    }

    /// A score against the least value that passes.
    pub fn from_score(score: f64, success_at: f64, field: &str) -> Self {
        let (status, relation) =
            if score >= success_at { (Status::Success, "≥") } else { (Status::Failure, "<") };
        let evidence = format!("{field} = {score} {relation} {success_at}");
        Self { status, score: Some(score), termination: None, evidence }
    }

    /// Adds how it ended.
    #[must_use]
    pub fn ended(mut self, kind: TerminationKind, native: impl Into<String>) -> Self {
        self.termination = Some(Termination { kind, native: native.into() });
        self
    }

    /// The kind of its end, where known.
    pub fn termination_kind(&self) -> Option<TerminationKind> {
        self.termination.as_ref().map(|termination| termination.kind)
    }
}

/// The end of a branch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Leaf {
    /// Position of its node; `None` only in a trajectory without nodes.
    pub node: Option<usize>,
    /// How it ended.
    pub outcome: Outcome,
}
