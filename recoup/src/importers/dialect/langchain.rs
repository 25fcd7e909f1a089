//! LangChain's messages, in the forms it serializes them to: a constructor (`{lc, type: "constructor",
//! id, kwargs}`), a typed wrapper (`{type: "human", data: {…}}`), or flat (`{type: "ai", content, …}`).
//!
//! A content is a text, a list of LangChain's own blocks, or a list of the provider's. The calls stand
//! beside it, parsed, and often once more in the provider's form under `additional_kwargs`; only what the
//! parsed ones do not say is read from there.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::content::{elsewhere, known};
use super::{Aside, anthropic, opaque, spoken, usage};
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::function_call::{called, tool_call};
use crate::importers::object::{Object, missing, unknown_role, wrong_type};
use crate::importers::value::{elements, is_object, json_object, text, text_or_source};
use crate::trajectory::{Call, Node, Part, Role, ToolCall, ToolResult};

/// The role of a type word or class name; `None` for words that name no message.
pub(super) fn role(word: &str) -> Option<Role> {
    Some(match word.trim_end_matches("MessageChunk").trim_end_matches("Message") {
        "system" | "System" | "developer" => Role::System,
        "human" | "Human" | "user" => Role::User,
        "ai" | "AI" | "assistant" => Role::Assistant,
        "tool" | "Tool" | "function" | "Function" => Role::Tool,
        _ => return None,
    })
}

/// The nodes of a message.
pub(super) fn message(mut outer: Object<'_>, aside: &mut Aside) -> Result<Vec<Node>, RecordError> {
    let mut word = outer.text("type").or_else(|| outer.text("role"));
    let mut fields = if outer.has("lc") {
        // Its class is the last of the names that lead to it.
        let class = outer.list("id").and_then(|names| text(names.last()?).map(Cow::into_owned));
        let kwargs = outer.object("kwargs");
        word = class.or_else(|| kwargs.clone().text("type"));
        kwargs
    } else if outer.get("data").is_some_and(is_object) {
        outer.object("data")
    } else {
        outer
    };
    let word = word.ok_or_else(|| missing("type"))?;
    let said = fields.text("role").filter(|_| word.starts_with("chat") || word.starts_with("Chat"));
    let known = role(said.as_deref().unwrap_or(&word));
    let role = known.ok_or_else(|| unknown_role("type", said.as_deref().unwrap_or(&word)))?;
    fields.take("type");
    fields.take_if("example", |raw| raw.get() == "false");
    let name = fields.text("name");
    let mut node = match role {
        Role::Tool => spoken(role, name, vec![Part::ToolResult(result(&mut fields, aside)?)]),
        Role::Assistant => {
            let parts = answer(&mut fields, aside)?;
            let mut node = spoken(role, name, parts);
            node.occurrence.call = call(&mut fields, aside).map(Box::new);
            node
        }
        _ => spoken(role, name, content(&mut fields, aside)?),
    };
    node.occurrence.extra = json_object(fields.filled_rest());
    Ok(vec![node])
}

fn result(fields: &mut Object<'_>, aside: &mut Aside) -> Result<ToolResult, RecordError> {
    let is_error = match fields.text("status").as_deref() {
        Some("error") => Some(true),
        Some("success") => Some(false),
        _ => None,
    };
    let call_id = fields.text("tool_call_id");
    Ok(ToolResult { call_id, parts: content(fields, aside)?, is_error, exit_code: None })
}

/// What a model said and called.
fn answer(fields: &mut Object<'_>, aside: &mut Aside) -> Result<Vec<Part>, RecordError> {
    let mut parts = content(fields, aside)?;
    let mut beside = fields.object("additional_kwargs");
    if let Some(text) = beside.text("reasoning_content") {
        parts.insert(0, Part::Reasoning { text, signature: None });
    }
    let provider: Vec<ToolCall> = beside
        .list("tool_calls")
        .unwrap_or_default()
        .into_iter()
        .filter_map(|raw| tool_call(&mut Object::of(raw)?))
        .collect();
    let parsed = fields.list("tool_calls").unwrap_or_default();
    let invalid = fields.list("invalid_tool_calls").unwrap_or_default();
    fields.take("tool_call_chunks");
    let mut calls = Vec::new();
    for raw in parsed.into_iter().chain(invalid) {
        calls.push(parsed_call(raw, aside)?);
    }
    if calls.is_empty() {
        calls = provider;
    } else {
        // The provider's own bytes of the same call.
        let mut own: BTreeMap<Option<String>, ToolCall> =
            provider.into_iter().map(|call| (call.call_id.clone(), call)).collect();
        for call in calls.iter_mut().filter(|call| call.call_id.is_some()) {
            // Once, or many calls of one id would multiply its arguments.
            if let Some(own) = own.remove(&call.call_id) {
                *call = own;
            }
        }
    }
    // A content of the provider's blocks holds the calls already, in their place.
    let held: BTreeSet<String> = parts.iter().filter_map(call_id).map(str::to_owned).collect();
    calls.retain(|call| call.call_id.as_ref().is_none_or(|id| !held.contains(id)));
    if !calls.is_empty() {
        parts.retain(|part| part.as_text() != Some(""));
    }
    parts.extend(calls.into_iter().map(Part::ToolCall));
    aside.left(beside, "additional_kwargs");
    Ok(parts)
}

fn call_id(part: &Part) -> Option<&str> {
    match part {
        Part::ToolCall(call) => call.call_id.as_deref(),
        _ => None,
    }
}

fn parsed_call(raw: &RawValue, aside: &mut Aside) -> Result<ToolCall, RecordError> {
    let mut fields = Object::parse(raw, "tool_calls[]")?;
    fields.take("type");
    let name = fields.text("name").ok_or_else(|| missing("tool_calls[].name"))?;
    let call = called(fields.text("id"), name, fields.take("args"));
    aside.left(fields, "tool_calls[]");
    Ok(call)
}

/// What the message says of the call of the model.
fn call(fields: &mut Object<'_>, aside: &mut Aside) -> Option<Call> {
    let mut tokens = fields.object("usage_metadata");
    let mut counted = usage(&mut tokens);
    aside.left(tokens, "usage_metadata");
    let mut response = fields.object("response_metadata");
    let model = response.text("model_name").or_else(|| response.text("model"));
    let finish_reason = response.text("finish_reason").or_else(|| response.text("stop_reason"));
    for key in ["token_usage", "usage"] {
        let mut tokens = response.object(key);
        counted = counted.or_else(|| usage(&mut tokens));
    }
    response.take("model_provider");
    aside.left(response, "response_metadata");
    let said = model.is_some() || finish_reason.is_some() || counted.is_some();
    said.then(|| Call { model, finish_reason, usage: counted, ..Call::default() })
}

fn content(fields: &mut Object<'_>, aside: &mut Aside) -> Result<Vec<Part>, RecordError> {
    let Some(raw) = fields.take("content") else { return Ok(Vec::new()) };
    if let Some(text) = text(raw) {
        return Ok(vec![Part::text(text)]);
    }
    if is_object(raw) {
        return Ok(vec![Part::text(text_or_source(raw))]);
    }
    let list = elements(raw).ok_or_else(|| wrong_type("content", "a text or a list of blocks"))?;
    Ok(list.into_iter().map(|raw| block(raw, aside)).collect())
}

/// A block of LangChain's own kinds, else of the provider's.
fn block(raw: &RawValue, aside: &mut Aside) -> Part {
    if let Some(text) = text(raw) {
        return Part::text(text);
    }
    let Some(mut fields) = Object::of(raw) else { return opaque("block", raw) };
    let kind = fields.text("type").unwrap_or_else(|| "untyped".to_owned());
    if matches!(kind.as_str(), "thinking" | "tool_use" | "tool_result") || fields.has("source") {
        return anthropic::block(raw, aside).unwrap_or_else(|| opaque(&kind, raw));
    }
    let read = match kind.as_str() {
        "tool_call" | "invalid_tool_call" => {
            let name = fields.text("name");
            name.map(|name| Part::ToolCall(called(fields.text("id"), name, fields.take("args"))))
        }
        "image" | "audio" | "video" | "file" => medium(&kind, &mut fields, aside),
        _ => known(&kind, &mut fields, aside),
    };
    let Some(read) = read else { return opaque(&kind, raw) };
    // Its place in the stream is its place in the list.
    fields.take("index");
    aside.left(fields, "content[]");
    read
}

/// Bytes in base64, a URL, or a file that the provider holds.
fn medium(kind: &str, fields: &mut Object<'_>, aside: &mut Aside) -> Option<Part> {
    fields.take("source_type");
    let mime = fields.text("mime_type");
    let mime = mime.unwrap_or_else(|| match kind {
        "file" => "application/octet-stream".to_owned(),
        kind => format!("{kind}/*"),
    });
    if let Some(bytes) = fields.text("base64").or_else(|| fields.text("data")) {
        return data_url::encoded(&mime, &bytes, &mut aside.media);
    }
    if let Some(url) = fields.text("url") {
        return Some(data_url::media(&url, &mime, &mut aside.media));
    }
    match fields.text("file_id").or_else(|| fields.text("id")) {
        Some(id) => Some(elsewhere(&mime, id)),
        None => known(kind, fields, aside),
    }
}
