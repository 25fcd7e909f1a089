//! An estimate: what questions will likely take, before the first is sent.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{AskedModel, ChatRequest, Cost, ModelError, Usage, tokens};
use crate::id::TrajectoryId;

/// What questions will likely take. Answers are counted as long as they may be.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Estimate {
    /// Questions to send.
    pub requests: u64,
    /// Questions whose answers are kept, which cost nothing.
    pub cached: u64,
    /// Runs that they are about.
    pub runs: u64,
    /// Bytes of text that leave this machine.
    pub bytes_leaving: u64,
    /// Tokens of the questions.
    pub prompt_tokens: u64,
    /// Tokens of the answers, at most.
    pub completion_tokens: u64,
    /// Money, in dollars, for the models that have a price.
    #[serde(rename = "cost_usd")]
    #[cfg_attr(test, schemars(with = "f64"))]
    pub cost: Cost,
    /// The same, where every token is dear and all that may be asked again is.
    #[serde(rename = "cost_most_usd")]
    #[cfg_attr(test, schemars(with = "f64"))]
    pub cost_most: Cost,
    /// Hosts that are asked.
    pub hosts: BTreeSet<String>,
    /// Models elsewhere whose price is not known.
    pub unpriced: BTreeSet<String>,
    #[serde(skip)]
    seen: BTreeSet<TrajectoryId>,
}

/// Tokens that a turn of a conversation and what answers it likely add to the question after it.
const TOKENS_A_TURN: u64 = 150;

impl Estimate {
    /// Adds the questions of a conversation of so many turns, from its first one on.
    pub fn add_conversation(&mut self, model: &AskedModel, first: &ChatRequest, turns: u64) {
        let growth = TOKENS_A_TURN * turns.saturating_sub(1) / 2;
        let prompt = tokens::likely_prompt(first) + growth;
        let usage = Usage { prompt, cached_prompt: 0, completion: u64::from(first.max_tokens) };
        let before = self.cost;
        self.add_questions(model, usage, tokens::request_bytes(first) + 3 * growth, turns);
        self.cost_most += Cost(self.cost.0 - before.0);
    }

    /// Adds what may be asked after a first question: `count` more, each longer by up to `bytes`.
    pub fn add_again(&mut self, model: &AskedModel, first: &ChatRequest, count: u32, bytes: usize) {
        let most = model.at_most(first);
        let more = model.price().map_or(Cost(0), |price| price.at_most(bytes as u64, 0));
        self.cost_most += Cost((most.cost + more).0.saturating_mul(u64::from(count)));
    }

    fn add_questions(&mut self, model: &AskedModel, usage: Usage, bytes: u64, count: u64) {
        self.requests += count;
        self.prompt_tokens += count * usage.prompt;
        self.completion_tokens += count * usage.completion;
        if let Some(host) = model.host() {
            self.hosts.insert(host.to_owned());
        }
        if !model.is_local() {
            self.bytes_leaving += count * bytes;
        }
        match model.price() {
            Some(price) => self.cost += Cost(price.of(usage).0.saturating_mul(count)),
            None if !model.is_local() => {
                self.unpriced.insert(model.identity().model.clone());
            }
            None => {}
        }
    }

    /// Adds a question about a run, or about none.
    ///
    /// # Errors
    /// [`ModelError::Cache`].
    pub fn add(
        &mut self,
        model: &AskedModel,
        request: &ChatRequest,
        run: Option<TrajectoryId>,
    ) -> Result<(), ModelError> {
        if model.is_kept(request)? {
            self.cached += 1;
            return Ok(());
        }
        let usage = Usage {
            prompt: tokens::likely_prompt(request),
            cached_prompt: 0,
            completion: u64::from(request.max_tokens),
        };
        if run.is_some_and(|run| self.seen.insert(run)) {
            self.runs += 1;
        }
        self.add_questions(model, usage, tokens::request_bytes(request), 1);
        self.cost_most += model.at_most(request).cost;
        Ok(())
    }
}
