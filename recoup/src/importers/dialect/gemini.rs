//! Google's contents: `{role, parts}`, a part being an object of one member that says what it is. Its
//! own libraries write the members in camel case or in snake case.
//!
//! Calls have no ids in most logs. A `thoughtSignature` seals the reasoning before it, which the API
//! often does not show: then it stands in a reasoning without text.

use serde_json::value::RawValue;

use super::content::elsewhere;
use super::{Aside, opaque, split, spoken};
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::called;
use crate::importers::object::{Object, missing, unknown_role};
use crate::importers::value::{elements, json_object, text};
use crate::trajectory::{Node, Part, Role, ToolResult};

/// The nodes of a content.
pub(super) fn content(
    mut content: Object<'_>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<Vec<Node>, RecordError> {
    let role = match content.text("role").as_deref() {
        Some("user") => Role::User,
        Some("model" | "assistant") => Role::Assistant,
        Some("system") => Role::System,
        Some("function" | "tool") => Role::Tool,
        Some("") | None => speaker,
        Some(word) => return Err(unknown_role("role", word)),
    };
    let (parts, names) = read_parts(&mut content, aside)?;
    let mut node = spoken(role, None, parts);
    node.occurrence.extra = json_object(content.filled_rest());
    Ok(split(node, names))
}

/// The parts of a content whose speaker is known.
pub(super) fn parts(mut content: Object<'_>, aside: &mut Aside) -> Result<Vec<Part>, RecordError> {
    content.take("role");
    let (parts, _) = read_parts(&mut content, aside)?;
    aside.left(content, "content");
    Ok(parts)
}

/// The parts, and the tool of each result among them.
fn read_parts(
    content: &mut Object<'_>,
    aside: &mut Aside,
) -> Result<(Vec<Part>, Vec<Option<String>>), RecordError> {
    let raw = content.take("parts").ok_or_else(|| missing("parts"))?;
    // Some logs write a single part without its list.
    let list = elements(raw).unwrap_or_else(|| vec![raw]);
    let (mut parts, mut names) = (Vec::new(), Vec::new());
    for raw in list {
        let Some(mut fields) = Object::of(raw) else {
            parts.push(text(raw).map_or_else(|| opaque("part", raw), Part::text));
            continue;
        };
        let signature = take(&mut fields, "thoughtSignature", "thought_signature");
        let signature = signature.and_then(text).map(std::borrow::Cow::into_owned);
        let (part, name) = part(raw, fields, signature, &mut parts, aside);
        if matches!(part, Part::ToolResult(_)) {
            names.push(name);
        }
        parts.push(part);
    }
    Ok((parts, names))
}

fn take<'a>(fields: &mut Object<'a>, camel: &str, snake: &str) -> Option<&'a RawValue> {
    fields.take(camel).or_else(|| fields.take(snake))
}

/// A part, and the tool that a result names. A seal goes to the reasoning it belongs to.
fn part(
    raw: &RawValue,
    mut fields: Object<'_>,
    signature: Option<String>,
    before: &mut Vec<Part>,
    aside: &mut Aside,
) -> (Part, Option<String>) {
    let mut signature = signature;
    let mut name = None;
    let thought = fields.read::<bool>("thought") == Some(true);
    let read = if let Some(said) = fields.text("text") {
        Some(if thought {
            Part::Reasoning { text: said, signature: signature.take() }
        } else {
            Part::text(said)
        })
    } else if let Some(call) = take(&mut fields, "functionCall", "function_call") {
        function_call(call, aside)
    } else if let Some(response) = take(&mut fields, "functionResponse", "function_response") {
        function_response(response, aside).map(|(result, tool)| {
            name = tool;
            Part::ToolResult(result)
        })
    } else if let Some(data) = take(&mut fields, "inlineData", "inline_data") {
        medium(data, aside)
    } else if let Some(data) = take(&mut fields, "fileData", "file_data") {
        medium(data, aside)
    } else {
        None
    };
    seal(signature, before, aside);
    let Some(read) = read else {
        // Programs that the provider ran, and what comes next year.
        let kind = fields.keys().next().unwrap_or("part").to_owned();
        return (opaque(kind, raw), None);
    };
    aside.left(fields, "part");
    (read, name)
}

/// Gives a seal to the last reasoning before it, or to one without text where that has its own or there
/// is none.
fn seal(signature: Option<String>, before: &mut Vec<Part>, aside: &mut Aside) {
    let Some(seal) = signature else { return };
    aside.lose("part.thoughtSignature", "kept with the reasoning, not with the part that it stood on");
    let reasoning = before.iter_mut().rev().find_map(|part| match part {
        Part::Reasoning { signature, .. } => Some(signature),
        _ => None,
    });
    match reasoning {
        Some(signature) if signature.is_none() => *signature = Some(seal),
        _ => before.push(Part::Reasoning { text: String::new(), signature: Some(seal) }),
    }
}

fn function_call(raw: &RawValue, aside: &mut Aside) -> Option<Part> {
    let mut call = Object::of(raw)?;
    let name = call.text("name")?;
    let part = called(call.id("id"), name, call.take("args"));
    aside.left(call, "functionCall");
    Some(Part::ToolCall(part))
}

/// A result with its tool. `{result}`, `{output}` and `{error}` are how Google's library wraps a text;
/// any other response is kept as its source text.
fn function_response(raw: &RawValue, aside: &mut Aside) -> Option<(ToolResult, Option<String>)> {
    let mut fields = Object::of(raw)?;
    let name = fields.text("name");
    let call_id = fields.id("id");
    let response = fields.take("response");
    let mut is_error = None;
    let mut parts = Vec::new();
    if let Some(raw) = response {
        let wrapped = Object::of(raw).and_then(|mut response| {
            let key = ["result", "output", "error"].into_iter().find(|key| response.has(key))?;
            let said = response.text(key)?;
            (response.keys().next().is_none()).then_some((key, said))
        });
        match wrapped {
            Some((key, said)) => {
                is_error = (key == "error").then_some(true);
                parts.push(Part::text(said));
            }
            None => parts.push(Part::text(raw.get())),
        }
    }
    for raw in fields.list("parts").unwrap_or_default() {
        let data = Object::of(raw).and_then(|mut part| take(&mut part, "inlineData", "inline_data"));
        parts.push(data.and_then(|data| medium(data, aside)).unwrap_or_else(|| opaque("part", raw)));
    }
    aside.left(fields, "functionResponse");
    Some((ToolResult { call_id, parts, is_error, exit_code: None }, name))
}

/// Bytes in base64, or a URI.
fn medium(raw: &RawValue, aside: &mut Aside) -> Option<Part> {
    let mut fields = Object::of(raw)?;
    let mime = take(&mut fields, "mimeType", "mime_type").and_then(text);
    let mime = mime.map_or_else(|| "application/octet-stream".to_owned(), std::borrow::Cow::into_owned);
    let part = match fields.text("data") {
        Some(data) => data_url::encoded(&mime, &data, &mut aside.media)?,
        None => {
            let uri = take(&mut fields, "fileUri", "file_uri").and_then(text)?;
            elsewhere(&mime, uri.into_owned())
        }
    };
    aside.left(fields, "data");
    Some(part)
}
