//! A model as a judge: what is asked, and how an answer becomes a proposal or an opinion.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::answer::{opinion, opinion_schema, proposal, proposal_schema};
use super::prompts::{DIAGNOSE, Prompt, REVIEW};
use super::{Answer, Case, Judge, Opinion, Proposal, Refused, Shown, Spent};
use crate::models::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, ModelError, ModelIdentity, Price, ReplySchema, exchange,
    is_other, shortened, tokens, whole,
};
use crate::trajectory::Citation;
use crate::visible::visible_controls;

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

/// A model that judges.
pub struct ModelJudge<'a> {
    model: Box<dyn ChatModel + 'a>,
    config: JudgeConfig,
    room: Arc<Room>,
}

impl JudgeConfig {
    /// The first question about a run: what it costs can be told without asking it.
    pub fn first_question(&self, case: &Case<'_>) -> ChatRequest {
        self.proposing(case, &[]).0
    }

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

    fn proposing(&self, case: &Case<'_>, refused: &[Refused]) -> (ChatRequest, Shown) {
        let bytes = self.window_bytes();
        let (mut newest, mut taken) = (Vec::new(), 0);
        for (index, refused) in refused.iter().enumerate().rev() {
            let said = exchange(&refused.answer, bytes / 8, refusal(refused, index + 1));
            let more: usize = said.iter().map(|message| message.content.len()).sum();
            // The last one always; older ones in a quarter of the window.
            if !newest.is_empty() && taken + more > bytes / 4 {
                break;
            }
            taken += more;
            newest.push(said);
        }
        let record = bytes.saturating_sub(taken).max(bytes / 2);
        let shown = case.show(record, refused.last().map_or(&[], |last| &last.cited));
        let mut messages = vec![ChatMessage::system(DIAGNOSE.text), ChatMessage::user(shown.text.as_str())];
        messages.extend(newest.into_iter().rev().flatten());
        (self.request(messages, &DIAGNOSE, proposal_schema()), shown)
    }

    fn reviewing(&self, case: &Case<'_>, proposal: &Proposal, cited: &[Citation]) -> (ChatRequest, Shown) {
        let shown = case.show(self.window_bytes(), cited);
        let user = format!("{}{}", shown.text, told(case, proposal));
        let messages = vec![ChatMessage::system(REVIEW.text), ChatMessage::user(user)];
        (self.request(messages, &REVIEW, opinion_schema()), shown)
    }

    fn request(&self, messages: Vec<ChatMessage>, prompt: &Prompt, schema: ReplySchema) -> ChatRequest {
        ChatRequest {
            schema: Some(schema),
            temperature: self.temperature,
            sample: self.sample,
            prompt_hash: Some(prompt.hash.clone()),
            ..ChatRequest::new(messages, self.answer_tokens)
        }
    }
}

impl<'a> ModelJudge<'a> {
    /// Makes a judge of a model, with what is known of the room that it has.
    pub fn new(model: Box<dyn ChatModel + 'a>, config: JudgeConfig, room: Arc<Room>) -> Self {
        Self { model, config, room }
    }

    fn answer<T>(&self, read: Result<T, String>, reply: ChatReply, shown: Shown, spent: Spent) -> Answer<T> {
        let answered_by = is_other(&self.identity().model, &reply.model).then_some(reply.model);
        Answer { read, text: reply.text, shown, spent, answered_by }
    }

    /// Asks, with half the record where that is more than the model takes.
    fn ask(
        &self,
        question: impl Fn(JudgeConfig) -> (ChatRequest, Shown),
    ) -> Result<(ChatReply, Shown, Spent), ModelError> {
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
                    return Ok((reply, shown, spent));
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
}

impl Judge for ModelJudge<'_> {
    fn identity(&self) -> &ModelIdentity {
        self.model.identity()
    }

    fn propose(&self, case: &Case<'_>, refused: &[Refused]) -> Result<Answer<Proposal>, ModelError> {
        let (reply, shown, spent) = self.ask(|config| config.proposing(case, refused))?;
        let read = whole(&reply).and_then(|()| proposal(&reply.text));
        Ok(self.answer(read, reply, shown, spent))
    }

    fn review(
        &self,
        case: &Case<'_>,
        proposal: &Proposal,
        cited: &[Citation],
    ) -> Result<Answer<Opinion>, ModelError> {
        let read = |reply: &ChatReply| whole(reply).and_then(|()| opinion(&reply.text));
        let (reply, shown, mut spent) = self.ask(|config| config.reviewing(case, proposal, cited))?;
        let wrong = match read(&reply) {
            Ok(opinion) => return Ok(self.answer(Ok(opinion), reply, shown, spent)),
            Err(wrong) => wrong,
        };
        let again = self.ask(|config| {
            let (request, shown) = config.reviewing(case, proposal, cited);
            (request.again(&reply.text, &wrong), shown)
        });
        match again {
            Ok((reply, shown, more)) => {
                spent.add(more);
                Ok(self.answer(read(&reply), reply, shown, spent))
            }
            Err(error) if error.is_context_full() => Ok(self.answer(Err(wrong), reply, shown, spent)),
            Err(error) => Err(error),
        }
    }
}

/// A proposal as data for another judge. It was made from foreign text, so it stands between marks too.
fn told(case: &Case<'_>, proposal: &Proposal) -> String {
    let citations: Vec<_> =
        proposal.citations.iter().map(|cited| json!({ "node": cited.node, "quote": cited.quote })).collect();
    let candidate = proposal
        .candidate
        .as_ref()
        .map(|candidate| json!({ "action": candidate.action(), "rationale": candidate.rationale }));
    let diagnosis = json!({
        "citations": citations,
        "decisive_step": proposal.decisive_step,
        "responsible_agent": proposal.responsible_agent,
        "explanation": proposal.explanation,
        "candidate": candidate,
        "blame": proposal.blame.as_ref().map(|blame| json!({ "party": blame.party, "reason": blame.reason })),
    });
    let (mark, text) = (case.mark(), diagnosis.to_string());
    // A judge that echoes the mark forges no line by it: JSON is one line.
    format!("\nThe diagnosis to check:\nBEGIN {mark}\n{}\nEND {mark}\n", visible_controls(&text))
}

/// Why an answer was not admitted, in words for the judge that gave it. Its number, from 1, tells two questions apart
/// whose answers are the same.
fn refusal(refused: &Refused, number: usize) -> String {
    let asks = match refused.gate.as_str() {
        "S1" => "the answer is one JSON object of the given form",
        "S2" => "the decisive step is a node that is marked as a turn",
        "S3" => "the responsible agent is the author of the decisive step",
        "S4" => "every quote stands exactly once in the text of the node it names",
        "S5" => "at least one citation stands at or before the decisive step",
        "S6" => {
            "the candidate is a valid call of a listed tool, or an action in text where agents act so, and not what was done"
        }
        "S7" => "nothing that is hidden is cited",
        "S8" => "no answer stands in it that the record does not hold",
        "S9" => "explanation and candidate name nothing that the record does not hold",
        "M1" => "the explanation follows from the citations",
        "M2" => "the candidate uses only what was known before the decisive step",
        "M3" => "the candidate addresses the error that is named",
        "M4" => "the error was not made up for later",
        _ => "the answer is admitted by every judge",
    };
    // The reason may repeat words of the record, so it is data as well.
    let reason = serde_json::Value::String(visible_controls(shortened(&refused.reason)).into_owned());
    format!(
        "Your answer {number} was not admitted. Gate {} asks that {asks}. What it found, as data: {reason}\nAnswer again, \
         whole, in the same form.",
        refused.gate
    )
}
