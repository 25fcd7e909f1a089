//! What a server takes of a request, and what it is asked for without where it refuses something.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::json::Json;
use crate::models::{ChatMessage, ChatReply, ChatRequest, Logprobs, ModelCall, ModelError, ReplySchema};

/// What a server takes, as far as is known. A request is written by what is known when it leaves, and a refusal
/// is read by what that request said: many are under way at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Dialect {
    /// How the schema is said: an index of [`SCHEMA_FORMS`].
    pub(super) schema_form: u8,
    pub(super) new_limit: bool,
    pub(super) no_temperature: bool,
    pub(super) no_seed: bool,
    /// How given tokens are scored.
    pub(super) scoring: Scoring,
}

/// How a server says how likely given tokens are, each tried where the one before is passed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Scoring {
    /// As vLLM does: of the whole prompt.
    #[default]
    Prompt,
    /// Whether a grammar is kept to: it asks for more than anybody would say.
    Probe,
    /// As llama.cpp does: of an answer in which a grammar allows nothing but the given tokens.
    Grammar,
    /// Not at all.
    Never,
}

/// What a question said that it need not.
#[derive(Clone, Copy)]
pub(super) struct Spare {
    pub(super) seed: bool,
    pub(super) schema: bool,
}

/// Ways to say what form the answer must have, from the best.
const SCHEMA_FORMS: [&str; 4] =
    ["a strict schema", "a schema", "a schema for a JSON object", "a schema but in words"];

impl Dialect {
    pub(super) fn body(self, model: &str, request: &ChatRequest) -> Value {
        let forced = self.forced(request);
        let said = request.messages.len() - usize::from(!forced.is_empty());
        let mut messages: Vec<Value> = request.messages.iter().take(said).map(message).collect();
        let mut body = Map::new();
        body.insert("model".to_owned(), model.into());
        if let Some(schema) = &request.schema {
            match response_format(schema, self.schema_form) {
                Some(format) => {
                    body.insert("response_format".to_owned(), format);
                }
                None => messages.push(json!({ "role": "user", "content": in_words(schema) })),
            }
        }
        body.insert("messages".to_owned(), messages.into());
        let limit = if self.new_limit { "max_completion_tokens" } else { "max_tokens" };
        let most = if forced.is_empty() { request.max_tokens.into() } else { request.said_most() };
        body.insert(limit.to_owned(), most.into());
        if !self.no_temperature {
            body.insert("temperature".to_owned(), request.temperature.into());
        }
        if let Some(seed) = request.seed.filter(|_| !self.no_seed) {
            body.insert("seed".to_owned(), seed.into());
        }
        match request.logprobs {
            Logprobs::No => {}
            Logprobs::Answer => {
                body.insert("logprobs".to_owned(), true.into());
            }
            // As llama.cpp takes it: its grammar allows the given tokens alone, and what it tells of each is how likely it
            // was before the grammar.
            Logprobs::Given if !forced.is_empty() => {
                let tokens: Vec<String> = forced.iter().map(|id| format!("<[{id}]>")).collect();
                body.insert("grammar".to_owned(), format!("root ::= {}", tokens.join(" ")).into());
                body.insert("logprobs".to_owned(), true.into());
            }
            // As vLLM takes it: the template stops after the last message, and of each token only itself is told.
            Logprobs::Given => {
                body.insert("add_generation_prompt".to_owned(), false.into());
                body.insert("prompt_logprobs".to_owned(), 0.into());
            }
        }
        if !request.tools.is_empty() {
            body.insert("tools".to_owned(), request.tools.iter().map(Json::to_value).collect());
        }
        Value::Object(body)
    }

    /// The tokens that a grammar allows; none where it is not asked so.
    pub(super) fn forced(self, request: &ChatRequest) -> Vec<u32> {
        let again = match self.scoring {
            Scoring::Probe => 1,
            Scoring::Grammar => 0,
            Scoring::Prompt | Scoring::Never => return Vec::new(),
        };
        if !request.can_be_forced() {
            return Vec::new();
        }
        request.given.iter().chain(request.given.iter().take(again)).copied().collect()
    }

    /// Whether an answer has the tokens that the grammar allows.
    pub(super) fn is_kept_to(self, request: &ChatRequest, reply: &ChatReply) -> bool {
        let forced = self.forced(request);
        let told = reply.tokens.iter().flatten().map(|token| token.id);
        told.take(forced.len()).eq(forced.iter().map(|id| Some(*id)))
    }

    /// How to ask again after a refusal of what this dialect said, and what was refused; `None` where nothing
    /// can be left out.
    pub(super) fn without(self, error: &ModelError, spare: Spare) -> Option<(Self, &'static str)> {
        let ModelError::Status { status: 400 | 422, message, .. } = error else { return None };
        let names = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if names(&["max_completion_tokens"]) && !self.new_limit {
            return Some((Self { new_limit: true, ..self }, "`max_tokens`"));
        }
        if names(&["temperature"]) && !self.no_temperature {
            return Some((Self { no_temperature: true, ..self }, "this `temperature`"));
        }
        if spare.seed && names(&["seed"]) && !self.no_seed {
            return Some((Self { no_seed: true, ..self }, "`seed`"));
        }
        let form = self.schema_form;
        let is_last = usize::from(form) + 1 == SCHEMA_FORMS.len();
        if spare.schema
            && !is_last
            && names(&["response_format", "json_schema", "schema", "json_object", "grammar"])
        {
            return Some((Self { schema_form: form + 1, ..self }, SCHEMA_FORMS[usize::from(form)]));
        }
        None
    }

    /// Both of what two requests have learned.
    pub(super) fn join(self, other: Self) -> Self {
        Self {
            schema_form: self.schema_form.max(other.schema_form),
            new_limit: self.new_limit || other.new_limit,
            no_temperature: self.no_temperature || other.no_temperature,
            no_seed: self.no_seed || other.no_seed,
            scoring: self.scoring.max(other.scoring),
        }
    }
}

fn response_format(schema: &ReplySchema, form: u8) -> Option<Value> {
    match form {
        0 | 1 => Some(json!({
            "type": "json_schema",
            "json_schema": { "name": schema.name, "schema": schema.in_order(), "strict": form == 0 },
        })),
        2 => Some(json!({ "type": "json_object", "schema": schema.in_order() })),
        _ => None,
    }
}

/// What asks for a form where the provider has no field for it.
fn in_words(schema: &ReplySchema) -> String {
    format!(
        "Answer with one JSON object and nothing else. It must satisfy this JSON Schema:\n{}",
        schema.in_order()
    )
}

fn message(message: &ChatMessage) -> Value {
    let mut out = json!({ "role": message.role.as_str(), "content": message.content });
    if !message.calls.is_empty() {
        let call = |call: &ModelCall| {
            json!({
                "id": call.id, "type": "function",
                "function": { "name": call.name, "arguments": call.arguments },
            })
        };
        out["tool_calls"] = message.calls.iter().map(call).collect();
    }
    if let Some(id) = &message.call_id {
        out["tool_call_id"] = id.as_str().into();
    }
    out
}
