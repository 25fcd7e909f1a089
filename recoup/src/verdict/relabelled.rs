//! Hindsight: a goal that a failed run did achieve, and every goal that was refused on the way.

use serde::{Deserialize, Serialize};

use super::Quote;
use crate::json::Json;

/// What an accepted goal rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The environment's own verifier passed it on the run, executed again up to the cut.
    Environment,
    /// Every deterministic gate passed it, without any model.
    Rules,
    /// Both judges, of two families of models.
    TwoJudges,
    /// One judge alone; in no view unless asked for.
    OneJudge,
}

impl Evidence {
    /// Every class, the strongest first.
    pub const ALL: [Self; 4] = [Self::Environment, Self::Rules, Self::TwoJudges, Self::OneJudge];

    /// The class's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Environment => "environment",
            Self::Rules => "rules",
            Self::TwoJudges => "two_judges",
            Self::OneJudge => "one_judge",
        }
    }
}

/// A part of a goal and the bytes that it rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GoalClaim {
    /// The part, as it stands in the goal.
    pub text: String,
    /// What it rests on.
    pub facts: Vec<Quote>,
}

/// The last message of the run under its new goal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FinalAnswer {
    /// The run's own, which satisfies the goal.
    Kept {
        /// Position of its message.
        node: usize,
    },
    /// One composed of facts: synthetic, and not learned from unless asked for.
    Composed {
        /// Its text.
        text: String,
    },
}

/// An accepted goal's place in the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Acceptance {
    /// What it rests on.
    pub evidence: Evidence,
    /// c₁: of the relabeler, or 1 where no model was asked.
    pub relabeler_confidence: f64,
    /// c₂: of the second judge, or 1 where no model was asked; 0 where one judged alone.
    pub judge_confidence: f64,
    /// Position of the last message of the step that completed the goal: what comes after is cut off.
    pub cut_node: usize,
    /// How the cut run ends.
    pub answer: FinalAnswer,
}

/// A goal's refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GoalRefusal {
    /// The gate or judge that refused it.
    pub gate: String,
    /// Why.
    pub reason: String,
}

/// A goal in hindsight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Relabel {
    /// The goal, as a user would have asked.
    pub goal: String,
    /// Its claims; none where the environment gave it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<GoalClaim>,
    /// The same goal in the names that the run showed, for a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub specification: Option<Json>,
    /// The goal accepted, and where.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Acceptance>,
    /// Why it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected: Option<GoalRefusal>,
    /// Which proposal about the run it was, from 0: a model's attempt, or a template's wording.
    pub attempt: u32,
    /// Whether runs of other tasks were too few, so that the bundled background stood in for them.
    pub background: bool,
    /// Whether the environment was withheld from relabeler and gates.
    pub blind: bool,
    /// What the environment's verifier says of the goal; with `blind` it was asked afterwards, to score only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
}

impl Relabel {
    /// Mean of the two confidences, which the loss weight is multiplied with; 0 for a refused goal.
    pub fn confidence(&self) -> f64 {
        let both = self.accepted.as_ref().map(|it| (it.relabeler_confidence, it.judge_confidence));
        both.map_or(0.0, |(relabeler, judge)| f64::midpoint(relabeler, judge))
    }
}
