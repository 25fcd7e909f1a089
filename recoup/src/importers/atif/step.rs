//! A step: the message of its source, and the observation after it.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::metrics;
use super::own::split;
use crate::importers::RecordError;
use crate::importers::data_url;
use crate::importers::object::{Object, missing, unknown_role, wrong_type};
use crate::importers::value::{elements, is_object, json_object, text};
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Call, Node, Part, Role, ToolCall, ToolResult, Trajectory};

/// Appends the messages of a step; `index` is its position, 0-based.
pub(super) fn push(raw: &RawValue, index: usize, run: &mut Trajectory) -> Result<(), RecordError> {
    let mut step = Object::parse(raw, "step")?;
    let source = step.text("source").ok_or_else(|| missing("source"))?;
    let role = match &*source {
        "system" => Role::System,
        "user" => Role::User,
        "agent" => Role::Assistant,
        _ => return Err(unknown_role("source", &source)),
    };
    let (extra, mut own) = split(step.take("extra"));
    let mut notes: BTreeMap<String, Json> = BTreeMap::new();
    notes.extend(extra.map(|extra| ("extra".to_owned(), extra)));
    // Steps count from 1; only a number that says something else is worth keeping.
    step.take_if("step_id", |id| id.get() == (index + 1).to_string());
    let mut parts = Vec::new();
    if let Some(reasoning) = step.text("reasoning_content") {
        parts.push(Part::Reasoning { text: reasoning, signature: own.read("signature") });
    }
    // Agents that only call a tool have an empty message, and no text.
    let silent = !own.read("empty_text").unwrap_or(false);
    if let Some(raw) = step.take("message").filter(|raw| !silent || raw.get() != "\"\"") {
        let form = content(raw, &mut parts, run)?;
        notes.extend(form.map(|form| ("message_form".to_owned(), form)));
    }
    for (kind, raw) in own.read::<Vec<(String, String)>>("opaque").unwrap_or_default() {
        parts.push(Part::Opaque { kind, raw });
    }
    if let Some(list) = step.list("tool_calls") {
        let form = calls(&list, &mut parts)?;
        notes.extend(form.map(|form| ("tool_calls".to_owned(), form)));
    }
    let observation = step.take_if("observation", is_object);
    let author = match role {
        Role::Assistant => run.agents.first().map_or_else(String::new, |agent| agent.name.clone()),
        role => role.as_str().to_owned(),
    };
    let mut node = Node::new(role, own.read::<String>("agent").unwrap_or(author), parts);
    let occurrence = &mut node.occurrence;
    occurrence.at = own.read("at").or_else(|| step.text("timestamp"));
    let copied = step.take_if("is_copied_context", |raw| raw.get() == "true").is_some();
    occurrence.copied_context = copied;
    let deterministic = step.get("llm_call_count").is_some_and(|count| count.get() == "0");
    let sampled = role == Role::Assistant && !copied && !deterministic;
    occurrence.sampled = own.read("sampled").unwrap_or(sampled);
    let (call, metrics) = call(&mut step, &mut own)?;
    occurrence.call = call.map(Box::new);
    notes.extend(metrics.map(|metrics| ("metrics".to_owned(), metrics)));
    notes.extend(step.rest());
    let stand_in = own.read("stand_in").unwrap_or(false);
    notes.extend(own.object("extra").rest());
    notes.extend(own.rest());
    occurrence.extra = json_object(notes);
    if !stand_in {
        run.push(node);
    }
    match observation {
        Some(raw) => observe(raw, copied, run),
        None => Ok(()),
    }
}

/// Reads a string or a list of parts. What the parts as such do not tell is returned: that a list
/// was used where a string would do, and what a part's source says beyond type and path.
fn content(raw: &RawValue, parts: &mut Vec<Part>, run: &mut Trajectory) -> Result<Option<Json>, RecordError> {
    if let Some(text) = text(raw) {
        parts.push(Part::text(text));
        return Ok(None);
    }
    let list = elements(raw).ok_or_else(|| wrong_type("message", "a string or a list of parts"))?;
    let (mut only_text, mut told) = (true, false);
    let mut form = Vec::with_capacity(list.len());
    for raw in &list {
        let mut part = Object::parse(raw, "message[]")?;
        let kind = part.text("type").ok_or_else(|| missing("message[].type"))?;
        let mut rest = Json::from_foreign("null");
        match &*kind {
            "text" => {
                parts.push(Part::text(part.text("text").ok_or_else(|| missing("message[].text"))?));
            }
            "image" | "audio" => {
                let mut source: Object<'_> = part.required("source")?;
                let mime = source.text("media_type").ok_or_else(|| missing("source.media_type"))?;
                let path = source.text("path").ok_or_else(|| missing("source.path"))?;
                parts.push(data_url::media(&path, &mime, &mut run.media));
                only_text = false;
                if let Some(source) = json_object(source.rest()) {
                    (rest, told) = (source, true);
                }
            }
            _ => return Err(wrong_type("message[].type", "text, image or audio")),
        }
        form.push(rest);
    }
    let unusual = told || only_text && list.len() < 2;
    Ok(unusual.then(|| Json::from_serialize(&form).ok()).flatten())
}

/// Appends the calls; returns what their fields do not hold.
fn calls(list: &[&RawValue], parts: &mut Vec<Part>) -> Result<Option<Json>, RecordError> {
    let mut notes = Vec::new();
    for raw in list {
        let mut call = Object::parse(raw, "tool_calls[]")?;
        let (extra, mut own) = split(call.take("extra"));
        let name = call.text("function_name").ok_or_else(|| missing("function_name"))?;
        let arguments = call.take("arguments").map_or("{}", RawValue::get).to_owned();
        let generated = own.read("no_id").unwrap_or(false);
        let call_id = call.text("tool_call_id").filter(|_| !generated);
        let arguments_form = own.read("arguments_form").unwrap_or(ArgumentsForm::Object);
        let arguments_raw = match (own.read::<String>("arguments_raw"), arguments_form) {
            (Some(raw), _) => raw,
            (None, ArgumentsForm::Object) => arguments,
            // The string held the compact form, however the document was laid out since.
            (None, ArgumentsForm::String) => {
                serde_json::from_str::<serde_json::Value>(&arguments)?.to_string()
            }
        };
        parts.push(Part::ToolCall(ToolCall { call_id, name, arguments_raw, arguments_form }));
        let mut rest = call.rest();
        rest.extend(extra.map(|extra| ("extra".to_owned(), extra)));
        notes.push(json_object(rest));
    }
    let told = list.is_empty() || notes.iter().any(Option::is_some);
    Ok(told.then(|| Json::from_serialize(&notes).ok()).flatten())
}

/// The model call behind a step, and the metrics that it cannot hold.
fn call(step: &mut Object<'_>, own: &mut Object<'_>) -> Result<(Option<Call>, Option<Json>), RecordError> {
    let mut call = Call::default();
    let rest = match step.take_if("metrics", is_object) {
        Some(raw) => metrics::take(raw, &mut call)?,
        None => None,
    };
    call.model = step.text("model_name");
    let mut parameters = BTreeMap::new();
    let mut more = own.object("call");
    call.finish_reason = more.read("finish_reason");
    call.error = more.read("error");
    call.template_hash = more.read("template_hash");
    parameters.extend(more.object("parameters").rest());
    if let Some(effort) = step.take("reasoning_effort") {
        parameters.insert("reasoning_effort".to_owned(), effort.into());
    }
    call.parameters = json_object(parameters);
    Ok(((call != Call::default()).then_some(call), rest))
}

/// Appends the observation's results as a message of the tools; several where they were several.
fn observe(raw: &RawValue, copied: bool, run: &mut Trajectory) -> Result<(), RecordError> {
    let mut observation = Object::parse(raw, "observation")?;
    let results = observation.required::<Vec<&RawValue>>("results")?;
    let mut node = Node::new(Role::Tool, Role::Tool.as_str(), Vec::new());
    let mut notes: Vec<Option<Json>> = Vec::new();
    let mut begun = false;
    for raw in results {
        let mut result = Object::parse(raw, "results[]")?;
        let (extra, mut own) = split(result.take("extra"));
        if own.get("message").is_some_and(is_object) {
            if begun {
                let full = std::mem::replace(&mut node, Node::new(Role::Tool, "", Vec::new()));
                push_observation(full, copied, &std::mem::take(&mut notes), run);
            }
            let mut message = own.object("message");
            node.agent = message.read("agent").unwrap_or_else(|| Role::Tool.as_str().to_owned());
            node.occurrence.at = message.read("at");
            node.occurrence.extra = json_object(message.object("extra").rest());
        }
        begun = true;
        let source_id = result.text("source_call_id");
        let mut parts = Vec::new();
        let form = result.take("content").map(|raw| content(raw, &mut parts, run)).transpose()?.flatten();
        if own.read("plain").unwrap_or(false) {
            node.parts.append(&mut parts);
        } else {
            node.parts.push(Part::ToolResult(ToolResult {
                call_id: own.read("call_id").or(source_id),
                parts,
                is_error: own.read("is_error"),
                exit_code: own.read("exit_code"),
            }));
        }
        let mut rest = result.rest();
        rest.extend(extra.map(|extra| ("extra".to_owned(), extra)));
        rest.extend(form.map(|form| ("content_form".to_owned(), form)));
        notes.push(json_object(rest));
    }
    push_observation(node, copied, &notes, run);
    Ok(())
}

fn push_observation(mut node: Node, copied: bool, notes: &[Option<Json>], run: &mut Trajectory) {
    node.occurrence.copied_context = copied;
    if notes.iter().any(Option::is_some)
        && let Ok(notes) = Json::from_serialize(notes)
    {
        let mut members: BTreeMap<String, Json> = BTreeMap::from([("results".to_owned(), notes)]);
        let known = node.occurrence.extra.take();
        members.extend(
            known
                .and_then(|extra| serde_json::from_str::<BTreeMap<String, Json>>(extra.as_str()).ok())
                .unwrap_or_default(),
        );
        node.occurrence.extra = json_object(members);
    }
    run.push(node);
}
