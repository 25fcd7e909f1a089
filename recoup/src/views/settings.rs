//! The settings of views: what a project may choose about what is learned.
//!
//! They stand in `[views]` of the settings file and behind flags, and are part of the configuration's hash.

use serde::{Deserialize, Serialize};

use crate::rollout::interleave::LabelSettings;

/// What a project chooses. Every choice has a default; a key that is not one of these is an error.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ViewSettings {
    /// What `diagnosis_sft` teaches to answer.
    pub diagnosis_answer: DiagnosisAnswer,
    /// What `prevention_sft` teaches.
    pub prevention_target: PreventionTarget,
    /// Whether `step_masked_sft` also learns steps after an error was made up for.
    pub after_recovery: bool,
    /// Whether `preference` also pairs runs of one task whose earlier messages are byte for byte the same.
    pub sibling_pairs: bool,
    /// Whether goals that one judge alone accepted are learned under.
    pub one_judge: bool,
    /// Whether final answers composed of facts are learned, where a run's own does not satisfy its new goal.
    pub synthetic_answers: bool,
    /// Which labels of visited states `dagger` learns from.
    #[serde(skip_serializing_if = "LabelSettings::is_default")]
    pub labels: LabelSettings,
}

/// What a diagnosis says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DiagnosisAnswer {
    /// Step, agent, explanation and fix, with the quotes they rest on: what `recoup` itself asks judges for.
    #[default]
    Full,
    /// Agent and step, as benchmarks of failure attribution ask.
    Benchmark,
}

/// What is learned at the state before an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum PreventionTarget {
    /// The action that was executed and passed.
    #[default]
    #[serde(rename = "action")]
    Action,
    /// That action and every turn of the policy after it, to the end.
    #[serde(rename = "continuation")]
    Continuation,
    /// A sentence that says why, then the action.
    #[serde(rename = "reflection+action")]
    ReflectionAndAction,
}

impl DiagnosisAnswer {
    /// Every answer.
    pub const ALL: [Self; 2] = [Self::Full, Self::Benchmark];

    /// Its word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Benchmark => "benchmark",
        }
    }
}

impl PreventionTarget {
    /// Every target.
    pub const ALL: [Self; 3] = [Self::Action, Self::Continuation, Self::ReflectionAndAction];

    /// Its word in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Action => "action",
            Self::Continuation => "continuation",
            Self::ReflectionAndAction => "reflection+action",
        }
    }
}
