//! A chat model that acts: it is shown the episode so far in its own form and answers with a turn.

use std::fmt::Write as _;

use super::super::conversation::{function, messages, tools, unread};
use crate::environments::{Action, Scene};
use crate::interleaving::Reading;
use crate::models::{
    ChatModel, ChatReply, ChatRequest, Finish, Logprobs, ModelError, Price, TokenLogprob, tokens,
};
use crate::rollout::forms::{self, Form, Read, ToolTypes, Written};
use crate::rollout::{Policy, PolicyError, SampledTurn, Situation, Spent, TakesAdvice, Turn};

/// How a model is asked.
#[derive(Clone, Copy)]
pub struct ChatSettings {
    /// The form it writes turns in.
    pub form: &'static dyn Form,
    /// Most tokens of an answer.
    pub max_answer: u32,
    /// Sampling temperature; 0 for the likeliest answer.
    pub temperature: f64,
    /// Which version of a model that goes by one name it is: a student keeps its name from round to round, and an
    /// earlier round's answers are not its own.
    pub version: u32,
    /// Whether it is asked how likely it finds the tokens that it writes.
    pub logprobs: bool,
}

/// A policy that asks a chat model.
pub struct Chat<M> {
    name: String,
    model: M,
    price: Option<Price>,
    settings: ChatSettings,
}

impl<M: ChatModel> Chat<M> {
    /// A policy of that model. Its name tells everything that decides what it does.
    pub fn new(model: M, price: Option<Price>, settings: ChatSettings) -> Self {
        let ChatSettings { form, max_answer, temperature, version, .. } = settings;
        let mut name = model.identity().name();
        if !form.is_native() {
            name.push('/');
            name.push_str(form.name());
        }
        if temperature > 0.0 {
            let _ = write!(name, "@{temperature}");
        }
        if max_answer != Self::MAX_ANSWER {
            let _ = write!(name, ",{max_answer}");
        }
        if version > 0 {
            let _ = write!(name, "#{version}");
        }
        Self { name, model, price, settings }
    }

    /// Most tokens of an answer where nothing else is said.
    pub const MAX_ANSWER: u32 = 1024;

    /// What the model is asked in a situation.
    pub fn request(&self, situation: &Situation<'_>) -> ChatRequest {
        let ChatSettings { form, max_answer, temperature, version, logprobs } = self.settings;
        let tools = tools(situation.tools);
        let messages = messages(situation, form, &tools);
        ChatRequest {
            tools: if form.is_native() { tools.iter().map(function).collect() } else { Vec::new() },
            temperature,
            // The likeliest answer is the same whatever the seed, and one paid for is enough. Providers read 31 bits.
            seed: (temperature > 0.0).then(|| situation.draw("chat", 1 << 31)),
            sample: version,
            logprobs: if logprobs { Logprobs::Answer } else { Logprobs::No },
            ..ChatRequest::new(messages, max_answer)
        }
    }

    fn spent(&self, request: &ChatRequest, reply: &ChatReply) -> Spent {
        let usage = reply.usage.unwrap_or_else(|| crate::models::Usage {
            prompt: tokens::likely_prompt(request),
            cached_prompt: 0,
            completion: tokens::text(reply.text.len() as u64),
        });
        Spent {
            tokens: usage.prompt.saturating_add(usage.completion),
            answer_tokens: usage.completion,
            cost: self.price.map(|price| price.of(usage)),
            milliseconds: reply.took_ms,
        }
    }
}

impl<M: ChatModel> Policy for Chat<M> {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_deterministic(&self) -> bool {
        self.settings.temperature <= 0.0
    }

    fn advice(&self) -> TakesAdvice {
        TakesAdvice::Read
    }

    fn act(&self, situation: &Situation<'_>, _: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let request = self.request(situation);
        let failed = |error| PolicyError::Model { policy: self.name.clone(), error };
        let reply = self.model.complete(&request).map_err(failed)?;
        let spent = self.spent(&request, &reply);
        let types = ToolTypes::of(&tools(situation.tools));
        let sampled = reply.tokens.clone().map(|tokens| SampledTurn {
            message: Written { content: reply.text.clone(), calls: reply.calls.clone() }.into_message(),
            tokens,
        });
        Ok(Turn { spent, sampled, ..turn(self.settings.form, reply, &types) })
    }

    fn score(
        &self,
        situation: &Situation<'_>,
        written: &SampledTurn,
    ) -> Result<Option<Vec<TokenLogprob>>, PolicyError> {
        let mut request = ChatRequest { logprobs: Logprobs::Given, max_tokens: 1, ..self.request(situation) };
        request.messages.push(written.message.clone());
        // The token that ends a turn has no text, and ends a given one too.
        let said = match written.tokens.split_last() {
            Some((end, said)) if end.token.is_empty() => said,
            _ => &written.tokens,
        };
        request.given = said.iter().map(|token| token.id).collect::<Option<_>>().unwrap_or_default();
        match self.model.complete(&request) {
            Ok(reply) => Ok(reply.tokens),
            // It takes no such question. Whether it is there at all shows when it is asked for a turn.
            Err(ModelError::Unsupported(_) | ModelError::Status { status: 400..=499, .. }) => Ok(None),
            Err(error) => Err(PolicyError::Model { policy: self.name.clone(), error }),
        }
    }
}

/// The turn that an answer is.
fn turn(form: &dyn Form, reply: ChatReply, tools: &ToolTypes) -> Turn {
    let written = Written { content: reply.text, calls: reply.calls };
    let Read { turn, reasoning, reading } = forms::read(form, &written, tools);
    let thought = reply.reasoning.or(reasoning);
    let Ok(turn) = turn else {
        let is_silent = written.content.trim().is_empty() && written.calls.is_empty();
        // A model that is cut in its thoughts has not ended the run; one that says nothing has.
        let actions = if is_silent && reply.finish != Finish::Length && thought.is_none() {
            Vec::new()
        } else {
            let calls = written.calls.iter().map(|call| format!("{} {}", call.name, call.arguments));
            let said = (!written.content.is_empty()).then_some(written.content.clone());
            let text: Vec<String> = said.into_iter().chain(calls).collect();
            vec![unread(&text.join("\n"))]
        };
        return Turn { thought, actions, reading: Some(Reading::Unreadable), ..Turn::default() };
    };
    if turn.calls.is_empty() {
        let actions = vec![Action::say(turn.text)];
        return Turn { thought, actions, reading: Some(reading), ..Turn::default() };
    }
    let actions = turn.calls.into_iter().map(|call| Action::call(call.name, call.arguments)).collect();
    let said = Some(turn.text).filter(|text| !text.is_empty());
    Turn { thought, said, actions, reading: Some(reading), ..Turn::default() }
}
