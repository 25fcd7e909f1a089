//! Observations: messages of the tools, attached to the step they follow.

use serde_json::{Map, Value, json};

use super::merged_extra;
use super::step::{Writer, take};
use crate::trajectory::{Node, Part, Role, ToolResult};

/// Attaches a message of the tools to the last step.
pub(super) fn append(writer: &mut Writer<'_>, node: &Node) {
    if writer.steps.is_empty() {
        writer.stand_in();
    }
    let Some(last) = writer.steps.last() else { return };
    let copied = last.get("is_copied_context") == Some(&Value::Bool(true));
    let first = !last.contains_key("observation");
    let call_ids: Option<Vec<String>> = last.get("tool_calls").and_then(Value::as_array).map(|calls| {
        calls.iter().filter_map(|call| Some(call.get("tool_call_id")?.as_str()?.to_owned())).collect()
    });
    if node.occurrence.copied_context != copied {
        writer.lost.note("is_copied_context", "a step is copied with its observation or not at all");
    }
    if node.occurrence.call.is_some() || node.occurrence.sampled {
        writer.lost.note("observation", "a model call behind a tool's message");
    }
    let mut told = writer.notes(node.occurrence.extra.as_ref());
    let told_results = take(&mut told, "results", Value::is_array);
    let mut message = message(node, told, first);
    let mut results = Vec::new();
    let mut parts = node.parts.as_slice();
    while let Some(part) = parts.first() {
        let told = told_results.as_ref().and_then(|told| told.get(results.len()));
        let written = if let Part::ToolResult(result) = part {
            parts = &parts[1..];
            self::result(writer, result, call_ids.as_deref(), told, message.take())
        } else {
            // Words of the environment that answer no call.
            let end =
                parts.iter().position(|part| matches!(part, Part::ToolResult(_))).unwrap_or(parts.len());
            let (words, rest) = parts.split_at(end);
            parts = rest;
            let own = Map::from_iter([("plain".to_owned(), true.into())]);
            write(writer, Map::new(), words, told, own, message.take())
        };
        results.push(written);
    }
    if message.is_some() && node.parts.is_empty() {
        writer.lost.note("observation", "a message without results");
    }
    let Some(step) = writer.steps.last_mut() else { return };
    let observation = step.entry("observation").or_insert_with(|| json!({"results": []}));
    if let Some(list) = observation.get_mut("results").and_then(Value::as_array_mut) {
        list.append(&mut results);
    }
}

/// What tells this message from the one that a reader would assume: the first after its step, by
/// "tool", without a time.
fn message(node: &Node, told: Map<String, Value>, first: bool) -> Option<Value> {
    let mut message = Map::new();
    if node.agent != Role::Tool.as_str() {
        message.insert("agent".to_owned(), node.agent.as_str().into());
    }
    message.extend(node.occurrence.at.clone().map(|at| ("at".to_owned(), at.into())));
    if !told.is_empty() {
        message.insert("extra".to_owned(), Value::Object(told));
    }
    (!first || !message.is_empty()).then_some(Value::Object(message))
}

fn result(
    writer: &mut Writer<'_>,
    result: &ToolResult,
    call_ids: Option<&[String]>,
    told: Option<&Value>,
    message: Option<Value>,
) -> Value {
    let (mut written, mut own) = (Map::new(), Map::new());
    if let Some(id) = &result.call_id {
        // Strict readers demand that a step's results answer its own calls.
        let answers = call_ids.is_none_or(|ids| ids.contains(id));
        let (key, target) = if answers { ("source_call_id", &mut written) } else { ("call_id", &mut own) };
        target.insert(key.to_owned(), id.as_str().into());
    }
    own.extend(result.is_error.map(|is_error| ("is_error".to_owned(), is_error.into())));
    own.extend(result.exit_code.map(|code| ("exit_code".to_owned(), code.into())));
    write(writer, written, &result.parts, told, own, message)
}

fn write(
    writer: &mut Writer<'_>,
    mut written: Map<String, Value>,
    parts: &[Part],
    told: Option<&Value>,
    mut own: Map<String, Value>,
    message: Option<Value>,
) -> Value {
    let mut told = told.and_then(Value::as_object).cloned().unwrap_or_default();
    let form = take(&mut told, "content_form", Value::is_array);
    let parts: Vec<&Part> = parts.iter().collect();
    written.extend(writer.content(&parts, form.as_ref()).map(|content| ("content".to_owned(), content)));
    own.extend(message.map(|message| ("message".to_owned(), message)));
    let stated = told.shift_remove("extra");
    written.extend(told);
    if let Some(extra) = merged_extra(stated, own) {
        writer.needs(7);
        written.insert("extra".to_owned(), extra);
    }
    Value::Object(written)
}
