//! Anthropic's messages: `{role, content}`, a content being a text or a list of blocks, whose order
//! matters: thinking stands before the calls it led to, and its signature seals it.
//!
//! A tool's result comes as a block of the user's next message; here it is a message of the tool.

use serde_json::value::RawValue;

use super::content;
use super::{Aside, opaque, split, spoken, usage};
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::called;
use crate::importers::object::{Object, missing, unknown_role, wrong_type};
use crate::importers::value::{elements, json_object, text, text_or_source};
use crate::trajectory::{Call, Node, Part, Role, ToolResult};

/// The nodes of a message, be it a turn of a request or a response.
pub(super) fn message(
    mut message: Object<'_>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<Vec<Node>, RecordError> {
    let role = match message.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some(word) => return Err(unknown_role("role", word)),
        None => speaker,
    };
    let raw = message.take("content").ok_or_else(|| missing("content"))?;
    let mut node = spoken(role, None, blocks(raw, aside)?);
    node.occurrence.call = call(&mut message, aside).map(Box::new);
    message.take_if("type", |raw| raw.get() == "\"message\"");
    node.occurrence.extra = json_object(message.filled_rest());
    Ok(split(node, Vec::new()))
}

/// What a response says of the call of the model.
fn call(message: &mut Object<'_>, aside: &mut Aside) -> Option<Call> {
    let finish_reason = message.text("stop_reason");
    let mut tokens = message.object("usage");
    let usage = usage(&mut tokens);
    aside.left(tokens, "usage");
    // A request names the model too, but beside its messages.
    let model = message.text("model");
    let said = finish_reason.is_some() || usage.is_some() || model.is_some();
    said.then(|| Call { model, finish_reason, usage, ..Call::default() })
}

/// The parts of a content: a text, or a list of blocks. A block of a kind that recoup does not know,
/// or that is no object, is carried as it stands.
///
/// # Errors
/// When it is neither.
pub(in crate::importers) fn blocks(raw: &RawValue, aside: &mut Aside) -> Result<Vec<Part>, RecordError> {
    if let Some(text) = text(raw) {
        return Ok(vec![Part::text(text)]);
    }
    let blocks = elements(raw).ok_or_else(|| wrong_type("content", "a text or a list of blocks"))?;
    Ok(blocks.into_iter().map(|raw| block(raw, aside).unwrap_or_else(|| unread(raw))).collect())
}

fn unread(block: &RawValue) -> Part {
    let kind = Object::of(block).and_then(|mut fields| fields.text("type"));
    opaque(&kind.unwrap_or_else(|| "block".to_owned()), block)
}

/// A block, or `None` where it is not what its type says.
pub(super) fn block(raw: &RawValue, aside: &mut Aside) -> Option<Part> {
    let mut fields = Object::of(raw)?;
    let kind = fields.text("type")?;
    let part = match kind.as_str() {
        "text" => Part::text(fields.text("text")?),
        "thinking" => {
            Part::Reasoning { text: fields.text("thinking")?, signature: fields.optional("signature").ok()? }
        }
        "tool_use" => {
            let call_id = fields.optional("id").ok()?;
            Part::ToolCall(called(call_id, fields.text("name")?, Some(fields.take("input")?)))
        }
        "tool_result" => Part::ToolResult(ToolResult {
            call_id: fields.optional("tool_use_id").ok()?,
            parts: fields.take("content").map(|content| result_parts(content, aside)).unwrap_or_default(),
            is_error: fields.optional("is_error").ok()?,
            exit_code: None,
        }),
        "image" | "document" => medium(&mut fields.object("source"), &kind, aside)?,
        _ => return None,
    };
    for key in fields.keys() {
        aside.lose(format!("message.content.{key}"), "no part of a record holds it");
    }
    Some(part)
}

/// An image or a document: bytes in the trace, a URL, or a file that the provider holds.
fn medium(source: &mut Object<'_>, kind: &str, aside: &mut Aside) -> Option<Part> {
    let mime = if kind == "image" { "image/*" } else { "application/octet-stream" };
    match source.text("type")?.as_str() {
        "base64" => data_url::encoded(&source.text("media_type")?, &source.text("data")?, &mut aside.media),
        "url" => Some(data_url::media(&source.text("url")?, mime, &mut aside.media)),
        "file" => Some(content::elsewhere(mime, source.text("file_id")?)),
        _ => None,
    }
}

/// A result's content is a text, a list of blocks, or (from some tools) anything else.
fn result_parts(content: &RawValue, aside: &mut Aside) -> Vec<Part> {
    blocks(content, aside).unwrap_or_else(|_| vec![Part::text(text_or_source(content))])
}
