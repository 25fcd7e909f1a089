//! A seat: a model that is asked about records, and what is known of how long a question it takes.
//!
//! A model that refuses a question as too long is asked again with half the record, and every limit is met once and
//! not once a run. An answer that cannot be read is asked for once more, with what is wrong with it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Prompt, Spent};
use crate::models::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, ModelError, ModelIdentity, Price, ReplySchema, tokens,
    whole,
};

/// Smallest window, in tokens.
pub const WINDOW_TOKENS_MIN: usize = 500;
/// Smallest room for an answer that the program chooses by itself, in tokens.
const ANSWER_TOKENS_MIN: u32 = 300;
/// Bytes that are taken for a token. Text has 4 or more; a record full of numbers has fewer.
const TOKEN_BYTES: usize = 3;

/// How a model is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JudgeConfig {
    /// Tokens of the record in one question, at least [`WINDOW_TOKENS_MIN`]; reckoned with three bytes each.
    pub window_tokens: usize,
    /// Most tokens of an answer.
    pub answer_tokens: u32,
    /// Sampling temperature.
    pub temperature: f64,
    /// Which of several answers to the same question is asked for, from 0.
    pub sample: u32,
    /// What the model charges, where that is known.
    pub price: Option<Price>,
}

impl Default for JudgeConfig {
    fn default() -> Self {
        Self { window_tokens: 24_000, answer_tokens: 2_000, temperature: 0.0, sample: 0, price: None }
    }
}

/// How long a question one model takes, as far as it has refused longer ones: shared by all who ask it, so that each
/// limit is met once and not once a run.
#[derive(Debug)]
pub struct Room {
    /// Tokens of the shortest question, the answer's included, that was too long.
    too_long: AtomicU64,
}

impl Default for Room {
    /// Nothing was refused yet.
    fn default() -> Self {
        Self { too_long: AtomicU64::new(u64::MAX) }
    }
}

impl Room {
    fn holds(&self, request: &ChatRequest) -> bool {
        length(request) < self.too_long.load(Ordering::Relaxed)
    }

    fn refuses(&self, request: &ChatRequest) {
        self.too_long.fetch_min(length(request), Ordering::Relaxed);
    }
}

/// Tokens of a question with its answer, about.
fn length(request: &ChatRequest) -> u64 {
    tokens::likely_prompt(request) + u64::from(request.max_tokens)
}

/// A model with how it is asked.
pub struct Seat<'a> {
    model: Box<dyn ChatModel + 'a>,
    config: JudgeConfig,
    room: Arc<Room>,
}

/// An answer, what its question showed, and what asking took.
pub(crate) struct Answered<T> {
    pub reply: ChatReply,
    pub shown: T,
    pub spent: Spent,
}

impl JudgeConfig {
    /// Bytes of the record in one question.
    pub fn window_bytes(&self) -> usize {
        self.window_tokens.max(WINDOW_TOKENS_MIN).saturating_mul(TOKEN_BYTES)
    }

    /// With half the record so many times, and with less room for the answer where that is much beside it.
    fn narrowed(&self, times: u32) -> Self {
        if times == 0 {
            return *self;
        }
        let halves = self.window_tokens.checked_shr(times).unwrap_or(0);
        let window_tokens = halves.max(WINDOW_TOKENS_MIN).min(self.window_tokens);
        let room = u32::try_from(window_tokens / 2).unwrap_or(u32::MAX).max(ANSWER_TOKENS_MIN);
        Self { window_tokens, answer_tokens: self.answer_tokens.min(room), ..*self }
    }

    pub(crate) fn request(
        &self,
        messages: Vec<ChatMessage>,
        prompt: &Prompt,
        schema: ReplySchema,
    ) -> ChatRequest {
        ChatRequest {
            schema: Some(schema),
            temperature: self.temperature,
            sample: self.sample,
            prompt_hash: Some(prompt.hash.clone()),
            ..ChatRequest::new(messages, self.answer_tokens)
        }
    }
}

impl<'a> Seat<'a> {
    /// Gives a model a seat, with what is known of the room that it has.
    pub fn new(model: Box<dyn ChatModel + 'a>, config: JudgeConfig, room: Arc<Room>) -> Self {
        Self { model, config, room }
    }

    /// Which model it is.
    pub fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    /// How it is asked where nothing was too long yet.
    pub fn config(&self) -> &JudgeConfig {
        &self.config
    }

    /// Asks, with half the record where that is more than the model takes.
    ///
    /// # Errors
    /// When no answer came.
    pub(crate) fn ask<T>(
        &self,
        question: impl Fn(JudgeConfig) -> (ChatRequest, T),
    ) -> Result<Answered<T>, ModelError> {
        let mut narrowings = 0;
        loop {
            let config = self.config.narrowed(narrowings);
            let can_narrow = config.window_tokens > WINDOW_TOKENS_MIN;
            let (request, shown) = question(config);
            if can_narrow && !self.room.holds(&request) {
                narrowings += 1;
                continue;
            }
            match self.model.complete(&request) {
                Ok(reply) => {
                    let usage = reply.usage.unwrap_or_default();
                    let cost_usd = self.config.price.map(|price| price.of(usage).to_usd());
                    let spent = Spent { calls: 1, usage, cost_usd };
                    return Ok(Answered { reply, shown, spent });
                }
                Err(error) if error.is_context_full() => {
                    self.room.refuses(&request);
                    if !can_narrow {
                        return Err(error);
                    }
                    narrowings += 1;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The same, once more where the answer cannot be read: what was read, or why nothing was.
    ///
    /// # Errors
    /// When no answer came.
    pub(crate) fn ask_until_read<T, A>(
        &self,
        question: impl Fn(JudgeConfig) -> (ChatRequest, T),
        read: impl Fn(&str) -> Result<A, String>,
    ) -> Result<(Result<A, String>, Answered<T>), ModelError> {
        let read = |answered: &Answered<T>| whole(&answered.reply).and_then(|()| read(&answered.reply.text));
        let first = self.ask(&question)?;
        let wrong = match read(&first) {
            Ok(answer) => return Ok((Ok(answer), first)),
            Err(wrong) => wrong,
        };
        let again = self.ask(|config| {
            let (request, shown) = question(config);
            (request.again(&first.reply.text, &wrong), shown)
        });
        match again {
            Ok(mut again) => {
                again.spent.add(first.spent);
                Ok((read(&again), again))
            }
            Err(error) if error.is_context_full() => Ok((Err(wrong), first)),
            Err(error) => Err(error),
        }
    }
}
