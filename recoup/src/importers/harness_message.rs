//! A chat message as the agents of the SWE-agent family keep it: role, content as a string or as typed
//! pieces, calls in OpenAI's form, and bookkeeping beside them.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::RecordError;
use super::data_url;
use super::dialect::image_url;
use super::function_call::tool_call;
use super::object::Object;

use super::value::{elements, text};
use crate::id::Hash;
use crate::json::Json;
use crate::trajectory::{Node, Part, Role, ToolResult};

/// A message and what else the source says of it.
pub(super) struct Message {
    /// The message, without a parent.
    pub node: Node,
    /// The harness's bookkeeping (`thought`, `action`, `message_type` …).
    pub rest: BTreeMap<String, Json>,
}

/// Reads a message. `answers` says that an agent's turn stands before it: a user message is then the
/// environment's observation.
///
/// # Errors
/// When it is no object or its role is none of a chat's.
pub(super) fn message(
    raw: &RawValue,
    answers: bool,
    media: &mut BTreeMap<Hash, Vec<u8>>,
) -> Result<Message, RecordError> {
    let mut members = Object::parse(raw, "message")?;
    let word =
        members.text("role").ok_or_else(|| RecordError::new("missing-field", "a message without role"))?;
    let role = match word.as_str() {
        "system" | "developer" | "exit" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(RecordError::new("wrong-type", format!("`{word}` is no role of a message"))),
    };
    // Every message of a history names the agent whose history it is; only its own turns are by it.
    let named = members.text("agent");
    let agent = match role {
        Role::Assistant => named.unwrap_or_else(|| word.clone()),
        Role::Tool => members.text("name").unwrap_or_else(|| "environment".to_owned()),
        Role::User if answers => "environment".to_owned(),
        Role::User | Role::System => word.clone(),
    };
    let mut parts = Vec::new();
    for block in members.list("thinking_blocks").unwrap_or_default() {
        parts.push(reasoning(block));
    }
    let pieces = content(members.take("content"), media);
    if role == Role::Tool {
        let mut ids = members
            .list("tool_call_ids")
            .unwrap_or_default()
            .into_iter()
            .filter_map(text)
            .map(Cow::into_owned);
        let call_id = ids.next().or_else(|| members.text("tool_call_id"));
        parts.push(Part::ToolResult(ToolResult { call_id, parts: pieces, is_error: None, exit_code: None }));
        // One message that answers several calls.
        for call_id in ids {
            let shared =
                ToolResult { call_id: Some(call_id), parts: Vec::new(), is_error: None, exit_code: None };
            parts.push(Part::ToolResult(shared));
        }
    } else {
        parts.extend(pieces);
    }
    let calls = members.list("tool_calls").unwrap_or_default();
    if !calls.is_empty() {
        // A turn that only calls has empty content; the call is all it says.
        parts.retain(|part| part.as_text() != Some(""));
    }
    for raw in calls {
        let call = Object::of(raw).and_then(|mut call| tool_call(&mut call));
        parts.push(call.map_or_else(|| opaque("tool_call", raw), Part::ToolCall));
    }
    let mut node = Node::new(role, agent, parts);
    node.occurrence.copied_context = members.read("is_demo").unwrap_or(false);
    let content = node.text();
    let repeats = |raw: &RawValue| text(raw).as_deref() == Some(content.as_str());
    if members.get("thought").is_some_and(repeats) {
        members.take("thought");
    }
    Ok(Message { node, rest: members.filled_rest() })
}

/// A content: a string, or a list of typed pieces.
fn content(raw: Option<&RawValue>, media: &mut BTreeMap<Hash, Vec<u8>>) -> Vec<Part> {
    let Some(raw) = raw else { return Vec::new() };
    if let Some(text) = text(raw) {
        return vec![Part::text(text)];
    }
    let Some(pieces) = elements(raw) else { return vec![opaque("content", raw)] };
    pieces
        .into_iter()
        .map(|piece| typed_piece(piece, media).unwrap_or_else(|| opaque("content", piece)))
        .collect()
}

fn typed_piece(raw: &RawValue, media: &mut BTreeMap<Hash, Vec<u8>>) -> Option<Part> {
    let mut piece = Object::of(raw)?;
    match piece.text("type")?.as_str() {
        "text" => Some(Part::text(piece.text("text")?)),
        "image_url" => Some(data_url::media(&image_url(&mut piece)?, "image/*", media)),
        _ => None,
    }
}

fn reasoning(raw: &RawValue) -> Part {
    let read = || {
        let mut block = Object::of(raw)?;
        let text = block.text("thinking")?;
        Some(Part::Reasoning { text, signature: block.text("signature") })
    };
    read().unwrap_or_else(|| opaque("thinking_block", raw))
}

/// A piece carried as its source text.
pub(super) fn opaque(kind: &str, raw: &RawValue) -> Part {
    Part::Opaque { kind: kind.to_owned(), raw: raw.get().to_owned() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::{Message, message};
    use crate::trajectory::{Part, Role};

    fn read(text: &str, answers: bool) -> Message {
        let raw = RawValue::from_string(text.to_owned()).unwrap();
        message(&raw, answers, &mut BTreeMap::new()).unwrap()
    }

    #[test]
    fn observations_keep_line_ends_and_escapes_byte_exact() {
        let text =
            r#"{"role":"user","content":[{"type":"text","text":"a\r\n\u001b[31mred"}],"agent":"main"}"#;
        let read = read(text, true);
        assert_eq!(read.node.parts, [Part::text("a\r\n\u{1b}[31mred")]);
        assert_eq!(read.node.agent, "environment");
    }

    #[test]
    fn a_result_takes_its_id_from_the_list_or_has_none() {
        let id = |text| {
            let read = read(text, true);
            let (_, result) = read.node.tool_results().next().unwrap();
            result.call_id.clone()
        };
        assert_eq!(id(r#"{"role":"tool","content":"x","tool_call_ids":["c1"]}"#).as_deref(), Some("c1"));
        assert_eq!(id(r#"{"role":"tool","content":"x","tool_call_id":"c2"}"#).as_deref(), Some("c2"));
        assert_eq!(id(r#"{"role":"tool","content":"x"}"#), None);
    }

    #[test]
    fn a_thought_that_differs_from_the_content_is_kept() {
        let same = read(r#"{"role":"assistant","content":"look","thought":"look","agent":"primary"}"#, false);
        assert!(same.rest.is_empty());
        assert_eq!((same.node.role, same.node.agent.as_str()), (Role::Assistant, "primary"));
        let other = read(r#"{"role":"assistant","content":"look\n```ls```","thought":"look"}"#, false);
        assert_eq!(other.rest["thought"].as_str(), "\"look\"");
    }
}
