//! An observation of Langfuse: a row of the export, as a span.

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::importers::spans::attributes::Attributes;
use crate::importers::spans::genai::{NO_MESSAGE, plain};
use crate::importers::spans::span::{Kind, Span, Trace};
use crate::importers::spans::time::Time;
use crate::importers::value::{text, value};
use crate::json::Json;
use crate::trajectory::{Tool, Usage};

/// What rows say of the trace they belong to, under the names of the run's own.
const OF_TRACE: [(&str, &str); 9] = [
    ("trace_name", "name"),
    ("user_id", "user_id"),
    ("session_id", "session_id"),
    ("tags", "tags"),
    ("trace_tags", "tags"),
    ("environment", "environment"),
    ("release", "release"),
    ("version", "version"),
    ("project_id", "project_id"),
];

/// Columns that Langfuse keeps for itself, or that say in part what others say in whole; sorted.
pub(super) const OF_THE_STORE: [&str; 18] = [
    "bookmarked",
    "calculated_input_cost",
    "calculated_output_cost",
    "completion_tokens",
    "created_at",
    "event_ts",
    "input_price",
    "internal_model_id",
    "is_deleted",
    "model_id",
    "output_price",
    "prompt_tokens",
    "public",
    "time_to_first_token",
    "total_price",
    "total_tokens",
    "unit",
    "updated_at",
];
/// Columns of an observation that others say again.
const REPEATED: [&str; 5] = ["trace_id", "tool_calls", "tool_call_names", "latency", "usage"];

/// Reads an observation's row.
///
/// # Errors
/// When it has no id.
pub(super) fn observation<'a>(mut columns: Attributes<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    for (column, name) in OF_TRACE {
        if let Some(raw) = columns.take(column)
            && !matches!(raw.get(), "[]" | "\"[]\"")
        {
            trace.extra.entry(name.to_owned()).or_insert_with(|| Json::from(&*raw));
        }
    }
    for key in REPEATED {
        columns.take(key);
    }
    let mut span = Span {
        id: columns.text("id").ok_or_else(|| crate::importers::object::missing("id"))?,
        parent: columns.text("parent_observation_id"),
        name: columns.text("name").unwrap_or_default(),
        start: columns.text("start_time").as_deref().and_then(Time::parse),
        end: columns.text("end_time").as_deref().and_then(Time::parse),
        ..Span::default()
    };
    let kind = columns.text("type").unwrap_or_default();
    span.kind = match kind.as_str() {
        "GENERATION" => Kind::Model,
        "AGENT" => Kind::Agent,
        "TOOL" => Kind::Tool,
        other => Kind::Other(other.to_lowercase()),
    };
    if span.kind == Kind::Agent {
        span.agent = Some(span.name.clone()).filter(|name| !name.is_empty());
    }
    let level = columns.text("level");
    let message = columns.text("status_message");
    span.error =
        (level.as_deref() == Some("ERROR")).then(|| message.clone().unwrap_or_else(|| NO_MESSAGE.to_owned()));
    if let (None, Some(message)) = (&span.error, message) {
        span.rest.insert("status_message".to_owned(), Json::string(&message));
    }
    if let Some(level) = level.filter(|level| !matches!(level.as_str(), "ERROR" | "DEFAULT")) {
        span.rest.insert("level".to_owned(), Json::string(&level));
    }
    call(&mut columns, &mut span);
    let (input, output) = (columns.take("input"), columns.take("output"));
    if span.kind == Kind::Tool {
        span.tool.name = Some(span.name.clone());
        span.tool.arguments = input.as_deref().map(plain);
        span.tool.result = output.as_deref().map(plain);
    } else {
        span.tools = definitions(&mut columns);
        if input.as_deref().is_some_and(|raw| raw.get().contains("@@@langfuseMedia:")) {
            trace.lose("media", "bytes that Langfuse holds, not the export");
        }
        (span.input, span.output) = (input, output);
    }
    span.rest.extend(columns.rest());
    trace.spans.push(span);
    Ok(())
}

/// Takes model, parameters, usage and cost.
fn call(columns: &mut Attributes<'_>, span: &mut Span<'_>) {
    span.call.model = columns.text("provided_model_name").or_else(|| columns.text("model"));
    let parameters = columns.text("model_parameters").filter(|text| text != "{}");
    span.call.parameters = parameters.map(|text| Json::from_foreign(&text));
    let details = columns.text("usage_details").unwrap_or_default();
    span.call.usage = serde_json::from_str::<Object<'_>>(&details).ok().and_then(usage);
    let costs = columns.text("cost_details").unwrap_or_default();
    let cost = columns.number("total_cost").or_else(|| columns.number("calculated_total_cost"));
    let of_details = || serde_json::from_str::<Object<'_>>(&costs).ok()?.read::<f64>("total");
    span.call.cost = cost.or_else(of_details).filter(|cost| *cost > 0.0 || span.call.model.is_some());
}

/// Langfuse counts each kind of token apart: what is cached is not in `input`, what is reasoning not in
/// `output`.
fn usage(details: Object<'_>) -> Option<Usage> {
    let mut usage = Usage::default();
    let mut said = false;
    for (name, raw) in details.members() {
        let count: Option<u64> = value(raw).or_else(|| text(raw)?.parse().ok());
        let Some(count) = count else { continue };
        if name == "total" {
            continue;
        }
        said = true;
        if name.contains("output") || name.contains("completion") {
            usage.output = usage.output.saturating_add(count);
            if name.contains("reasoning") {
                usage.reasoning = usage.reasoning.saturating_add(count);
            }
        } else {
            usage.input = usage.input.saturating_add(count);
            if name.contains("cache_read") || name.contains("cached") {
                usage.cached = usage.cached.saturating_add(count);
            }
        }
    }
    said.then_some(usage)
}

/// Tools that Langfuse found in the input, for inputs that it is not found in again.
fn definitions(columns: &mut Attributes<'_>) -> Vec<Tool> {
    let found = columns.text("tool_definitions");
    let found = found.as_deref().and_then(|text| serde_json::from_str::<Object<'_>>(text).ok());
    let tool = |(name, raw): (String, &RawValue)| {
        let definition = plain(raw);
        let mut fields = serde_json::from_str::<Object<'_>>(&definition).unwrap_or_default();
        let parameters = fields.take("parameters").map(|raw| Json::from_foreign(&plain(raw)));
        let description = fields.text("description").unwrap_or_default();
        Tool { name, description, parameters, read_only: None }
    };
    found.map(Object::members).unwrap_or_default().into_iter().map(tool).collect()
}
