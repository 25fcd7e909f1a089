//! A chat message of Inspect as a node.

use serde_json::value::RawValue;

use super::attachments::Attachments;
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::tool_call;
use crate::importers::object::Object;
use crate::importers::value::{elements, json_object, text};
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Node, Part, Role, ToolResult, Trajectory};

/// A message with what tells whose it is.
pub(super) struct Message {
    /// The message, without a parent.
    pub node: Node,
    /// Inspect's id of it, in logs that have one.
    pub id: Option<String>,
    /// `input`, `generate`, or what else the log says.
    pub source: Option<String>,
}

/// Reads a message; its media go to the run.
///
/// # Errors
/// When it is no object or its role is none of a chat's.
pub(super) fn message(
    raw: &RawValue,
    attachments: &Attachments,
    run: &mut Trajectory,
) -> Result<Message, RecordError> {
    let mut members = Object::parse(raw, "message")?;
    let word =
        members.text("role").ok_or_else(|| RecordError::new("missing-field", "a message without role"))?;
    let id = members.text("id");
    let source = members.text("source");
    let mut parts = content(members.take("content"), attachments, run);
    let mut parse_errors = Vec::new();
    let mut node = match word.as_str() {
        "system" => Node::new(Role::System, "system", parts),
        "user" => Node::new(Role::User, "user", parts),
        "assistant" => {
            let calls = members.list("tool_calls").unwrap_or_default();
            if !calls.is_empty() {
                // A turn that only calls has empty content; the call is all it says.
                parts.retain(|part| part.as_text() != Some(""));
            }
            for raw in calls {
                parts.push(call(raw, attachments));
                let error = Object::of(raw).and_then(|call| call.get("parse_error"));
                parse_errors.extend(error.map(Json::from));
            }
            Node::new(Role::Assistant, "assistant", parts)
        }
        "tool" => {
            let error = members.get("error").and_then(Object::of);
            let said = error.as_ref().and_then(|error| error.get("message")).and_then(text);
            if let Some(said) = said.filter(|_| parts.iter().all(|part| part.as_text() == Some(""))) {
                // The model was shown the error's words where there was no content.
                parts = vec![Part::text(attachments.resolve(&said).into_owned())];
            }
            let call_id = members.text("tool_call_id");
            let is_error = error.is_some().then_some(true);
            let agent = members.text("function").unwrap_or_else(|| "environment".to_owned());
            let result = Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code: None });
            Node::new(Role::Tool, agent, vec![result])
        }
        _ => return Err(RecordError::new("wrong-type", format!("`{word}` is no role of a message"))),
    };
    let mut rest = attachments.filled_rest(members);
    if !parse_errors.is_empty()
        && let Ok(errors) = Json::from_serialize(&parse_errors)
    {
        rest.insert("parse_errors".to_owned(), errors);
    }
    node.occurrence.extra = json_object(&rest);
    Ok(Message { node, id, source })
}

fn call(raw: &RawValue, attachments: &Attachments) -> Part {
    match Object::of(raw).and_then(|mut call| tool_call(&mut call)) {
        Some(mut call) => {
            let resolved = match call.arguments_form {
                ArgumentsForm::String => attachments.resolve(&call.arguments_raw),
                ArgumentsForm::Object => attachments.resolve_json(&call.arguments_raw),
            };
            call.arguments_raw = resolved.into_owned();
            Part::ToolCall(call)
        }
        None => opaque("tool_call", raw, attachments),
    }
}

/// A content: a string, or a list of typed pieces.
fn content(raw: Option<&RawValue>, attachments: &Attachments, run: &mut Trajectory) -> Vec<Part> {
    let Some(raw) = raw else { return Vec::new() };
    if let Some(text) = text(raw) {
        return vec![Part::text(attachments.resolve(&text).into_owned())];
    }
    let Some(pieces) = elements(raw) else { return vec![opaque("content", raw, attachments)] };
    pieces
        .into_iter()
        .map(|raw| piece(raw, attachments, run).unwrap_or_else(|| opaque("content", raw, attachments)))
        .collect()
}

fn piece(raw: &RawValue, attachments: &Attachments, run: &mut Trajectory) -> Option<Part> {
    let mut piece = Object::of(raw)?;
    let kind = piece.text("type")?;
    match kind.as_str() {
        "text" => Some(Part::text(attachments.resolve(&piece.text("text")?).into_owned())),
        // A redacted reasoning is the provider's sealed text: carried, not read.
        "reasoning" if piece.read("redacted") != Some(true) => Some(Part::Reasoning {
            text: attachments.resolve(&piece.text("reasoning")?).into_owned(),
            signature: piece.text("signature"),
        }),
        "image" | "audio" | "video" => {
            let url = piece.text(&kind)?;
            Some(data_url::media(&attachments.resolve(&url), &format!("{kind}/*"), &mut run.media))
        }
        _ => None,
    }
}

fn opaque(kind: &str, raw: &RawValue, attachments: &Attachments) -> Part {
    Part::Opaque { kind: kind.to_owned(), raw: attachments.resolve_json(raw.get()).into_owned() }
}
