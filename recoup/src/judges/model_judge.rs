//! A model as a judge: what is asked, and how an answer becomes a proposal or an opinion.

use serde_json::json;

use super::answer::{opinion, opinion_schema, proposal, proposal_schema};
use super::prompts::{DIAGNOSE, Prompt, REVIEW};
use super::{Answer, Case, Judge, Opinion, Proposal, Refused, Shown, Spent};
use crate::models::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, Finish, ModelError, ModelIdentity, Price, ReplySchema,
};
use crate::trajectory::Citation;
use crate::visible::visible_controls;

/// Smallest window, in tokens.
pub const WINDOW_TOKENS_MIN: usize = 1_000;
/// Bytes that are taken for a token. Text has 4 or more; a record full of numbers has fewer.
const TOKEN_BYTES: usize = 3;
/// Bytes of a refused answer that its judge sees again.
const REFUSED_BYTES: usize = 4_000;

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

/// A model that judges.
pub struct ModelJudge<'a> {
    model: Box<dyn ChatModel + 'a>,
    config: JudgeConfig,
}

impl JudgeConfig {
    /// The first question about a run: what it costs can be told without asking it.
    pub fn first_question(&self, case: &Case<'_>) -> ChatRequest {
        self.proposing(case, &[], self.window_tokens).0
    }

    /// Bytes of the record in one question.
    pub fn window_bytes(&self) -> usize {
        budget(self.window_tokens)
    }

    fn proposing(&self, case: &Case<'_>, refused: &[Refused], tokens: usize) -> (ChatRequest, Shown) {
        let shown = case.show(budget(tokens), refused.last().map_or(&[], |last| &last.cited));
        let mut messages = vec![ChatMessage::system(DIAGNOSE.text), ChatMessage::user(shown.text.as_str())];
        for refused in refused {
            let kept = refused.answer.floor_char_boundary(REFUSED_BYTES);
            messages.push(ChatMessage::assistant(visible_controls(&refused.answer[..kept])));
            messages.push(ChatMessage::user(refusal(refused)));
        }
        (self.request(messages, &DIAGNOSE, proposal_schema()), shown)
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

/// Bytes of a record in so many tokens, of which there are [`WINDOW_TOKENS_MIN`] at least.
fn budget(tokens: usize) -> usize {
    tokens.max(WINDOW_TOKENS_MIN).saturating_mul(TOKEN_BYTES)
}

impl<'a> ModelJudge<'a> {
    /// Makes a judge of a model.
    pub fn new(model: Box<dyn ChatModel + 'a>, config: JudgeConfig) -> Self {
        Self { model, config }
    }

    /// Asks, with half the record where the model says that it is too much.
    fn ask(
        &self,
        question: impl Fn(usize) -> (ChatRequest, Shown),
    ) -> Result<(ChatReply, Shown, Spent), ModelError> {
        let mut tokens = self.config.window_tokens;
        loop {
            let (request, shown) = question(tokens);
            match self.model.complete(&request) {
                Ok(reply) => {
                    let usage = reply.usage.unwrap_or_default();
                    let cost_usd = self.config.price.map(|price| price.of(usage).to_usd());
                    let spent = Spent { calls: 1, usage, cost_usd };
                    return Ok((reply, shown, spent));
                }
                Err(error) if is_too_much(&error) && tokens / 2 >= WINDOW_TOKENS_MIN => tokens /= 2,
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
        let (reply, shown, spent) = self.ask(|tokens| self.config.proposing(case, refused, tokens))?;
        let read = whole(&reply).and_then(|()| proposal(&reply.text));
        Ok(Answer { read, text: reply.text, shown, spent })
    }

    fn review(
        &self,
        case: &Case<'_>,
        proposal: &Proposal,
        cited: &[Citation],
    ) -> Result<Answer<Opinion>, ModelError> {
        let (reply, shown, spent) = self.ask(|tokens| {
            let shown = case.show(budget(tokens), cited);
            let user = format!("{}{}", shown.text, told(case, proposal));
            let messages = vec![ChatMessage::system(REVIEW.text), ChatMessage::user(user)];
            (self.config.request(messages, &REVIEW, opinion_schema()), shown)
        })?;
        let read = whole(&reply).and_then(|()| opinion(&reply.text));
        Ok(Answer { read, text: reply.text, shown, spent })
    }
}

/// # Errors
/// Where the answer was cut or withheld.
fn whole(reply: &ChatReply) -> Result<(), String> {
    match reply.finish {
        Finish::Length => Err("the answer was cut at its limit of tokens".to_owned()),
        Finish::Filtered => Err("the provider withheld the answer".to_owned()),
        _ => Ok(()),
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

/// Why an answer was not admitted, in words for the judge that gave it.
fn refusal(refused: &Refused) -> String {
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
    let reason = serde_json::Value::String(visible_controls(&refused.reason).into_owned());
    format!(
        "Your answer was not admitted. Gate {} asks that {asks}. What it found, as data: {reason}\nAnswer again, \
         whole, in the same form.",
        refused.gate
    )
}

/// Whether a provider says that the question is longer than it takes.
fn is_too_much(error: &ModelError) -> bool {
    let ModelError::Status { status: 400 | 413 | 422 | 500, message, .. } = error else { return false };
    let message = message.to_lowercase();
    [
        "context length",
        "context_length",
        "context window",
        "context size",
        "too long",
        "too many tokens",
        "too large",
    ]
    .iter()
    .any(|words| message.contains(words))
}
