//! What models answered: `ask`.

use serde::Serialize;

use crate::models::{Amount, Finish, LedgerLine, Usage};

/// What a model answered (`ask`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ModelAnswer<'a> {
    /// The model that was asked.
    pub model: &'a str,
    /// The model that answered, as the provider names it.
    pub answered_by: &'a str,
    /// Its answer.
    pub text: &'a str,
    /// Why the answer does not fit the schema that was asked for, where it does not.
    pub wrong: Option<&'a str>,
    /// Its reasoning, where the provider gives it apart.
    pub reasoning: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Finish,
    /// Tokens, as the provider counts them.
    pub usage: Option<Usage>,
    /// Money, in dollars; `None` without a price.
    pub cost_usd: Option<f64>,
    /// Time until the answer was whole, in milliseconds.
    pub latency_ms: u64,
}

/// An answer to one of several questions (`ask --prompts`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NumberedAnswer<'a> {
    /// Which question, from 0.
    pub index: usize,
    /// The answer; `None` where there is none.
    pub text: Option<&'a str>,
    /// Why the answer does not fit the schema that was asked for, where it does not.
    pub wrong: Option<&'a str>,
    /// Why the answer ended.
    pub finish: Option<Finish>,
    /// Why there is no answer.
    pub error: Option<String>,
}

/// What several questions took (`ask --prompts`): the last line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Questioned {
    /// Questions.
    pub prompts: u64,
    /// Questions without an answer.
    pub failed: u64,
    /// Answers that do not fit the schema that was asked for.
    pub unfit: u64,
    /// Questions that are answered later.
    pub pending: u64,
    /// Questions that the model answered now.
    pub calls: u64,
    /// Questions that were answered from before.
    pub cached: u64,
    /// What was spent now.
    pub spent: Amount,
    /// What it took, by stage and model.
    pub ledger: Vec<LedgerLine>,
}
