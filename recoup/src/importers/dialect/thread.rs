//! A thread of messages while it is read: pieces of one response become one node.

use serde_json::value::RawValue;

use super::responses::Item;
use super::{Aside, Dialect, anthropic, chat, gemini, genai, langchain, spoken};
use crate::importers::RecordError;
use crate::importers::object::{Object, wrong_type};
use crate::importers::value::{elements, text};
use crate::trajectory::{Node, Part, Role};

/// Messages so far.
#[derive(Default)]
pub(in crate::importers) struct Thread {
    nodes: Vec<Node>,
    /// The last node is a response whose pieces may go on.
    open: bool,
}

impl Thread {
    /// The messages, in order, without parents.
    pub(in crate::importers) fn finish(self) -> Vec<Node> {
        self.nodes
    }

    /// Adds a list of messages; `place` names it in errors.
    pub(in crate::importers) fn add_all(
        &mut self,
        list: &[&RawValue],
        place: &str,
        dialect: Option<Dialect>,
        speaker: Role,
        aside: &mut Aside,
    ) -> Result<(), RecordError> {
        for (index, raw) in list.iter().enumerate() {
            // LangChain logs a batch of one prompt as a list in a list.
            let read = match elements(raw) {
                Some(inner) if list.len() == 1 => {
                    return self.add_each(&inner, &format!("{place}[0]"), dialect, speaker, aside);
                }
                _ => self.add(raw, dialect, speaker, aside),
            };
            read.map_err(|error| RecordError::new(error.code, format!("{place}[{index}]: {error}")))?;
        }
        Ok(())
    }

    fn add_each(
        &mut self,
        list: &[&RawValue],
        place: &str,
        dialect: Option<Dialect>,
        speaker: Role,
        aside: &mut Aside,
    ) -> Result<(), RecordError> {
        for (index, raw) in list.iter().enumerate() {
            self.add(raw, dialect, speaker, aside)
                .map_err(|error| RecordError::new(error.code, format!("{place}[{index}]: {error}")))?;
        }
        Ok(())
    }

    /// Adds one message.
    pub(in crate::importers) fn add(
        &mut self,
        raw: &RawValue,
        dialect: Option<Dialect>,
        speaker: Role,
        aside: &mut Aside,
    ) -> Result<(), RecordError> {
        if let Some(said) = text(raw) {
            self.extend(vec![spoken(speaker, None, vec![Part::text(said)])]);
            return Ok(());
        }
        let object = Object::parse(raw, "message")?;
        match dialect.or_else(|| Dialect::of(&object)) {
            Some(Dialect::Responses) => self.item(raw, aside)?,
            Some(Dialect::Chat) => {
                let node = chat::node(object, aside)?;
                self.extend(vec![node]);
            }
            Some(Dialect::Anthropic) => self.extend(anthropic::message(object, speaker, aside)?),
            Some(Dialect::GenAi) => self.extend(genai::message(object, speaker, aside)?),
            Some(Dialect::Gemini) => self.extend(gemini::content(object, speaker, aside)?),
            Some(Dialect::LangChain) => self.extend(langchain::message(object, aside)?),
            None => return Err(wrong_type("message", "a message of a known form")),
        }
        Ok(())
    }

    fn item(&mut self, raw: &RawValue, aside: &mut Aside) -> Result<(), RecordError> {
        match Item::read(raw, aside)? {
            Item::Message(role, parts) => self.extend(vec![spoken(role, None, parts)]),
            Item::Output(result) => {
                self.extend(vec![spoken(Role::Tool, None, vec![Part::ToolResult(result)])]);
            }
            Item::Piece(parts) => self.piece(parts),
            Item::Other(kind) => self.piece(vec![super::opaque(kind, raw)]),
        }
        Ok(())
    }

    fn piece(&mut self, parts: Vec<Part>) {
        if let Some(last) = self.nodes.last_mut().filter(|_| self.open) {
            last.parts.extend(parts);
        } else if !parts.is_empty() {
            self.nodes.push(spoken(Role::Assistant, None, parts));
            self.open = true;
        }
    }

    /// Adds whole messages.
    pub(super) fn extend(&mut self, nodes: Vec<Node>) {
        self.nodes.extend(nodes);
        self.open = false;
    }

    /// The last message, where it is a model's.
    pub(in crate::importers) fn answered(&mut self) -> Option<&mut Node> {
        self.nodes.last_mut().filter(|node| node.role == Role::Assistant)
    }
}
