//! Answers put together: from the pieces of an event stream or from a whole body, as messages for the
//! record. What the client gets is never made from them.

mod chat;
mod events;
mod messages;
mod responses;

use std::collections::BTreeMap;

use bytes::Bytes;
use recoup::importers::recoup_proxy::Api;
use recoup::trajectory::{Call, Usage};
use serde_json::Value;
use serde_json::value::RawValue;

use self::events::Events;

/// An answer, whole.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// Alternatives, mostly one, each a list of messages in the client's API.
    pub alternatives: Vec<Vec<Box<RawValue>>>,
    pub call: Call,
    /// The upstream's id of it.
    pub id: Option<String>,
}

/// Why what came is no whole answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    /// The stream or the body ended early.
    #[error("the upstream's answer ends before its end")]
    Cut,
    /// The upstream sent an error in place of an answer, or in the midst of one.
    #[error("{0}")]
    Upstream(String),
    /// It is in a form that is not known.
    #[error("the upstream's answer is not understood: {0}")]
    Form(String),
}

/// Reads the body of an answer that came in one piece.
pub(super) fn whole(api: Api, body: &[u8]) -> Result<Answer, NoAnswer> {
    match api {
        Api::Chat => chat::whole(body),
        Api::Responses => responses::whole(body),
        Api::Messages => messages::whole(body),
    }
}

/// Reads an answer while it streams by.
pub(super) struct Stream {
    events: Events,
    assembling: Assembling,
}

enum Assembling {
    Chat(Box<chat::Assembling>),
    Responses(responses::Assembling),
    Messages(Box<messages::Assembling>),
}

impl Stream {
    /// Of an API's events.
    pub(super) fn new(api: Api) -> Self {
        let assembling = match api {
            Api::Chat => Assembling::Chat(Box::default()),
            Api::Responses => Assembling::Responses(responses::Assembling::default()),
            Api::Messages => Assembling::Messages(Box::default()),
        };
        Self { events: Events::default(), assembling }
    }

    /// Takes the next bytes; true once the answer is whole.
    pub(super) fn feed(&mut self, bytes: &Bytes) -> bool {
        let Self { events, assembling } = self;
        events.feed(bytes, |data| match assembling {
            Assembling::Chat(chat) => chat.event(data),
            Assembling::Responses(responses) => responses.event(data),
            Assembling::Messages(messages) => messages.event(data),
        });
        self.is_whole()
    }

    fn is_whole(&self) -> bool {
        match &self.assembling {
            Assembling::Chat(chat) => chat.is_whole(),
            Assembling::Responses(responses) => responses.is_whole(),
            Assembling::Messages(messages) => messages.is_whole(),
        }
    }

    /// The answer, once no more bytes come. `cut` says that they stopped too early.
    pub(super) fn finish(self, cut: bool) -> Result<Answer, NoAnswer> {
        if self.events.is_overlong() {
            return Err(NoAnswer::Form("an event is too long".to_owned()));
        }
        match self.assembling {
            Assembling::Chat(chat) => chat.finish(cut),
            Assembling::Responses(responses) => responses.finish(),
            Assembling::Messages(messages) => messages.finish(),
        }
    }
}

/// Tokens as the APIs count them, under their several names.
fn usage(value: &Value) -> Option<Usage> {
    let count = |names: &[&str]| names.iter().find_map(|name| value.pointer(name)?.as_u64());
    let cached = count(&["/prompt_tokens_details/cached_tokens", "/input_tokens_details/cached_tokens"]);
    // Anthropic counts what the cache gave and took beside the rest.
    let read = count(&["/cache_read_input_tokens"]);
    let written = count(&["/cache_creation_input_tokens"]).unwrap_or(0);
    Some(Usage {
        input: count(&["/prompt_tokens", "/input_tokens"])? + read.unwrap_or(0) + written,
        output: count(&["/completion_tokens", "/output_tokens"])?,
        cached: cached.or(read).unwrap_or(0),
        reasoning: count(&[
            "/completion_tokens_details/reasoning_tokens",
            "/output_tokens_details/reasoning_tokens",
        ])
        .unwrap_or(0),
    })
}

/// What a provider says in place of an answer, shortened.
fn said(value: &Value) -> String {
    const CHARACTERS_MAX: usize = 500;
    let message = value.pointer("/error/message").or_else(|| value.get("message")).and_then(Value::as_str);
    let text = message.map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(CHARACTERS_MAX).collect()
}

fn raw(value: &impl serde::Serialize) -> Result<Box<RawValue>, NoAnswer> {
    serde_json::value::to_raw_value(value).map_err(|error| NoAnswer::Form(error.to_string()))
}

/// A JSON object whose values are kept as they came.
type RawObject = BTreeMap<String, Box<RawValue>>;
