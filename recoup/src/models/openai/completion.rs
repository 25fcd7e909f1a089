//! A completion as servers write it, read into a reply.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::models::answer;
use crate::models::{ChatReply, Finish, ModelCall, ModelError, TokenLogprob};

#[derive(Deserialize)]
pub(super) struct Completion {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    pub(super) prompt_logprobs: Option<Vec<Option<Map<String, Value>>>>,
}

#[derive(Deserialize)]
struct Choice {
    message: Said,
    #[serde(default)]
    logprobs: Option<Value>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said {
    #[serde(default)]
    content: Value,
    #[serde(default)]
    refusal: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Called>>,
}

#[derive(Deserialize)]
struct Called {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Value,
}

impl Completion {
    pub(super) fn into_reply(self, host: &str) -> Result<ChatReply, ModelError> {
        let Some(choice) = self.choices.into_iter().next() else {
            if let Some(error) = &self.error {
                return Err(answer::routed(host, error));
            }
            let message = "it has no choices".to_owned();
            return Err(ModelError::Malformed { host: host.to_owned(), message });
        };
        let tokens = match &self.prompt_logprobs {
            Some(given) => given_tokens(given),
            None => choice.logprobs.as_ref().and_then(answer_tokens),
        };
        let said = choice.message;
        let mut text = plain(&said.content);
        let mut finish = match choice.finish_reason.as_deref() {
            Some("stop") => Finish::Stop,
            Some("length") => Finish::Length,
            Some("tool_calls" | "function_call") => Finish::Calls,
            Some("content_filter") => Finish::Filtered,
            _ => Finish::Other,
        };
        if let Some(refusal) = said.refusal.filter(|refusal| !refusal.is_empty() && text.is_empty()) {
            (text, finish) = (refusal, Finish::Filtered);
        }
        let calls = said.tool_calls.unwrap_or_default().into_iter().map(|call| ModelCall {
            id: call.id.unwrap_or_default(),
            name: call.function.name,
            arguments: match call.function.arguments {
                Value::String(text) => text,
                Value::Null => String::new(),
                other => other.to_string(),
            },
        });
        let usage =
            self.usage.as_ref().and_then(|usage| answer::usage(usage, "prompt_tokens", "completion_tokens"));
        Ok(ChatReply {
            text,
            reasoning: said.reasoning_content.or(said.reasoning).filter(|text| !text.is_empty()),
            calls: calls.collect(),
            finish,
            usage,
            model: self.model.unwrap_or_default(),
            tokens,
            took_ms: 0,
        })
    }
}

/// The tokens of an answer; nothing where one of them has no number.
fn answer_tokens(logprobs: &Value) -> Option<Vec<TokenLogprob>> {
    logprobs.get("content")?.as_array()?.iter().map(|entry| token(entry, "token")).collect()
}

/// The tokens of a conversation. The first has none before it, and so no number.
fn given_tokens(given: &[Option<Map<String, Value>>]) -> Option<Vec<TokenLogprob>> {
    let entries = given.iter().flatten();
    entries.map(|entry| token(entry.values().next()?, "decoded_token")).collect()
}

fn token(entry: &Value, name: &str) -> Option<TokenLogprob> {
    let logprob = entry.get("logprob")?.as_f64().filter(|number| number.is_finite())?;
    let id = entry.get("id").and_then(Value::as_u64).and_then(|id| u32::try_from(id).ok());
    Some(TokenLogprob { token: entry.get(name)?.as_str()?.to_owned(), logprob, id })
}

/// A content as text: a string, or the texts of its parts.
fn plain(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}
