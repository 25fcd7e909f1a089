//! What the report says of judges.

use std::collections::BTreeMap;

use serde::Serialize;

use super::Capped;
use crate::judges::quality::{Quality, Share};

/// What a panel of judges made of the project's runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judges {
    /// The panels' models, as `proposer + other`, with the runs that each has judged.
    pub panels: BTreeMap<String, u64>,
    /// Share of judged runs with an admitted answer: the yield.
    pub admitted: Option<Share>,
    /// What each gate said of the last answers, S1 to S9 and M1 to M4.
    pub gates: BTreeMap<String, GateCount>,
    /// Questions that were answered.
    pub calls: u64,
    /// Tokens of the questions, as far as the providers say.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Cost in US dollars at the prices of the day; `None` where a model has none.
    pub cost_usd: Option<f64>,
    /// The same for one admitted answer.
    pub cost_per_admitted_usd: Option<f64>,
    /// Share of runs on which rules and judge name the same step, of those where both name one.
    pub same_step_as_rules: Option<Share>,
    /// Share within three steps.
    pub within_3_of_rules: Option<Share>,
    /// Runs to look at, those where a member of the panel disagrees first.
    pub disagreements: Capped<Disagreement>,
    /// How far the panel can be believed.
    pub quality: Option<Quality>,
}

/// What one gate said of the last answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateCount {
    /// Answers admitted.
    pub admitted: u64,
    /// Answers refused.
    pub rejected: u64,
    /// Answers that it does not apply to, or of which a judge could not say.
    pub abstained: u64,
    /// Runs left without a diagnosis because this gate refused first.
    pub decided: u64,
}

/// A run on which steps differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Disagreement {
    /// Trajectory id in full.
    pub run: String,
    /// Task key, redacted.
    pub task: String,
    /// The rules' step, where they name one.
    pub rules: Option<usize>,
    /// The step of each member that names one, the proposer's first.
    pub judges: Vec<Option<usize>>,
    /// Whether the proposal was admitted.
    pub admitted: bool,
}
