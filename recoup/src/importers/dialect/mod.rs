//! Dialects: the forms in which providers, tracing standards and frameworks write one chat message.
//!
//! A message of any of them becomes [`Node`]s ([`message`]), a list, a request or a response several
//! ([`messages`]). Whatever the dialect,
//!
//! * a tool's result is a node of its own, also where it came inside a user's message;
//! * a call's arguments keep their bytes, as the content of a string or as an object;
//! * signatures and sealed reasoning are carried, never read;
//! * pieces of a kind that recoup does not know are carried as their source text, and what a part has
//!   no place for is named in [`Aside`].
//!
//! Which dialect a message is in is seen from the message ([`Dialect::of`]), since logs mix them.

mod anthropic;
mod aside;
mod chat;
mod content;
mod detect;
mod envelope;
mod gemini;
mod genai;
mod langchain;
mod offered;
mod responses;
mod thread;
mod usage;

use serde_json::value::RawValue;

pub(super) use self::anthropic::blocks as anthropic_blocks;
pub(super) use self::aside::Aside;
pub(super) use self::chat::push_messages;
pub(super) use self::content::image_url;
use self::envelope::open;
pub(super) use self::envelope::{answer, request};
pub(super) use self::offered::offered;
pub(super) use self::responses::Item;
pub(super) use self::thread::Thread;
pub(super) use self::usage::usage;
use super::RecordError;
use super::object::Object;
use super::value::{elements, is_array, is_object, text};
use crate::trajectory::{Node, Part, Role};

/// A way of writing messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dialect {
    /// OpenAI's chat API: `{role, content, tool_calls}`.
    Chat,
    /// OpenAI's Responses API: items, several of which make one message.
    Responses,
    /// Anthropic's Messages API: `{role, content: [blocks]}`.
    Anthropic,
    /// OpenTelemetry's semantic conventions: `{role, parts: [{type, …}]}`.
    GenAi,
    /// Google's contents: `{role, parts: [{text}]}`.
    Gemini,
    /// LangChain's messages, in each of its serialized forms.
    LangChain,
}

/// The nodes that one message is. `dialect` is what the source says it is written in; without it the
/// message tells. `speaker` speaks where the message names nobody.
///
/// # Errors
/// When the value is no message, or not one of that dialect.
pub(super) fn message(
    raw: &RawValue,
    dialect: Option<Dialect>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<Vec<Node>, RecordError> {
    let mut thread = Thread::default();
    thread.add(raw, dialect, speaker, aside)?;
    Ok(thread.finish())
}

/// The nodes of a list of messages, of one message, of a request or a response that holds them
/// (`{messages}`, `{contents}`, `{choices}`, `{output}` …), or of a JSON string that holds any of
/// these. A text that is none is what `speaker` said.
///
/// # Errors
/// When the value is none of these, with the index of the message that cannot be read.
pub(super) fn messages(
    raw: &RawValue,
    dialect: Option<Dialect>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<Vec<Node>, RecordError> {
    if let Some(said) = text(raw) {
        let held =
            serde_json::from_str::<&RawValue>(&said).ok().filter(|raw| is_array(raw) || is_object(raw));
        let read = held.map(|raw| messages(raw, dialect, speaker, aside));
        // A text that only looks like JSON is still a text.
        return Ok(match read {
            Some(Ok(nodes)) => nodes,
            _ => vec![spoken(speaker, None, vec![Part::text(said)])],
        });
    }
    let mut thread = Thread::default();
    match elements(raw) {
        Some(list) => thread.add_all(&list, "messages", dialect, speaker, aside)?,
        None => {
            let mut object = Object::parse(raw, "messages")?;
            if open(&mut object, &mut thread, dialect, speaker, aside)? {
                aside.left(object, "messages");
            } else {
                thread.add(raw, dialect, speaker, aside)?;
            }
        }
    }
    Ok(thread.finish())
}

/// A node of a speaker, who is named by the role where nothing else names it.
fn spoken(role: Role, name: Option<String>, parts: Vec<Part>) -> Node {
    let name = name.filter(|name| !name.is_empty());
    let mut node = Node::new(role, name.unwrap_or_else(|| role.as_str().to_owned()), parts);
    node.occurrence.sampled = role == Role::Assistant;
    node
}

/// A piece carried as its source text, under the name its source gives it.
fn opaque(kind: impl Into<String>, raw: &RawValue) -> Part {
    Part::Opaque { kind: kind.into(), raw: raw.get().to_owned() }
}

/// A message with results in it as nodes: each result is one of the tools', what stands between stays
/// the speaker's. `named` gives a result's tool, where the source says it.
fn split(node: Node, mut names: Vec<Option<String>>) -> Vec<Node> {
    if node.tool_results().next().is_none() {
        return vec![node];
    }
    let Node { role, agent, parts, mut occurrence, .. } = node;
    names.reverse();
    let sampled = std::mem::take(&mut occurrence.sampled);
    let mut nodes: Vec<Node> = Vec::new();
    let mut open = false;
    for part in parts {
        if matches!(part, Part::ToolResult(_)) {
            let name = names.pop().flatten();
            nodes.push(spoken(Role::Tool, name, vec![part]));
            open = false;
        } else if let Some(last) = nodes.last_mut().filter(|_| open) {
            last.parts.push(part);
        } else {
            let mut own = Node::new(role, agent.clone(), vec![part]);
            own.occurrence.sampled = sampled;
            nodes.push(own);
            open = true;
        }
    }
    for node in &mut nodes {
        node.occurrence.at.clone_from(&occurrence.at);
    }
    let own = nodes.iter().position(|node| node.role == role).unwrap_or(0);
    if let Some(own) = nodes.get_mut(own) {
        let sampled = own.occurrence.sampled;
        own.occurrence = occurrence;
        own.occurrence.sampled = sampled;
    }
    nodes
}

#[cfg(test)]
mod tests;
