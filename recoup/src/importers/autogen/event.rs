//! A message or an event of AutoGen: who said, thought, called or answered what.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::dialect::{Aside, usage};
use crate::importers::function_call::called;
use crate::importers::harness_message::opaque;
use crate::importers::object::{Object, missing};
use crate::importers::value::{elements, json_object, text, text_or_source};
use crate::trajectory::{Call, Node, Part, Role, ToolResult, Trajectory};
use crate::warning::Loss;

/// Sources that speak for a person.
const PEOPLE: [&str; 3] = ["user", "user_proxy", "human"];

/// A thread while its events come.
#[derive(Default)]
pub(super) struct Conversation {
    nodes: Vec<Node>,
    /// The agent whose last message may go on: its thought stands apart from what it led to.
    open: Option<String>,
    aside: Aside,
}

impl Conversation {
    /// Gives the messages to a run that is a line.
    pub(super) fn finish(self, run: &mut Trajectory, losses: &mut BTreeSet<Loss>) {
        self.aside.settle(run, losses);
        for node in self.nodes {
            run.push(node);
        }
    }

    /// Adds an event.
    pub(super) fn add(&mut self, raw: &RawValue) -> Result<(), RecordError> {
        let mut fields = Object::parse(raw, "event")?;
        let kind = fields.text("type").ok_or_else(|| missing("type"))?;
        let source = fields.text("source").unwrap_or_default();
        let content = fields.take("content");
        match kind.as_str() {
            "ModelClientStreamingChunkEvent" | "UserInputRequestedEvent" | "CodeGenerationEvent" => {
                self.aside.lose(kind, "an event that a message says again");
            }
            "ThoughtEvent" => {
                let text = content.map(text_or_source).unwrap_or_default();
                self.turn(&source, vec![Part::Reasoning { text, signature: None }], fields, true);
            }
            "ToolCallRequestEvent" => {
                let calls = calls(content);
                self.turn(&source, calls, fields, false);
            }
            "AssistantMessage" => {
                let thought = fields.text("thought").map(|text| Part::Reasoning { text, signature: None });
                let said = match content.and_then(text) {
                    Some(said) => vec![Part::text(said)],
                    None => calls(content),
                };
                self.turn(&source, thought.into_iter().chain(said).collect(), fields, false);
            }
            "ToolCallExecutionEvent" | "FunctionExecutionResultMessage" => {
                for raw in content.and_then(elements).unwrap_or_default() {
                    let node = self.result(raw)?;
                    self.push(node, &mut fields);
                }
            }
            "CodeExecutionEvent" => {
                let mut result = fields.object("result");
                let text = result.text("output").unwrap_or_default();
                let exit_code = result.read("exit_code");
                let parts = vec![Part::text(text)];
                let part = Part::ToolResult(ToolResult { call_id: None, parts, is_error: None, exit_code });
                self.push(Node::new(Role::Tool, source, vec![part]), &mut fields);
            }
            "SystemMessage" | "MemoryQueryEvent" | "SelectorEvent" | "SelectSpeakerEvent" => {
                let parts = self.said(content);
                let agent = if source.is_empty() { "system".to_owned() } else { source };
                self.push(Node::new(Role::System, agent, parts), &mut fields);
            }
            _ if kind == "UserMessage" || PEOPLE.contains(&source.as_str()) => {
                let parts = self.said(content);
                let agent = if source.is_empty() { "user".to_owned() } else { source };
                self.push(Node::new(Role::User, agent, parts), &mut fields);
            }
            // The framework repeats results, hands over and stops in an agent's name.
            "ToolCallSummaryMessage" | "HandoffMessage" | "StopMessage" => {
                let mut node = Node::new(Role::Assistant, source, self.said(content));
                node.occurrence.sampled = fields.get("models_usage").is_some();
                self.push(node, &mut fields);
            }
            _ => {
                let said = self.said(content);
                self.turn(&source, said, fields, false);
            }
        }
        Ok(())
    }

    /// A piece of an agent's turn; `goes_on` says that the next event may belong to it.
    fn turn(&mut self, source: &str, parts: Vec<Part>, mut fields: Object<'_>, goes_on: bool) {
        if self.open.as_deref() == Some(source)
            && let Some(last) = self.nodes.last_mut()
        {
            last.parts.extend(parts);
        } else {
            let at = fields.text("created_at");
            let mut node = Node::new(Role::Assistant, source, parts).sampled();
            node.occurrence.at = at;
            self.nodes.push(node);
        }
        fields.take("created_at");
        self.open = goes_on.then(|| source.to_owned());
        self.note(&mut fields);
    }

    fn push(&mut self, mut node: Node, fields: &mut Object<'_>) {
        node.occurrence.at = fields.get("created_at").and_then(text).map(std::borrow::Cow::into_owned);
        self.nodes.push(node);
        self.open = None;
        self.note(fields);
    }

    /// Keeps what else an event says with its message.
    fn note(&mut self, fields: &mut Object<'_>) {
        fields.take("created_at");
        let Some(node) = self.nodes.last_mut() else { return };
        if let Some(usage) = usage(&mut fields.object("models_usage")) {
            node.occurrence.call = Some(Box::new(Call { usage: Some(usage), ..Call::default() }));
        }
        let rest = std::mem::take(fields).filled_rest();
        if !rest.is_empty() && node.occurrence.extra.is_none() {
            node.occurrence.extra = json_object(rest);
        }
    }

    fn result(&mut self, raw: &RawValue) -> Result<Node, RecordError> {
        let mut result = Object::parse(raw, "content[]")?;
        let name = result.text("name").filter(|name| !name.is_empty());
        let said = result.take("content").map(text_or_source).unwrap_or_default();
        let part = Part::ToolResult(ToolResult {
            call_id: result.text("call_id").filter(|id| !id.is_empty()),
            parts: vec![Part::text(said)],
            is_error: result.read("is_error"),
            exit_code: None,
        });
        self.aside.left(result, "result");
        Ok(Node::new(Role::Tool, name.unwrap_or_else(|| "tool".to_owned()), vec![part]))
    }

    /// A content: a text, a list of texts and images, or a value of the user's own type.
    fn said(&mut self, content: Option<&RawValue>) -> Vec<Part> {
        let Some(raw) = content else { return Vec::new() };
        if let Some(text) = text(raw) {
            return vec![Part::text(text)];
        }
        let Some(list) = elements(raw) else {
            return vec![opaque("content", raw)];
        };
        list.into_iter().map(|raw| self.piece(raw)).collect()
    }

    fn piece(&mut self, raw: &RawValue) -> Part {
        if let Some(text) = text(raw) {
            return Part::text(text);
        }
        // AutoGen writes every image as PNG; what a memory holds is `{content, mime_type}`.
        let read = Object::of(raw).and_then(|mut piece| match piece.text("data") {
            Some(data) => data_url::encoded("image/png", &data, &mut self.aside.media),
            None => piece.text("content").map(Part::text),
        });
        read.unwrap_or_else(|| opaque("content", raw))
    }
}

/// The calls of a list; what is none is carried as it stands.
fn calls(content: Option<&RawValue>) -> Vec<Part> {
    let read = |raw: &RawValue| {
        let mut call = Object::of(raw)?;
        let name = call.text("name")?;
        Some(Part::ToolCall(called(call.text("id"), name, call.take("arguments"))))
    };
    let list = content.and_then(elements).unwrap_or_default();
    list.into_iter().map(|raw| read(raw).unwrap_or_else(|| opaque("call", raw))).collect()
}
