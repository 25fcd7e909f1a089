//! Messages of OpenTelemetry's semantic conventions for generative AI: `{role, parts, finish_reason}`.
//!
//! Writers differ from the standard and from each other: a result stands under `response` or `result`,
//! arguments are a value or a string, a text stands under `content` or `text`.

use serde_json::value::RawValue;

use super::content::elsewhere;
use super::{Aside, opaque, split, spoken};
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::called;
use crate::importers::object::{Object, missing, unknown_role};
use crate::importers::value::{elements, json_object, text, text_or_source};
use crate::trajectory::{Call, Node, Part, Role, ToolResult};

/// The nodes of a message.
pub(super) fn message(
    mut message: Object<'_>,
    speaker: Role,
    aside: &mut Aside,
) -> Result<Vec<Node>, RecordError> {
    let word = message.text("role");
    let role = match word.as_deref() {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant" | "model") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        Some(word) => return Err(unknown_role("role", word)),
        None => speaker,
    };
    let list = message.list("parts").ok_or_else(|| missing("parts"))?;
    let (mut parts, mut names) = (Vec::new(), Vec::new());
    for raw in list {
        let (part, name) = part(raw, aside);
        if matches!(part, Part::ToolResult(_)) {
            names.push(name);
        }
        parts.push(part);
    }
    let mut node = spoken(role, message.text("name"), parts);
    if let Some(finish_reason) = message.text("finish_reason").filter(|reason| !reason.is_empty()) {
        node.occurrence.call = Some(Box::new(Call { finish_reason: Some(finish_reason), ..Call::default() }));
    }
    node.occurrence.extra = json_object(message.filled_rest());
    Ok(split(node, names))
}

/// A part, and the tool that a result names.
fn part(raw: &RawValue, aside: &mut Aside) -> (Part, Option<String>) {
    let Some(mut fields) = Object::of(raw) else {
        return (text(raw).map_or_else(|| opaque("part", raw), Part::text), None);
    };
    let kind = fields.text("type").unwrap_or_else(|| "untyped".to_owned());
    let mut name = None;
    let read = match kind.as_str() {
        "text" => said(&mut fields).map(Part::text),
        "reasoning" | "thinking" => {
            let text = said(&mut fields);
            text.map(|text| Part::Reasoning { text, signature: fields.text("signature") })
        }
        "tool_call" => tool_call(&mut fields),
        "tool_call_response" => {
            name = fields.text("name");
            Some(Part::ToolResult(result(&mut fields)))
        }
        "blob" | "file" | "uri" => medium(&mut fields, &kind, aside),
        _ => None,
    };
    let Some(read) = read else { return (opaque(&kind, raw), None) };
    aside.left(fields, &kind);
    (read, name)
}

fn said(fields: &mut Object<'_>) -> Option<String> {
    fields.text("content").or_else(|| fields.text("text"))
}

fn tool_call(fields: &mut Object<'_>) -> Option<Part> {
    let name = fields.text("name")?;
    let call_id = fields.id("id");
    Some(Part::ToolCall(called(call_id, name, fields.take("arguments"))))
}

fn result(fields: &mut Object<'_>) -> ToolResult {
    let call_id = fields.id("id");
    let said = ["response", "result", "content"].into_iter().find_map(|key| fields.take(key));
    let parts = said.map(|raw| match texts(raw) {
        Some(texts) => texts.into_iter().map(Part::text).collect(),
        None => vec![Part::text(text_or_source(raw))],
    });
    ToolResult {
        call_id,
        parts: parts.unwrap_or_default(),
        is_error: fields.read("is_error"),
        exit_code: None,
    }
}

/// The texts of a list of nothing else.
fn texts(raw: &RawValue) -> Option<Vec<String>> {
    let list = elements(raw).filter(|list| !list.is_empty())?;
    let read = |raw| {
        let mut fields = Object::of(raw)?;
        let kind = fields.text("type")?;
        (kind == "text").then(|| said(&mut fields))?
    };
    list.into_iter().map(read).collect()
}

/// Bytes in base64, a file of the provider, or a URI; `modality` says the kind where no type is given.
fn medium(fields: &mut Object<'_>, kind: &str, aside: &mut Aside) -> Option<Part> {
    let modality = fields.text("modality");
    let mime = fields.text("mime_type").or_else(|| modality.map(|modality| format!("{modality}/*")));
    let mime = mime.unwrap_or_else(|| "application/octet-stream".to_owned());
    match kind {
        "blob" => {
            let bytes = fields.text("content").or_else(|| fields.text("data"))?;
            data_url::encoded(&mime, &bytes, &mut aside.media)
        }
        "uri" => Some(data_url::media(&fields.text("uri")?, &mime, &mut aside.media)),
        _ => fields.text("file_id").map(|id| elsewhere(&mime, id)),
    }
}
