//! The events of one conversation, in order, as messages.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::FORMAT;
use crate::id::Hash;
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::called;
use crate::importers::harness_message::opaque;
use crate::importers::object::{Object, missing};
use crate::importers::value::{elements, json_object, text};
use crate::trajectory::{Call, Node, Part, Role, Tool, ToolResult, Trajectory};

/// Members of an action that say nothing beyond the call: the call itself, parsed.
const PARSED: [&str; 3] = ["action", "tool_name", "tool_call_id"];

/// Events so far.
#[derive(Default)]
pub(super) struct Events {
    nodes: Vec<Node>,
    tools: Vec<Tool>,
    media: BTreeMap<Hash, Vec<u8>>,
    /// The model's response whose calls came last, and its message.
    response: Option<(String, usize)>,
    /// Token ids that wait for the message they are of.
    tokens: Option<(Vec<u32>, Vec<u32>)>,
    /// The state or error that the program noted last.
    state: Option<String>,
}

impl Events {
    /// Reads one event.
    pub(super) fn add(&mut self, raw: &RawValue) -> Result<(), RecordError> {
        let mut event = Object::parse(raw, "event")?;
        let kind = event.text("kind").ok_or_else(|| missing("kind"))?;
        let at = event.text("timestamp");
        for envelope in ["id", "parent_id"] {
            event.take(envelope);
        }
        match kind.as_str() {
            "ActionEvent" => self.action(&mut event, at)?,
            "MessageEvent" => self.message(event, at)?,
            "ObservationEvent" => {
                let mut observation = event.object("observation");
                let mut parts =
                    self.contents(observation.take("content").or_else(|| observation.take("output")));
                parts.extend(self.contents(event.take("extended_content")));
                let is_error = observation.read::<bool>("is_error");
                let exit_code = observation.read("exit_code");
                observation.take("kind");
                let rest = json_object(observation.filled_rest());
                self.result(&mut event, parts, is_error, exit_code, at)?;
                if let Some(last) = self.nodes.last_mut() {
                    last.occurrence.extra = rest;
                }
            }
            "AgentErrorEvent" => {
                let parts = vec![Part::text(event.text("error").unwrap_or_default())];
                self.result(&mut event, parts, Some(true), None, at)?;
            }
            "UserRejectObservation" => {
                let reason = event.text("rejection_reason").unwrap_or_default();
                let parts = vec![Part::text(format!("Action rejected: {reason}"))];
                self.result(&mut event, parts, Some(true), None, at)?;
            }
            "SystemPromptEvent" => {
                let mut parts = self.contents(event.take("system_prompt"));
                parts.extend(self.contents(event.take("dynamic_context")));
                for raw in event.list("tools").unwrap_or_default() {
                    self.tools.extend(tool(raw));
                }
                self.push(Node::new(Role::System, "system", parts), at);
            }
            "TokenEvent" => {
                let ids = |event: &mut Object<'_>, key: &str| event.read::<Vec<u32>>(key).unwrap_or_default();
                let tokens = (ids(&mut event, "prompt_token_ids"), ids(&mut event, "response_token_ids"));
                self.tokens = Some(tokens);
                self.settle_tokens();
            }
            "ConversationErrorEvent" => {
                let code = event.text("code").unwrap_or_default();
                let detail = event.text("detail").unwrap_or_default();
                self.state = Some(format!("{code}: {detail}"));
                self.push(Node::new(Role::System, "harness", vec![opaque(&kind, raw)]), at);
            }
            "ConversationStateUpdateEvent" => {
                let is_status = event.text("key").as_deref() == Some("execution_status");
                if let Some(status) = event.text("value").filter(|_| is_status) {
                    self.state = Some(status);
                }
                self.push(Node::new(Role::System, "harness", vec![opaque(&kind, raw)]), at);
            }
            "CondensationSummaryEvent" => {
                let parts = vec![Part::text(event.text("summary").unwrap_or_default())];
                self.push(Node::new(Role::User, "condenser", parts), at);
            }
            _ => self.push(Node::new(Role::System, "harness", vec![opaque(&kind, raw)]), at),
        }
        Ok(())
    }

    /// Gives the messages to the run; returns the state that the program noted last.
    pub(super) fn settle(self, run: &mut Trajectory) -> Option<String> {
        for node in self.nodes {
            run.push(node);
        }
        run.tools = self.tools;
        run.media.extend(self.media);
        self.state
    }

    fn push(&mut self, mut node: Node, at: Option<String>) {
        node.occurrence.at = at;
        self.nodes.push(node);
    }

    /// A call: a message of its own, or one more call of the response that made the last one.
    fn action(&mut self, event: &mut Object<'_>, at: Option<String>) -> Result<(), RecordError> {
        let response = event.text("llm_response_id");
        let mut call = event.object("tool_call");
        let id = call.text("id").or_else(|| event.clone().text("tool_call_id"));
        let name = call
            .text("name")
            .or_else(|| event.clone().text("tool_name"))
            .ok_or_else(|| missing("tool_name"))?;
        let arguments = call.take("arguments").or_else(|| event.get("action"));
        let call = Part::ToolCall(called(id, name, arguments));
        let mut parts = reasoning(event);
        parts.extend(self.contents(event.take("thought")));
        for key in PARSED {
            event.take(key);
        }
        event.take_if("security_risk", |raw| raw.get() == "\"UNKNOWN\"");
        let extra = json_object(std::mem::take(event).filled_rest());
        let same = |(id, _): &&(String, usize)| response.as_ref() == Some(id);
        if let Some((_, position)) = self.response.as_ref().filter(same)
            && let Some(node) = self.nodes.get_mut(*position)
        {
            node.parts.extend(parts);
            node.parts.push(call);
            return Ok(());
        }
        parts.push(call);
        let mut node = Node::new(Role::Assistant, "agent", parts);
        node.occurrence.sampled = true;
        node.occurrence.extra = extra;
        self.push(node, at);
        self.response = response.map(|id| (id, self.nodes.len() - 1));
        self.settle_tokens();
        Ok(())
    }

    fn message(&mut self, mut event: Object<'_>, at: Option<String>) -> Result<(), RecordError> {
        let source = event.text("source").unwrap_or_default();
        let mut message = event.object("llm_message");
        let mut parts = reasoning(&mut message);
        parts.extend(self.contents(message.take("content")));
        parts.extend(self.contents(event.take("extended_content")));
        let role = match message.text("role").as_deref() {
            Some("system") => Role::System,
            Some("assistant") => Role::Assistant,
            Some("user") => Role::User,
            _ if source == "agent" => Role::Assistant,
            _ => Role::User,
        };
        let agent = event.text("sender").unwrap_or_else(|| match role {
            Role::Assistant => "agent".to_owned(),
            role => role.as_str().to_owned(),
        });
        event.take("llm_response_id");
        let mut node = Node::new(role, agent, parts);
        node.occurrence.sampled = role == Role::Assistant;
        node.occurrence.extra = json_object(event.filled_rest());
        self.response = None;
        let is_turn = node.occurrence.sampled;
        self.push(node, at);
        if is_turn {
            self.settle_tokens();
        }
        Ok(())
    }

    fn result(
        &mut self,
        event: &mut Object<'_>,
        parts: Vec<Part>,
        is_error: Option<bool>,
        exit_code: Option<i64>,
        at: Option<String>,
    ) -> Result<(), RecordError> {
        let tool = event.text("tool_name").ok_or_else(|| missing("tool_name"))?;
        let call_id = event.text("tool_call_id");
        let result = Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code });
        self.push(Node::new(Role::Tool, tool, vec![result]), at);
        Ok(())
    }

    /// Gives waiting token ids to the last turn of the model, or keeps them for the next: they are noted
    /// beside it, before or after.
    fn settle_tokens(&mut self) {
        let last = self.nodes.iter_mut().rev().find(|node| node.role == Role::Assistant);
        let free = last
            .filter(|node| node.occurrence.call.as_ref().is_none_or(|call| call.completion_ids.is_none()));
        if let Some(node) = free
            && let Some((prompt, completion)) = self.tokens.take()
        {
            let call: &mut Call = node.occurrence.call.get_or_insert_default();
            (call.prompt_ids, call.completion_ids) = (Some(prompt), Some(completion));
        }
    }

    /// The pieces of a content: a text, one piece or a list of them.
    fn contents(&mut self, raw: Option<&RawValue>) -> Vec<Part> {
        let Some(raw) = raw else { return Vec::new() };
        if let Some(text) = text(raw) {
            return if text.is_empty() { Vec::new() } else { vec![Part::text(text)] };
        }
        let mut parts = Vec::new();
        for raw in elements(raw).unwrap_or_else(|| vec![raw]) {
            let mut piece = Object::of(raw).unwrap_or_default();
            match piece.text("type").as_deref() {
                Some("text") => parts.extend(piece.text("text").map(Part::text)),
                Some("image") => {
                    for url in piece.list("image_urls").unwrap_or_default().into_iter().filter_map(text) {
                        parts.push(data_url::media(&url, "image/*", &mut self.media));
                    }
                }
                _ => parts.push(opaque(FORMAT, raw)),
            }
        }
        parts
    }
}

/// The model's reasoning, in the forms of the providers; sealed blocks carry what the plain text repeats.
fn reasoning(event: &mut Object<'_>) -> Vec<Part> {
    let plain = event.text("reasoning_content").filter(|text| !text.is_empty());
    let blocks: Vec<Part> = event
        .list("thinking_blocks")
        .unwrap_or_default()
        .into_iter()
        .map(|raw| {
            let mut block = Object::of(raw).unwrap_or_default();
            match block.text("thinking") {
                Some(text) => Part::Reasoning { text, signature: block.text("signature") },
                None => opaque("redacted_thinking", raw),
            }
        })
        .collect();
    if blocks.is_empty() {
        plain.map(|text| Part::Reasoning { text, signature: None }).into_iter().collect()
    } else {
        blocks
    }
}

/// A tool that a system prompt offers: OpenAI's form, or the program's own definition.
fn tool(raw: &RawValue) -> Option<Tool> {
    let mut outer = Object::of(raw)?;
    let mut inner = outer.object("function");
    inner.absorb(outer);
    let name = ["name", "title"].into_iter().find_map(|key| inner.text(key))?;
    let parameters =
        ["parameters", "inputSchema", "input_schema"].into_iter().find_map(|key| inner.take(key));
    Some(Tool {
        name,
        description: inner.text("description").unwrap_or_default(),
        parameters: parameters.map(Into::into),
        read_only: None,
    })
}
