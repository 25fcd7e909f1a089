//! Langfuse exports: observations (the enriched ones, or the older ones with traces beside them) and
//! scores, as JSON, JSON lines, CSV or Parquet, in the names of the export or of the API; and a trace as the
//! page of one gives it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::genai::{NO_MESSAGE, plain};
use super::span::{Kind, Score, Span, Trace, Value};
use super::time::Time;
use super::{Piece, Pieces, Spans};
use crate::importers::object::Object;
use crate::importers::openai_chat::tools;
use crate::importers::value::{elements, is_object, text, value};
use crate::importers::{Outline, Probe, RawRecord, RecordError};
use crate::json::Json;
use crate::trajectory::Usage;

/// Langfuse's exports.
pub(in crate::importers) struct Langfuse;

/// Rows that stand in each other and are read: a score in an observation in a trace, and one to spare.
const DEPTH_MAX: usize = 4;

/// Columns that tell a file of observations, of traces, of scores.
const ROWS: [&[&str]; 3] = [
    &["trace_id", "start_time", "type", "parent_observation_id"],
    &["id", "timestamp", "name", "session_id", "user_id", "project_id"],
    &["id", "trace_id", "name", "value", "data_type"],
];

fn is_row(record: &Outline) -> bool {
    let Outline::Object(members) = record else { return false };
    let names: Vec<String> = members.iter().map(|(name, _)| snake(name)).collect();
    ROWS.iter().any(|row| row.iter().all(|wanted| names.iter().any(|name| name == wanted)))
}

/// A trace that holds its observations.
fn is_trace(record: &Outline) -> bool {
    let held =
        |trace: &Outline| trace.get("observations").is_some_and(|list| list.elements().iter().any(is_row));
    held(record) || record.get("trace").is_some_and(held)
}

/// An answer of the API.
fn is_page(record: &Outline) -> bool {
    record.get("data").is_some_and(|list| list.elements().iter().any(is_row))
}

/// A name of the API (`traceId`) as the export spells it (`trace_id`).
fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

impl Spans for Langfuse {
    fn name(&self) -> &'static str {
        "langfuse"
    }

    fn phrase(&self) -> &'static str {
        "rows with `trace_id`, `start_time`, `type` and `parent_observation_id`, traces that hold such `observations`, or rows of scores"
    }

    fn detects(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| is_row(record) || is_trace(record) || is_page(record))
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        let whole: &RawValue = record.parse()?;
        find(whole, false, pieces)
    }

    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        row(piece, 0, trace)
    }
}

/// Notes a row, or the rows of a page; a page holds no other pages, and a bad row of it costs only itself.
fn find<'r>(whole: &'r RawValue, in_page: bool, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
    let mut row = Object::parse(whole, "row")?;
    if !in_page && let Some(page) = row.get("data").and_then(elements) {
        for row in page {
            match find(row, true, pieces) {
                // Anything else may be mended by rewriting the record.
                Err(error) if error.code == "wrong-type" => {
                    pieces.lost.push(("data[]".to_owned(), "no row"));
                }
                read => read?,
            }
        }
        return Ok(());
    }
    let trace = row.object("trace");
    let id =
        ["trace_id", "traceId", "id"].iter().find_map(|key| row.id(key)).or_else(|| trace.clone().id("id"));
    let Some(run) = id.filter(|id| !id.is_empty()) else {
        pieces.lost.push(("trace_id".to_owned(), "a row of no trace"));
        return Ok(());
    };
    pieces.pieces.push(Piece { run, body: whole, context: None });
    Ok(())
}

/// Reads a row, whatever it is of, `depth` rows below the record's own.
fn row<'a>(mut fields: Object<'a>, depth: usize, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    if depth > DEPTH_MAX {
        return Err(RecordError::new("too-deep", "rows within rows deeper than a trace nests them"));
    }
    let inner = fields.object("trace");
    if inner.has("id") {
        row(inner, depth + 1, trace)?;
        fields.take("id");
    }
    let observations = fields.list("observations").unwrap_or_default();
    let scores = fields.list("scores").unwrap_or_default();
    let is_holder = !observations.is_empty();
    for raw in observations.into_iter().chain(scores) {
        // The older API names a trace's scores only.
        if is_object(raw) {
            row(Object::parse(raw, "row")?, depth + 1, trace)?;
        }
    }
    let mut columns = Attributes::default();
    for (name, raw) in fields.members() {
        columns.insert(snake(&name), Cow::Borrowed(raw));
    }
    if columns.has("start_time") && !is_holder {
        observation(columns, trace)
    } else if columns.has("value") || columns.has("string_value") {
        score(columns, trace);
        Ok(())
    } else {
        head(columns, trace);
        Ok(())
    }
}

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

/// A trace's own row.
fn head(mut columns: Attributes<'_>, trace: &mut Trace<'_>) {
    // What the outermost observation says again.
    for key in ["id", "input", "output", "latency", "total_cost", "html_path", "created_at", "updated_at"] {
        columns.take(key);
    }
    for (key, value) in columns.rest() {
        trace.extra.entry(key).or_insert(value);
    }
}

fn observation<'a>(mut columns: Attributes<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    for (column, name) in OF_TRACE {
        if let Some(raw) = columns.take(column)
            && !matches!(raw.get(), "[]" | "\"[]\"")
        {
            trace.extra.entry(name.to_owned()).or_insert_with(|| Json::from(&*raw));
        }
    }
    // What other columns say already, or what says nothing of the run.
    for key in [
        "trace_id",
        "tool_calls",
        "tool_call_names",
        "latency",
        "created_at",
        "updated_at",
        "model_id",
        "internal_model_id",
        "input_price",
        "output_price",
        "total_price",
        "bookmarked",
        "public",
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "usage",
        "unit",
        "time_to_first_token",
        "event_ts",
        "is_deleted",
        "calculated_input_cost",
        "calculated_output_cost",
    ] {
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
        definitions(&mut columns, input.as_deref(), &mut span);
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

/// Tools that were offered: those of the input, else those that Langfuse found in it.
fn definitions(columns: &mut Attributes<'_>, input: Option<&RawValue>, span: &mut Span<'_>) {
    let found = columns.text("tool_definitions");
    let source = input.map(plain);
    let request = source.as_deref().and_then(|text| serde_json::from_str::<Object<'_>>(text).ok());
    let given =
        request.and_then(|request| tools(request.get("tools")?, "", &mut std::collections::BTreeSet::new()));
    if let Some(given) = given {
        span.tools = given;
        return;
    }
    let found = found.as_deref().and_then(|text| serde_json::from_str::<Object<'_>>(text).ok());
    for (name, raw) in found.map(Object::members).unwrap_or_default() {
        let definition = plain(raw);
        let mut fields = serde_json::from_str::<Object<'_>>(&definition).unwrap_or_default();
        let parameters = fields.take("parameters").map(|raw| Json::from_foreign(&plain(raw)));
        let description = fields.text("description").unwrap_or_default();
        span.tools.push(crate::trajectory::Tool { name, description, parameters, read_only: None });
    }
}

fn score(mut columns: Attributes<'_>, trace: &mut Trace<'_>) {
    let native = Json::from_foreign(&columns.to_object());
    let Some(name) = columns.text("name") else { return };
    let kind = columns.text("data_type");
    let value = match (kind.as_deref(), columns.number("value")) {
        (Some("BOOLEAN"), Some(number)) => Value::Flag(number > 0.0),
        (Some("CATEGORICAL"), _) | (_, None) => Value::Other,
        (_, Some(number)) => Value::Number(number),
    };
    let span = columns.text("observation_id");
    let reason = columns.text("comment");
    trace.scores.push(Score { name, span, value, reason, native });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Langfuse;
    use crate::importers::{Event, Importer as _, Source};

    fn read(text: String) -> (usize, Vec<String>) {
        let source = Source::from_bytes("page.json", text.into_bytes(), Arc::default());
        let mut events: Vec<Event> = Vec::new();
        Langfuse.import(&source, &mut events).unwrap();
        let runs = events.iter().filter(|event| matches!(event, Event::Trajectory(_))).count();
        let codes = events.into_iter().filter_map(|event| match event {
            Event::Quarantine(entry) => Some(entry.code),
            _ => None,
        });
        (runs, codes.collect())
    }

    #[test]
    fn rows_within_rows_end() {
        let nested = |key: &str, count: usize, close: &str| {
            format!("{}{{}}{}", format!(r#"{{"id":"t","{key}":"#).repeat(count), close.repeat(count))
        };
        assert_eq!(read(nested("trace", 100, "}")).1, ["too-deep"]);
        let pages = format!("{}{}", r#"{"data":["#.repeat(60), "]}".repeat(60));
        assert_eq!(read(pages), (0, Vec::new()));
    }

    #[test]
    fn a_page_keeps_its_other_rows() {
        let row = r#"{"id":"a","traceId":"t","type":"GENERATION","name":"n","startTime":"2026-03-01T10:00:00Z","parentObservationId":null,"input":"hi","output":"ho"}"#;
        assert_eq!(read(format!(r#"{{"data":[7,{row}]}}"#)), (1, Vec::new()));
    }
}
