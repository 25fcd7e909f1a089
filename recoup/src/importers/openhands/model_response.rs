//! A provider's response that OpenHands keeps beside each action it led to.

use serde_json::value::RawValue;

use crate::importers::function_call::tool_call;
use crate::importers::object::Object;
use crate::trajectory::{Call, ToolCall, Usage};

/// What a provider answered, as the harness kept it beside the action.
pub(super) struct ModelResponse {
    /// The provider's id of it; empty where it has none.
    pub id: String,
    /// Model, finish reason and usage.
    pub call: Call,
    /// What it said beside its calls.
    pub content: Option<String>,
    /// The calls it made.
    pub calls: Vec<ToolCall>,
}

impl ModelResponse {
    /// Reads a response in OpenAI's form; `None` for one without choices.
    pub(super) fn read(raw: &RawValue) -> Option<Self> {
        let mut response = Object::of(raw)?;
        let choices = response.list("choices")?;
        let mut choice = Object::of(choices.first()?)?;
        let mut message = choice.object("message");
        let calls = message.list("tool_calls").unwrap_or_default();
        let mut usage = response.object("usage");
        let tokens = usage.read("prompt_tokens").zip(usage.read("completion_tokens"));
        let cached = usage.object("prompt_tokens_details").read("cached_tokens").unwrap_or(0);
        let reasoning = usage.object("completion_tokens_details").read("reasoning_tokens").unwrap_or(0);
        Some(Self {
            id: response.text("id").unwrap_or_default(),
            content: message.text("content").filter(|content| !content.is_empty()),
            calls: calls.into_iter().filter_map(|raw| tool_call(&mut Object::of(raw)?)).collect(),
            call: Call {
                model: response.text("model"),
                finish_reason: choice.text("finish_reason"),
                usage: tokens.map(|(input, output)| Usage { input, output, cached, reasoning }),
                ..Call::default()
            },
        })
    }
}
