//! A node: one message of a run, its parts, and what is particular to this occurrence of it.

use serde::{Deserialize, Serialize};

use crate::id::Hash;
use crate::json::Json;

/// Who speaks, in the chat sense. Agents are told apart by [`Node::agent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions, scaffolding, the harness itself.
    System,
    /// The person, or a simulator of one.
    User,
    /// A policy.
    Assistant,
    /// A tool's answer or the environment's observation.
    Tool,
}

impl Role {
    /// The role's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Node {
    /// Position of the message it follows; `None` for a root.
    pub parent: Option<usize>,
    /// Chat role.
    pub role: Role,
    /// Author's name: an agent, a tool, `user`; where the source names none, the role's word.
    pub agent: String,
    /// Content, in the source's order.
    pub parts: Vec<Part>,
    /// What is particular to this occurrence.
    #[serde(default)]
    pub occurrence: Occurrence,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Plain text.
    Text(TextPart),
    /// The model's reasoning; `signature` is the provider's seal, opaque, never edited.
    Reasoning {
        /// The reasoning, as far as it was shown.
        text: String,
        /// The provider's seal over it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
    },
    /// A call of a tool.
    ToolCall(ToolCall),
    /// A tool's answer.
    ToolResult(ToolResult),
    /// An image, a sound, a file: bytes held once, by hash.
    Media(Media),
    /// A piece that recoup carries without understanding it.
    Opaque {
        /// The source's name for it (`redacted_thinking`).
        kind: String,
        /// Its source text.
        raw: String,
    },
}

/// Plain text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TextPart {
    /// The text.
    pub text: String,
}

/// A call of a tool by an agent (or by the user, who has tools in some harnesses).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolCall {
    /// The source's id for the call; ids repeat in real data, so pairing goes by order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Tool's name.
    pub name: String,
    /// Arguments, byte-exact: the content of the JSON string, or the bytes of the object.
    pub arguments_raw: String,
    /// Which of the two the source wrote.
    pub arguments_form: ArgumentsForm,
}

/// How a source wrote a call's arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ArgumentsForm {
    /// A JSON string that holds JSON (or, in real data, sometimes does not).
    String,
    /// A JSON object.
    Object,
}

impl ToolCall {
    /// The arguments as a tree, or `None` where they are not JSON.
    pub fn arguments(&self) -> Option<serde_json::Value> {
        serde_json::from_str(&self.arguments_raw).ok()
    }
}

/// A tool's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ToolResult {
    /// Id of the call it answers, as the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    /// Text, media and opaque parts.
    pub parts: Vec<Part>,
    /// Whether the tool failed, where the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Exit code of a command, where the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
}

/// Bytes that are not text. They travel in [`crate::trajectory::Trajectory::media`] until stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Media {
    /// MIME type.
    pub mime: String,
    /// BLAKE3 of the bytes; `None` where the source refers to bytes it does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<Hash>,
    /// The source's own reference (a file name, a URL), as text; never followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// What is particular to one occurrence of a message in one run; not part of its hash.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Occurrence {
    /// Time, as the source writes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// True for a turn the policy sampled in this run: these are the steps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sampled: bool,
    /// True for a message copied in from an earlier run or a demonstration: never trained on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub copied_context: bool,
    /// The model call that produced it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<Box<Call>>,
    /// Hash of the environment's state after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_hash: Option<Hash>,
    /// Blob of the environment's state after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Hash>,
    /// What else the source says of this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<Json>,
}

/// One call of a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Call {
    /// Model's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Sampling parameters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Json>,
    /// Why generation stopped, in the provider's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<String>,
    /// Tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Cost in US dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The provider's error, where the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Token ids of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_ids: Option<Vec<u32>>,
    /// Token ids that were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completion_ids: Option<Vec<u32>>,
    /// Log-probability of each sampled token, natural logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<f64>>,
    /// Hash of the chat template that rendered the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_hash: Option<String>,
}

/// Tokens of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// Prompt tokens, cached ones included.
    pub input: u64,
    /// Generated tokens, reasoning included.
    pub output: u64,
    /// Prompt tokens read from the provider's cache.
    #[serde(default)]
    pub cached: u64,
    /// Generated tokens that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Node {
    /// A message of one part.
    pub fn new(role: Role, agent: impl Into<String>, parts: Vec<Part>) -> Self {
        Self { parent: None, role, agent: agent.into(), parts, occurrence: Occurrence::default() }
    }

    /// Marks it as a turn that the policy sampled.
    #[must_use]
    pub fn sampled(mut self) -> Self {
        self.occurrence.sampled = true;
        self
    }

    /// The calls it makes, with their part indices.
    pub fn tool_calls(&self) -> impl Iterator<Item = (usize, &ToolCall)> {
        self.parts.iter().enumerate().filter_map(|(index, part)| match part {
            Part::ToolCall(call) => Some((index, call)),
            _ => None,
        })
    }

    /// The results it holds, with their part indices.
    pub fn tool_results(&self) -> impl Iterator<Item = (usize, &ToolResult)> {
        self.parts.iter().enumerate().filter_map(|(index, part)| match part {
            Part::ToolResult(result) => Some((index, result)),
            _ => None,
        })
    }

    /// Its plain text and its results' text, joined by newlines; reasoning and calls left out.
    pub fn text(&self) -> String {
        let mut out = String::new();
        for (_, text) in self.texts() {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text);
        }
        out
    }

    /// Each plain text and each text of a result, with its part path.
    pub fn texts(&self) -> impl Iterator<Item = (Vec<usize>, &str)> {
        self.parts.iter().enumerate().flat_map(|(index, part)| match part {
            Part::Text(text) => vec![(vec![index], text.text.as_str())],
            Part::ToolResult(result) => result
                .parts
                .iter()
                .enumerate()
                .filter_map(|(inner, part)| part.as_text().map(|text| (vec![index, inner], text)))
                .collect(),
            _ => Vec::new(),
        })
    }

    /// The part at a path: `[i]` is a part of the node, `[i, j]` a part of a result.
    pub fn part(&self, path: &[usize]) -> Option<&Part> {
        let (first, rest) = path.split_first()?;
        let part = self.parts.get(*first)?;
        match (part, rest) {
            (part, []) => Some(part),
            (Part::ToolResult(result), [inner]) => result.parts.get(*inner),
            _ => None,
        }
    }
}

impl Part {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart { text: text.into() })
    }

    /// A result whose content is one text.
    pub fn text_result(call_id: Option<String>, text: impl Into<String>) -> Self {
        Self::ToolResult(ToolResult {
            call_id,
            parts: vec![Self::text(text)],
            is_error: None,
            exit_code: None,
        })
    }

    /// The text of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            _ => None,
        }
    }

    /// The text that a citation into this part points into: a call's raw arguments, a text, a
    /// reasoning, an opaque part's source.
    pub fn cited_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(&text.text),
            Self::Reasoning { text, .. } => Some(text),
            Self::ToolCall(call) => Some(&call.arguments_raw),
            Self::Opaque { raw, .. } => Some(raw),
            Self::ToolResult(_) | Self::Media(_) => None,
        }
    }
}
