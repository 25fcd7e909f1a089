//! Failure classes: what kind of failure it was.

use serde::{Deserialize, Serialize};

/// Classes of failure (`AgentHER` stage 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The goal was left open.
    Incomplete,
    /// A rule of the task or of a tool was broken.
    ConstraintViolation,
    /// Finished, with a wrong result.
    WrongResult,
    /// Failing tool calls decided it.
    ToolError,
    /// It states or uses what no observation holds.
    Hallucination,
    /// It worked on something else.
    OffTopic,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Incomplete,
        Self::ConstraintViolation,
        Self::WrongResult,
        Self::ToolError,
        Self::Hallucination,
        Self::OffTopic,
    ];

    /// The class's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::ConstraintViolation => "constraint_violation",
            Self::WrongResult => "wrong_result",
            Self::ToolError => "tool_error",
            Self::Hallucination => "hallucination",
            Self::OffTopic => "off_topic",
        }
    }
}

/// What kind of failure it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailureClass {
    /// The class.
    pub class: Class,
    /// A finer mode within it (`step_limit`, `context_overflow`, `repetitive_loop`), where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether the run could still have been saved after its decisive step.
    pub recoverable: bool,
    /// 0 mild … 1 catastrophic.
    pub severity: f64,
    /// `1 − severity` for severity ≤ 0.7, else 0: the worst failures teach least.
    pub loss_weight: f64,
}
