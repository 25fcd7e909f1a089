//! ShareGPT conversations: `{"conversations": [{"from", "value"}], "system", "tools"}`, the form that
//! LLaMA-Factory and many data sets use.
//!
//! It has no call ids and no roles beyond `from`; a `function_call` turn holds one call, or a list of
//! parallel ones, as JSON in its text.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::function_call::function;
use super::object::{Object, missing, unknown_role};
use super::openai_chat::{emit_losses, take_tools};
use super::slice::{self, RawRecord, Stop};
use super::value::{elements, json_object};
use super::{ImportError, Importer, Outline, Probe, RecordError, Scoring, Sink, Source, row};
use crate::task::Task;
use crate::trajectory::{Node, Part, Role, ToolResult, Trajectory};

const FORMAT: &str = "sharegpt";

/// ShareGPT conversations.
pub(super) struct ShareGpt;

impl Importer for ShareGpt {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "rows with `conversations` whose items have `from` and `value`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            let first = record.get("conversations").and_then(Outline::first);
            first.is_some_and(|turn| {
                turn.get("value").is_some()
                    && turn.get("from").and_then(Outline::as_str).and_then(role).is_some()
            })
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

/// The role behind a `from`.
fn role(from: &str) -> Option<Role> {
    Some(match from {
        "system" => Role::System,
        "human" | "user" => Role::User,
        "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" | "function_call" => Role::Assistant,
        "observation" | "tool" | "function_response" => Role::Tool,
        _ => return None,
    })
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut losses = BTreeSet::new();
    if let Some(system) = row.text("system").filter(|system| !system.is_empty()) {
        run.push(Node::new(Role::System, "system", vec![Part::text(system)]));
    }
    let turns: Vec<&RawValue> = row.required("conversations")?;
    for (index, raw) in turns.into_iter().enumerate() {
        let node = turn(raw)
            .map_err(|error| RecordError::new(error.code, format!("conversations[{index}]: {error}")))?;
        run.push(node);
    }
    take_tools(&mut row, "tools", &mut run, &mut losses);
    let native = row::settle(&mut run, row, scoring);
    emit_losses(losses, sink)?;
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

fn turn(raw: &RawValue) -> Result<Node, RecordError> {
    let mut turn = Object::parse(raw, "turn")?;
    let from = turn.text("from").ok_or_else(|| missing("from"))?;
    let role = role(&from).ok_or_else(|| unknown_role("from", &from))?;
    let value = turn.text("value");
    let parts = match (role, value) {
        (Role::Tool, value) => {
            let parts = value.map(Part::text).into_iter().collect();
            vec![Part::ToolResult(ToolResult { call_id: None, parts, is_error: None, exit_code: None })]
        }
        (_, None) => Vec::new(),
        (_, Some(value)) if from == "function_call" => calls(&value)
            // Models write calls that are no JSON; such a turn is evidence, not an error.
            .unwrap_or_else(|| vec![Part::Opaque { kind: "function_call".to_owned(), raw: value }]),
        (_, Some(value)) => vec![Part::text(value)],
    };
    let mut node = Node::new(role, role.as_str(), parts);
    node.occurrence.sampled = role == Role::Assistant;
    let rest = turn.rest();
    node.occurrence.extra = json_object(rest);
    Ok(node)
}

/// The calls that a `function_call` turn holds, or `None` where its text is not that.
fn calls(value: &str) -> Option<Vec<Part>> {
    let raw: &RawValue = serde_json::from_str(value).ok()?;
    let list = elements(raw).unwrap_or_else(|| vec![raw]);
    let call = |raw| {
        let mut call = Object::of(raw)?;
        let id = call.text("id");
        let part = function(&mut call, id)?;
        // A member that a call has no place for would be lost: keep the whole as it stands.
        call.keys().next().is_none().then_some(Part::ToolCall(part))
    };
    list.into_iter().map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::calls;
    use crate::trajectory::{ArgumentsForm, Part};

    #[test]
    fn arguments_keep_their_bytes_and_broken_calls_stay_text() {
        let parts = calls(r#"{"name": "f", "arguments": {"a":  1.0}}"#).unwrap();
        let Part::ToolCall(call) = &parts[0] else { panic!("{parts:?}") };
        assert_eq!(
            (call.arguments_raw.as_str(), call.arguments_form),
            (r#"{"a":  1.0}"#, ArgumentsForm::Object)
        );
        assert_eq!(
            calls(r#"[{"name":"f","arguments":"{}"},{"name":"g"}]"#).map(|parts| parts.len()),
            Some(2)
        );
        assert_eq!(calls("f(a=1)"), None);
    }
}
