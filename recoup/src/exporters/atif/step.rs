//! Steps: each message but the tools' is one.

use serde_json::{Map, Value, json};

use super::{Lost, merged_extra, observation};
use crate::canonical::canonicalize;
use crate::importers::atif::metrics;
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Call, Node, Part, Role, ToolCall, Trajectory};

/// The steps of a run, and the least minor version that has what they use.
pub(super) struct Written {
    pub(super) steps: Vec<Value>,
    pub(super) minor_version: u32,
}

/// Writes the steps of the main branch.
pub(super) fn steps(trajectory: &Trajectory, lost: &mut Lost) -> Written {
    let mut writer = Writer { trajectory, lost, steps: Vec::new(), minor_version: 4 };
    for (_, node) in trajectory.main_branch().nodes() {
        if node.occurrence.state_hash.is_some() || node.occurrence.checkpoint.is_some() {
            writer.lost.note("checkpoint", "no field of the format");
        }
        if node.role == Role::Tool {
            observation::append(&mut writer, node);
        } else {
            writer.step(node);
        }
    }
    let minor_version = writer.minor_version;
    Written { steps: writer.steps.into_iter().map(Value::Object).collect(), minor_version }
}

/// Steps in the making.
pub(super) struct Writer<'a> {
    pub(super) trajectory: &'a Trajectory,
    pub(super) lost: &'a mut Lost,
    pub(super) steps: Vec<Map<String, Value>>,
    pub(super) minor_version: u32,
}

impl Writer<'_> {
    /// Members of a message's `extra`.
    pub(super) fn notes(&mut self, extra: Option<&Json>) -> Map<String, Value> {
        match extra.map(|extra| self.lost.tree("message.extra", extra)) {
            Some(Value::Object(members)) => members,
            Some(other) => Map::from_iter([("value".to_owned(), other)]),
            None => Map::new(),
        }
    }

    pub(super) fn needs(&mut self, minor_version: u32) {
        self.minor_version = self.minor_version.max(minor_version);
    }

    /// A step that only carries an observation which follows no message.
    pub(super) fn stand_in(&mut self) {
        let step = json!({
            "step_id": self.steps.len() + 1, "source": "system", "message": "",
            "extra": {"recoup": {"stand_in": true}},
        });
        if let Value::Object(step) = step {
            self.steps.push(step);
        }
    }

    fn step(&mut self, node: &Node) {
        let by_agent = node.role == Role::Assistant;
        let occurrence = &node.occurrence;
        let mut notes = self.notes(occurrence.extra.as_ref());
        let (mut step, mut own) = (Map::new(), Map::new());
        let number = take(&mut notes, "step_id", Value::is_u64);
        step.insert("step_id".to_owned(), number.unwrap_or_else(|| (self.steps.len() + 1).into()));
        if let Some(at) = &occurrence.at {
            let target = if is_iso_8601(at) { ("timestamp", &mut step) } else { ("at", &mut own) };
            target.1.insert(target.0.to_owned(), at.as_str().into());
        }
        let source = match node.role {
            Role::Assistant => "agent",
            Role::User => "user",
            Role::System | Role::Tool => "system",
        };
        step.insert("source".to_owned(), source.into());
        let author = match node.role {
            Role::Assistant => self.trajectory.agents.first().map_or("", |agent| &agent.name),
            role => role.as_str(),
        };
        if node.agent != author {
            own.insert("agent".to_owned(), node.agent.as_str().into());
        }
        let form = take(&mut notes, "message_form", Value::is_array);
        self.parts(node, form.as_ref(), &mut notes, &mut step, &mut own);
        match &occurrence.call {
            Some(call) if by_agent => self.call(call, &mut notes, &mut step, &mut own),
            Some(_) => self.lost.note("metrics", "only an agent's step has a model call"),
            None => extend_metrics(Map::new(), &mut notes, &mut step),
        }
        step.extend(
            take(&mut notes, "llm_call_count", Value::is_u64).map(|n| ("llm_call_count".to_owned(), n)),
        );
        let copied = take(&mut notes, "is_copied_context", |flag| *flag == Value::Bool(false));
        let copied = if occurrence.copied_context { Some(true.into()) } else { copied };
        step.extend(copied.map(|flag| ("is_copied_context".to_owned(), flag)));
        let deterministic = step.get("llm_call_count") == Some(&json!(0));
        if occurrence.sampled != (by_agent && !occurrence.copied_context && !deterministic) {
            own.insert("sampled".to_owned(), occurrence.sampled.into());
        }
        let stated = take(&mut notes, "extra", Value::is_object);
        if !notes.is_empty() {
            own.insert("extra".to_owned(), Value::Object(notes));
        }
        step.extend(merged_extra(stated, own).map(|extra| ("extra".to_owned(), extra)));
        self.steps.push(step);
    }

    /// Message, reasoning and calls: the format knows them in this order only.
    fn parts(
        &mut self,
        node: &Node,
        form: Option<&Value>,
        notes: &mut Map<String, Value>,
        step: &mut Map<String, Value>,
        own: &mut Map<String, Value>,
    ) {
        let rank = |part: &Part| match part {
            Part::Reasoning { .. } => 0,
            Part::Text(_) | Part::Media(_) => 1,
            Part::Opaque { .. } => 2,
            Part::ToolCall(_) | Part::ToolResult(_) => 3,
        };
        if !node.parts.is_sorted_by_key(rank) {
            self.lost.note("message", "the order of text, reasoning and calls");
        }
        let (mut said, mut calls, mut reasonings, mut opaque) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for part in &node.parts {
            match part {
                Part::Text(_) | Part::Media(_) => said.push(part),
                Part::ToolCall(call) => calls.push(call),
                Part::Reasoning { text, signature } => {
                    reasonings.push(text.as_str());
                    own.extend(signature.clone().map(|seal| ("signature".to_owned(), seal.into())));
                }
                Part::Opaque { kind, raw } => opaque.push(json!([kind, raw])),
                Part::ToolResult(_) => self.lost.note("observation", "a result inside a speaker's message"),
            }
        }
        if matches!(said.as_slice(), [Part::Text(text)] if text.text.is_empty()) {
            // Readers take an empty message for none.
            own.insert("empty_text".to_owned(), true.into());
        }
        let message = self.content(&said, form).unwrap_or_else(|| "".into());
        step.insert("message".to_owned(), message);
        if !opaque.is_empty() {
            own.insert("opaque".to_owned(), opaque.into());
        }
        if node.role != Role::Assistant {
            if !reasonings.is_empty() || !calls.is_empty() {
                self.lost.note("tool_calls", "only an agent's step has reasoning and calls");
            }
            return;
        }
        if reasonings.len() > 1 {
            self.lost.note("reasoning_content", "several reasonings became one");
        }
        if !reasonings.is_empty() {
            step.insert("reasoning_content".to_owned(), reasonings.join("\n\n").into());
        }
        let told = take(notes, "tool_calls", Value::is_array);
        if !calls.is_empty() || told.is_some() {
            let number = self.steps.len() + 1;
            let calls = calls.iter().enumerate();
            let calls: Vec<Value> = calls
                .map(|(index, call)| {
                    let told = told.as_ref().and_then(|told| told.get(index));
                    self.tool_call(call, &format!("call_{number}_{}", index + 1), told)
                })
                .collect();
            step.insert("tool_calls".to_owned(), calls.into());
        }
    }

    fn tool_call(&mut self, call: &ToolCall, id: &str, told: Option<&Value>) -> Value {
        let mut own = Map::new();
        if call.call_id.is_none() {
            own.insert("no_id".to_owned(), true.into());
        }
        let arguments = call.arguments().filter(Value::is_object);
        let compact = arguments.as_ref().map(Value::to_string);
        let exact = compact.is_some_and(|compact| match call.arguments_form {
            ArgumentsForm::String => compact == call.arguments_raw,
            // Big integers and repeated keys do not survive a tree.
            ArgumentsForm::Object => canonicalize(&call.arguments_raw) == canonicalize(&compact),
        });
        if !exact {
            own.insert("arguments_raw".to_owned(), call.arguments_raw.as_str().into());
        }
        if !exact || call.arguments_form == ArgumentsForm::String {
            own.insert("arguments_form".to_owned(), json!(call.arguments_form));
        }
        let mut written = match told {
            Some(Value::Object(members)) => members.clone(),
            _ => Map::new(),
        };
        let stated = written.shift_remove("extra");
        written.insert("tool_call_id".to_owned(), call.call_id.as_deref().unwrap_or(id).into());
        written.insert("function_name".to_owned(), call.name.as_str().into());
        written.insert("arguments".to_owned(), arguments.unwrap_or_else(|| json!({})));
        if let Some(extra) = merged_extra(stated, own) {
            self.needs(7);
            written.insert("extra".to_owned(), extra);
        }
        Value::Object(written)
    }

    fn call(
        &mut self,
        call: &Call,
        notes: &mut Map<String, Value>,
        step: &mut Map<String, Value>,
        own: &mut Map<String, Value>,
    ) {
        step.extend(call.model.clone().map(|model| ("model_name".to_owned(), model.into())));
        let mut more = Map::new();
        let mut parameters =
            call.parameters.as_ref().map(|parameters| self.lost.tree("call.parameters", parameters));
        if let Some(Value::Object(members)) = &mut parameters {
            let effort =
                members.get("reasoning_effort").filter(|value| value.is_string() || value.is_number());
            if let Some(effort) = effort.cloned() {
                members.shift_remove("reasoning_effort");
                step.insert("reasoning_effort".to_owned(), effort);
            }
            if members.is_empty() {
                parameters = None;
            }
        }
        more.extend(parameters.map(|parameters| ("parameters".to_owned(), parameters)));
        for (key, text) in [
            ("finish_reason", &call.finish_reason),
            ("error", &call.error),
            ("template_hash", &call.template_hash),
        ] {
            more.extend(text.clone().map(|text| (key.to_owned(), text.into())));
        }
        if !more.is_empty() {
            own.insert("call".to_owned(), Value::Object(more));
        }
        extend_metrics(metrics(call), notes, step);
    }
}

/// Takes a member of the type that the format wants.
pub(super) fn take(notes: &mut Map<String, Value>, key: &str, wanted: fn(&Value) -> bool) -> Option<Value> {
    notes.get(key).filter(|value| wanted(value))?;
    notes.shift_remove(key)
}

/// The call's figures with what the source said differently; null leaves one out.
fn extend_metrics(
    mut figures: Map<String, Value>,
    notes: &mut Map<String, Value>,
    step: &mut Map<String, Value>,
) {
    let told = take(notes, "metrics", Value::is_object);
    if figures.is_empty() && told.is_none() {
        return;
    }
    if let Some(Value::Object(told)) = told {
        for (key, value) in told {
            if value.is_null() {
                figures.shift_remove(&key);
            } else {
                figures.insert(key, value);
            }
        }
    }
    step.insert("metrics".to_owned(), Value::Object(figures));
}

/// Whether a time looks like ISO 8601, which strict readers demand.
fn is_iso_8601(at: &str) -> bool {
    let bytes = at.as_bytes();
    at.len() >= 10
        && bytes[..10].iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}
