//! A message as OpenAI's chat API has it, with the fields that providers added to it.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::content::content;
use super::{Aside, spoken};
use crate::importers::RecordError;
use crate::importers::function_call::{function, tool_call};
use crate::importers::object::{Object, missing, unknown_role, wrong_type};
use crate::importers::value::{is_array, is_object, json_object};
use crate::json::Json;
use crate::trajectory::{Node, Part, Role, ToolResult, Trajectory};
use crate::warning::Loss;

/// Appends messages to a run that is a line.
pub(in crate::importers) fn push_messages(
    messages: Vec<Object<'_>>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    run.nodes.reserve(messages.len());
    let mut aside = Aside::default();
    for (index, message) in messages.into_iter().enumerate() {
        let node = node(message, &mut aside)
            .map_err(|error| RecordError::new(error.code, format!("messages[{index}]: {error}")))?;
        run.push(node);
    }
    aside.settle(run, losses);
    Ok(())
}

/// One message.
pub(super) fn node(mut message: Object<'_>, aside: &mut Aside) -> Result<Node, RecordError> {
    let word = message.text("role").ok_or_else(|| missing("role"))?;
    let role = match &*word {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(unknown_role("role", &word)),
    };
    let parts = match role {
        Role::Tool => vec![result(&mut message, aside)?],
        _ => spoken_parts(&mut message, aside)?,
    };
    let mut node = spoken(role, message.text("name"), parts);
    node.occurrence.at = message.text("timestamp");
    let mut rest = message.rest();
    if !matches!(&*word, "system" | "user" | "assistant" | "tool") {
        rest.insert("role".to_owned(), Json::string(&word));
    }
    node.occurrence.extra = json_object(rest);
    Ok(node)
}

/// Reasoning, content, refusal and calls, in the order in which a model writes them.
fn spoken_parts(message: &mut Object<'_>, aside: &mut Aside) -> Result<Vec<Part>, RecordError> {
    let mut parts = Vec::new();
    let mut seen = None;
    for key in ["reasoning_content", "reasoning", "thinking"] {
        // Providers write one reasoning under two names; the second says nothing new.
        if let Some(reasoning) = message.text(key).filter(|text| seen.as_ref() != Some(text)) {
            parts.push(Part::Reasoning { text: reasoning.clone(), signature: None });
            seen = Some(reasoning);
        }
    }
    if let Some(raw) = message.take("content") {
        parts.extend(content(raw, aside)?);
    }
    if let Some(refusal) = message.text("refusal") {
        parts.push(Part::Opaque { kind: "refusal".to_owned(), raw: refusal });
    }
    for raw in message.list("tool_calls").unwrap_or_default() {
        parts.push(call(raw, aside)?);
    }
    if message.get("function_call").is_some_and(is_object) {
        let call = function(&mut message.object("function_call"), None);
        parts.push(Part::ToolCall(call.ok_or_else(|| missing("function_call.name"))?));
    }
    Ok(parts)
}

fn call(raw: &RawValue, aside: &mut Aside) -> Result<Part, RecordError> {
    let mut call = Object::parse(raw, "tool_calls[]")?;
    let part = tool_call(&mut call).ok_or_else(|| missing("tool_calls[].function.name"))?;
    for key in call.keys() {
        aside.lose(format!("message.tool_calls[].{key}"), "a call has no place for it");
    }
    Ok(Part::ToolCall(part))
}

fn result(message: &mut Object<'_>, aside: &mut Aside) -> Result<Part, RecordError> {
    let call_id = message.text("tool_call_id");
    let is_error = message.read("is_error");
    let parts = match message.take("content") {
        Some(raw) if is_object(raw) => vec![Part::text(raw.get())],
        Some(raw) => content(raw, aside)?,
        None => Vec::new(),
    };
    if message.get("tool_calls").is_some_and(is_array) {
        return Err(wrong_type("tool_calls", "a member of a tool's message"));
    }
    Ok(Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code: None }))
}
