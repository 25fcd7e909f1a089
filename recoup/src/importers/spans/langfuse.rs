//! Langfuse exports: observations (the enriched ones, or the older ones with traces beside them) and
//! scores, as JSON, JSON lines, CSV or Parquet, in the names of the export or of the API; and a trace as the
//! page of one gives it.

mod observation;

use std::borrow::Cow;

use self::observation::{OF_THE_STORE, observation};
use super::attributes::Attributes;
use super::span::{Score, Trace, Value};
use super::{Piece, Pieces, Spans};
use crate::importers::object::Object;
use crate::importers::value::{elements, is_object};
use crate::importers::{Outline, Probe, RawRecord, RecordError};
use crate::json::Json;

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
    let names: Vec<Cow<'_, str>> = members.iter().map(|(name, _)| snake(name)).collect();
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
fn snake(name: &str) -> Cow<'_, str> {
    if !name.bytes().any(|letter| letter.is_ascii_uppercase()) {
        return Cow::Borrowed(name);
    }
    let mut out = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    Cow::Owned(out)
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
        let (row, text): (Object<'r>, _) = record.parse_text()?;
        let Some(page) = row.get("data").and_then(elements) else {
            note(row, text, pieces);
            return Ok(());
        };
        for raw in page {
            match Object::parse(raw, "data[]") {
                Ok(row) => note(row, raw.get(), pieces),
                // Anything else may be mended by rewriting the record.
                Err(error) if error.code == "wrong-type" => {
                    pieces.lost.push(("data[]".to_owned(), "no row"));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        row(piece, 0, trace)
    }
}

/// Notes a row.
fn note<'r>(mut row: Object<'r>, body: &'r str, pieces: &mut Pieces<'r>) {
    let trace = row.object("trace");
    let id =
        ["trace_id", "traceId", "id"].iter().find_map(|key| row.id(key)).or_else(|| trace.clone().id("id"));
    let Some(run) = id.filter(|id| !id.is_empty()) else {
        pieces.lost.push(("trace_id".to_owned(), "a row of no trace"));
        return;
    };
    pieces.pieces.push(Piece { run, body, context: None });
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
    let is_observation =
        !is_holder && ["start_time", "startTime"].iter().any(|key| fields.get(key).is_some());
    let mut columns = Attributes::default();
    for (name, raw) in fields.into_members() {
        let name = match name {
            Cow::Borrowed(name) => snake(name),
            Cow::Owned(name) => Cow::Owned(snake(&name).into_owned()),
        };
        if !is_observation || OF_THE_STORE.binary_search(&&*name).is_err() {
            columns.put(name, Cow::Borrowed(raw));
        }
    }
    if is_observation {
        observation(columns, trace)
    } else if columns.has("value") || columns.has("string_value") {
        score(columns, trace);
        Ok(())
    } else {
        head(columns, trace);
        Ok(())
    }
}

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
