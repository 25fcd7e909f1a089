//! A message, a request and a reply: one form for every provider.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::json::Json;
use crate::trajectory::{Role, ToolCall};

/// A call of a tool, as a model writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    /// Id that the tool's answer refers to.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments: a JSON text, byte for byte as the model wrote it, valid or not.
    pub arguments: String,
}

impl From<&ToolCall> for ModelCall {
    /// As it stands on record.
    fn from(call: &ToolCall) -> Self {
        Self {
            id: call.call_id.clone().unwrap_or_default(),
            name: call.name.clone(),
            arguments: call.arguments_raw.clone(),
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// The text; empty beside calls only.
    pub content: String,
    /// Calls of tools, of the assistant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelCall>,
    /// The call that a tool's message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl ChatMessage {
    /// Instructions.
    pub fn system(content: impl Into<String>) -> Self {
        Self::text(Role::System, content)
    }

    /// A question.
    pub fn user(content: impl Into<String>) -> Self {
        Self::text(Role::User, content)
    }

    /// An earlier answer.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::text(Role::Assistant, content)
    }

    fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), calls: Vec::new(), call_id: None }
    }
}

/// The JSON Schema that an answer must satisfy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplySchema {
    /// Name for the provider: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// The schema.
    pub schema: Json,
}

impl ReplySchema {
    /// The schema with the properties of each object in the order of its `required`: canonical text sorts
    /// keys, and models write in the order that they are given.
    pub fn in_order(&self) -> Value {
        ordered(self.schema.to_value())
    }
}

fn ordered(schema: Value) -> Value {
    match schema {
        Value::Array(items) => items.into_iter().map(ordered).collect(),
        Value::Object(members) => {
            let mut members: Map<String, Value> =
                members.into_iter().map(|(key, value)| (key, ordered(value))).collect();
            let required: Vec<String> = members
                .get("required")
                .and_then(Value::as_array)
                .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
                .unwrap_or_default();
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                let mut rest = std::mem::take(properties);
                properties.extend(
                    required.into_iter().filter_map(|name| rest.shift_remove(&name).map(|it| (name, it))),
                );
                properties.extend(rest);
            }
            Value::Object(members)
        }
        other => other,
    }
}

/// Which log-probabilities a question wants to know beside, or instead of, an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Logprobs {
    /// None.
    #[default]
    No,
    /// Those of the answer's tokens.
    Answer,
    /// Those of the tokens of the conversation's last message, an assistant's, at the end of others: how likely the
    /// model finds what is given. There is no answer.
    Given,
}

impl Logprobs {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_no(&self) -> bool {
        *self == Self::No
    }
}

/// A token and how likely a model found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TokenLogprob {
    /// Its text, as the provider writes it.
    pub token: String,
    /// Natural logarithm of its probability; a finite number.
    pub logprob: f64,
    /// Its number in the model's vocabulary, where the provider says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u32>,
}

// Only finite numbers are read.
impl Eq for TokenLogprob {}

/// What is asked. Equal requests to the same model have equal canonical bytes, which key the cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// The conversation, ending with the message to answer.
    pub messages: Vec<ChatMessage>,
    /// Tools it may call, in OpenAI's function form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Json>,
    /// The schema of the answer, where it must have one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<ReplySchema>,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// Sampling temperature; 0 for the likeliest answer.
    pub temperature: f64,
    /// Seed, for providers that take one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Which of several answers to the same question this is, from 0.
    pub sample: u32,
    /// Hash of the prompt's file, where the question comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
    /// Which log-probabilities it wants.
    #[serde(default, skip_serializing_if = "Logprobs::is_no")]
    pub logprobs: Logprobs,
    /// Under [`Logprobs::Given`], the numbers of the last message's tokens, where they are known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<u32>,
}

impl ChatRequest {
    /// A question at temperature 0.
    pub fn new(messages: Vec<ChatMessage>, max_tokens: u32) -> Self {
        Self {
            messages,
            tools: Vec::new(),
            schema: None,
            max_tokens,
            temperature: 0.0,
            seed: None,
            sample: 0,
            prompt_hash: None,
            logprobs: Logprobs::No,
            given: Vec::new(),
        }
    }
}

impl ChatRequest {
    /// Whether a server that takes grammars can be made to say what is given: text, in tokens that are known.
    #[cfg(feature = "models")]
    pub(super) fn can_be_forced(&self) -> bool {
        self.logprobs == Logprobs::Given && !self.given.is_empty() && self.tools.is_empty()
    }

    /// Most tokens of what is said: the answer, or what is given, with one more and an end.
    pub(super) fn said_most(&self) -> u64 {
        let given = if self.given.is_empty() { 0 } else { self.given.len() as u64 + 2 };
        u64::from(self.max_tokens).max(given)
    }

    /// For providers that cannot say how likely given tokens are.
    #[cfg(feature = "models")]
    pub(super) fn wants_no_given(&self) -> Result<(), super::ModelError> {
        if self.logprobs == Logprobs::Given {
            return Err(super::ModelError::Unsupported(
                "its provider does not score given tokens".to_owned(),
            ));
        }
        Ok(())
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// By itself.
    Stop,
    /// At the limit of tokens: it is cut.
    Length,
    /// To call tools.
    Calls,
    /// The provider withheld the rest.
    Filtered,
    /// Something else, or nothing was said.
    Other,
}

/// Tokens, as the provider counts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// Of the question.
    pub prompt: u64,
    /// Of the question, those that the provider had cached.
    pub cached_prompt: u64,
    /// Of the answer, reasoning included.
    pub completion: u64,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatReply {
    /// Its text.
    pub text: String,
    /// Reasoning that the provider gives apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// Calls of tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ModelCall>,
    /// Why it ended.
    pub finish: Finish,
    /// What it took; `None` where the provider does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The model that answered, as the provider names it.
    pub model: String,
    /// The tokens whose log-probabilities were asked for, where the provider gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Vec<TokenLogprob>>,
    /// How long it took, in milliseconds; 0 where nobody measured it.
    #[serde(default)]
    pub took_ms: u64,
}

impl ChatReply {
    /// A text that ended by itself, of a model without a name or a count.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            reasoning: None,
            calls: Vec::new(),
            finish: Finish::Stop,
            usage: None,
            model: String::new(),
            tokens: None,
            took_ms: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReplySchema;
    use crate::json::Json;

    #[test]
    fn properties_stand_in_the_order_in_which_they_are_required() {
        let text = r#"{"properties":{"a":{},"b":{"properties":{"x":{},"z":{}},"required":["z","x"]},"c":{}},"required":["b","a"]}"#;
        let schema = ReplySchema { name: "s".to_owned(), schema: Json::parse(text).unwrap() };
        let ordered = schema.in_order()["properties"].to_string();
        assert_eq!(ordered, r#"{"b":{"properties":{"z":{},"x":{}},"required":["z","x"]},"a":{},"c":{}}"#);
    }
}
