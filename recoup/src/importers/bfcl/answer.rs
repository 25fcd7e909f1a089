//! What a model answered: a text or calls; and the log of a run of several turns.

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::dialect::{Aside, Dialect, messages};
use crate::importers::function_call::called;
use crate::importers::harness_message::opaque;
use crate::importers::object::Object;
use crate::importers::value::{elements, is_object, text, text_or_source};
use crate::trajectory::{Node, Part, Role, ToolResult, Trajectory};

/// Nesting of a result: turns, steps, calls.
const DEPTH_MAX: usize = 3;

/// Appends an answer, or the answers of each turn and step, as turns of the model.
pub(super) fn push(raw: &RawValue, reasoning: Option<&str>, run: &mut Trajectory) {
    push_nested(raw, reasoning, run, 0);
}

fn push_nested(raw: &RawValue, reasoning: Option<&str>, run: &mut Trajectory, depth: usize) {
    match elements(raw) {
        Some(list) if depth < DEPTH_MAX && !list.is_empty() && !list.iter().all(|raw| is_object(raw)) => {
            for raw in list {
                push_nested(raw, reasoning, run, depth + 1);
            }
        }
        _ => {
            let mut parts: Vec<Part> = Vec::new();
            let reasoning = reasoning.filter(|text| !text.is_empty());
            parts.extend(reasoning.map(|text| Part::Reasoning { text: text.to_owned(), signature: None }));
            parts.extend(answered(raw));
            turn(parts, run);
        }
    }
}

fn turn(parts: Vec<Part>, run: &mut Trajectory) {
    let mut node = Node::new(Role::Assistant, "assistant", parts);
    node.occurrence.sampled = true;
    run.push(node);
}

/// The parts of one answer. Its calls have no ids.
fn answered(raw: &RawValue) -> Vec<Part> {
    let Some(list) = elements(raw) else {
        return text(raw).map_or_else(|| vec![opaque("result", raw)], |text| vec![Part::text(text)]);
    };
    let mut parts = Vec::new();
    for raw in list {
        match Object::of(raw) {
            Some(call) => {
                let calls = call.members().into_iter();
                parts.extend(
                    calls.map(|(name, arguments)| Part::ToolCall(called(None, name, Some(arguments)))),
                );
            }
            None => parts.push(opaque("result", raw)),
        }
    }
    parts
}

/// Appends the turns of a log: the questions, then each step's answer and what the tools said.
pub(super) fn log(turns: &[&RawValue], run: &mut Trajectory, aside: &mut Aside) -> Result<(), RecordError> {
    for raw in turns {
        let Some(mut members) = Object::of(raw) else {
            aside.lose("inference_log.state_info", "the environment's state after a turn is not kept");
            continue;
        };
        if let Some(asked) = members.take("begin_of_turn_query") {
            for node in messages(asked, Some(Dialect::Chat), Role::User, aside)? {
                run.push(node);
            }
        }
        let mut number = 0;
        while let Some(entries) = members.list(&format!("step_{number}")) {
            for raw in entries {
                entry(raw, run, aside)?;
            }
            number += 1;
        }
        for key in members.keys() {
            aside.lose(format!("inference_log.{key}"), "no part of a record holds it");
        }
    }
    Ok(())
}

fn entry(raw: &RawValue, run: &mut Trajectory, aside: &mut Aside) -> Result<(), RecordError> {
    let mut entry = Object::parse(raw, "inference_log[]")?;
    let role = entry.text("role").unwrap_or_default();
    let content = entry.take("content");
    match (&*role, content) {
        ("assistant", Some(content)) => {
            let mut parts: Vec<Part> = Vec::new();
            let reasoning = entry.text("reasoning_content").filter(|text| !text.is_empty());
            parts.extend(reasoning.map(|text| Part::Reasoning { text, signature: None }));
            parts.extend(answered(content));
            turn(parts, run);
        }
        ("tool", Some(content)) => {
            let parts = vec![Part::text(text_or_source(content))];
            let result = ToolResult { call_id: None, parts, is_error: None, exit_code: None };
            run.push(Node::new(Role::Tool, "tool", vec![Part::ToolResult(result)]));
        }
        // Where the harness could not read a call it says so, and the agent never learns of it.
        ("handler_log", Some(content)) if entry.has("error") => {
            let said = [text_or_source(content), entry.text("error").unwrap_or_default()].join("\n");
            run.push(Node::new(Role::System, "harness", vec![Part::text(said)]));
        }
        _ => aside.lose(format!("inference_log.{role}"), "the harness's own notes are not kept"),
    }
    Ok(())
}
