//! A message as OpenAI's chat API has it, with the fields that providers added to it.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::content::{content, result_parts};
use crate::importers::RecordError;
use crate::importers::object::{
    Object, boolean, elements, is_array, is_object, json_object, missing, text, unknown_role, wrong_type,
};
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Node, Part, Role, ToolCall, ToolResult, Trajectory};
use crate::warning::Loss;

/// Appends messages to a run that is a line.
pub(in crate::importers) fn push_messages(
    messages: Vec<Object<'_>>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    run.nodes.reserve(messages.len());
    for (index, message) in messages.into_iter().enumerate() {
        let node = node(message, run, losses)
            .map_err(|error| RecordError::new(error.code, format!("messages[{index}]: {error}")))?;
        run.push(node);
    }
    Ok(())
}

fn node(
    mut message: Object<'_>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<Node, RecordError> {
    let word = message.take_text("role").ok_or_else(|| missing("role"))?;
    let role = match &*word {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return Err(unknown_role("role", &word)),
    };
    let parts = match role {
        Role::Tool => vec![result(&mut message, run, losses)?],
        _ => spoken_parts(&mut message, run, losses)?,
    };
    let name = message.take_text("name").filter(|name| !name.is_empty());
    let mut node = Node::new(role, name.unwrap_or(Cow::Borrowed(role.as_str())), parts);
    node.occurrence.sampled = role == Role::Assistant;
    node.occurrence.at = message.take_text("timestamp").map(Cow::into_owned);
    let mut rest = message.rest();
    if !matches!(&*word, "system" | "user" | "assistant" | "tool") {
        rest.insert("role".to_owned(), Json::string(&word));
    }
    node.occurrence.extra = (!rest.is_empty()).then(|| json_object(rest));
    Ok(node)
}

/// Reasoning, content, refusal and calls, in the order in which a model writes them.
fn spoken_parts(
    message: &mut Object<'_>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<Vec<Part>, RecordError> {
    let mut parts = Vec::new();
    let mut seen: Option<Cow<'_, str>> = None;
    for key in ["reasoning_content", "reasoning", "thinking"] {
        // Providers write one reasoning under two names; the second says nothing new.
        if let Some(reasoning) = message.take_text(key).filter(|text| seen.as_ref() != Some(text)) {
            parts.push(Part::Reasoning { text: reasoning.clone().into_owned(), signature: None });
            seen = Some(reasoning);
        }
    }
    if let Some(raw) = message.take("content") {
        content(raw, &mut parts, run, losses)?;
    }
    if let Some(refusal) = message.take_text("refusal") {
        parts.push(Part::Opaque { kind: "refusal".to_owned(), raw: refusal.into_owned() });
    }
    if let Some(raw) = message.take_if("tool_calls", is_array) {
        for raw in elements(raw, "tool_calls")? {
            parts.push(call(raw, &run.source.format, losses)?);
        }
    }
    if let Some(raw) = message.take_if("function_call", is_object) {
        parts.push(Part::ToolCall(function(&mut Object::parse(raw, "function_call")?, None)?));
    }
    Ok(parts)
}

fn call(raw: &RawValue, format: &str, losses: &mut BTreeSet<Loss>) -> Result<Part, RecordError> {
    let mut call = Object::parse(raw, "tool_calls[]")?;
    let call_id = call.take_text("id").map(Cow::into_owned);
    // Its place among the calls is its index; a type other than `function` shows in the member's name.
    call.take("index");
    call.take("type");
    let part = if let Some(raw) = call.take_if("function", is_object) {
        function(&mut Object::parse(raw, "function")?, call_id)?
    } else if let Some(raw) = call.take_if("custom", is_object) {
        let mut custom = Object::parse(raw, "custom")?;
        ToolCall {
            call_id,
            name: custom.take_text("name").ok_or_else(|| missing("custom.name"))?.into_owned(),
            arguments_raw: custom.take_text("input").unwrap_or_default().into_owned(),
            arguments_form: ArgumentsForm::String,
        }
    } else {
        // Some data sets leave the wrapper out.
        function(&mut call, call_id)?
    };
    for key in call.keys() {
        let field = format!("message.tool_calls[].{key}");
        losses.insert(Loss::new(format, field, "a call has no place for it"));
    }
    Ok(Part::ToolCall(part))
}

/// A called function: its name and its arguments, byte for byte.
pub(in crate::importers) fn function(
    function: &mut Object<'_>,
    call_id: Option<String>,
) -> Result<ToolCall, RecordError> {
    let name = function.take_text("name").ok_or_else(|| missing("function.name"))?.into_owned();
    let arguments = function.take("arguments");
    let (arguments_raw, arguments_form) = match arguments {
        None => (String::new(), ArgumentsForm::String),
        Some(raw) => match text(raw) {
            Some(text) => (text.into_owned(), ArgumentsForm::String),
            None => (raw.get().to_owned(), ArgumentsForm::Object),
        },
    };
    Ok(ToolCall { call_id, name, arguments_raw, arguments_form })
}

fn result(
    message: &mut Object<'_>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<Part, RecordError> {
    let call_id = message.take_text("tool_call_id").map(Cow::into_owned);
    let is_error = message.take_if("is_error", |raw| boolean(raw).is_some()).and_then(boolean);
    let parts = match message.take("content") {
        Some(raw) if is_object(raw) => vec![Part::text(raw.get())],
        Some(raw) => result_parts(raw, run, losses)?,
        None => Vec::new(),
    };
    if message.get("tool_calls").is_some_and(is_array) {
        return Err(wrong_type("tool_calls", "a member of a tool's message"));
    }
    Ok(Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code: None }))
}
