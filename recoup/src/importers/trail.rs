//! TRAIL label files: the errors that people found in a trace, each at a span. A file holds the errors
//! of one trace and is named by the trace's id; a row of the data set holds trace and labels together.
//!
//! Runs are named, not held: the traces are spans and come with their own files.

use super::object::{Object, missing};
use super::slice::{self, RawRecord, RecordError, Stop};
use super::value::{json_object, text};
use super::{Event, ImportError, Importer, LooseLabel, Outline, Probe, Sink, Source};
use crate::json::Json;
use crate::verdict::ReferenceLabel;
use crate::warning::Loss;

const FORMAT: &str = "trail";

/// Label files of TRAIL.
pub(super) struct Trail;

impl Importer for Trail {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "labels with `errors` at spans, each with `category`, `location` and `evidence`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| is_labels(record) || is_row(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let stem = source.stem();
        slice::each(source, Probe::read(source)?.layout(), sink, |record, sink| read(record, stem, sink))
    }
}

fn is_labels(record: &Outline) -> bool {
    let first = record.get("errors").and_then(Outline::first);
    let scores = record.get("scores").and_then(Outline::first);
    first.is_some_and(|error| error.has_all(&["category", "location", "evidence"]))
        || record.get("errors").is_some_and(Outline::is_array)
            && scores.is_some_and(|scores| scores.has_all(&["reliability_score", "security_score"]))
}

/// A row with both: the trace as spans, the labels beside it, perhaps as text.
fn is_row(record: &Outline) -> bool {
    let labels = record.get("labels");
    let named = labels.and_then(Outline::as_str).is_some_and(|text| {
        ["\"errors\"", "\"category\"", "\"location\""].iter().all(|key| text.contains(key))
    });
    record.get("trace").is_some() && (named || labels.is_some_and(is_labels))
}

fn read(record: &RawRecord, stem: &str, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut file: Object<'_> = record.parse()?;
    let Some(raw) = file.take("labels") else { return labels(file, stem.to_owned(), sink) };
    let held = text(raw);
    let inner: Object<'_> = serde_json::from_str(held.as_deref().unwrap_or(raw.get()))
        .map_err(|error| RecordError::new("wrong-type", format!("`labels`: {error}")))?;
    let trace = file.take("trace").ok_or_else(|| missing("trace"))?;
    let held = text(trace);
    let trace: Object<'_> = serde_json::from_str(held.as_deref().unwrap_or(trace.get()))
        .map_err(|error| RecordError::new("wrong-type", format!("`trace`: {error}")))?;
    let run = trace_id(trace).ok_or_else(|| missing("trace.trace_id"))?;
    let reason = "spans are read from files of their own; import the traces beside the labels";
    sink.loss(Loss::new(FORMAT, "trace", reason))?;
    labels(inner, run, sink)
}

fn trace_id(mut trace: Object<'_>) -> Option<String> {
    let spans = trace.list("spans").unwrap_or_default();
    trace.text("trace_id").or_else(|| Object::of(spans.first()?)?.text("trace_id"))
}

/// One label per error, each with the file's scores.
fn labels(mut file: Object<'_>, run: String, sink: &mut dyn Sink) -> Result<(), Stop> {
    let run = file.id("trace_id").unwrap_or(run);
    let errors = file.list("errors").ok_or_else(|| missing("errors"))?;
    let rest: Vec<(String, Json)> = file.rest().into_iter().collect();
    for (index, raw) in errors.into_iter().enumerate() {
        let error = Object::parse(raw, &format!("errors[{index}]"))?;
        let reason = ["description", "evidence"].into_iter().find_map(|key| error.clone().text(key));
        let mut native = error.rest();
        native.extend(rest.iter().cloned());
        let label = ReferenceLabel {
            source: FORMAT.to_owned(),
            index_base: 0,
            native: json_object(native).unwrap_or_else(|| Json::from_foreign("{}")),
            node: None,
            agent: None,
            reason,
        };
        sink.event(Event::Label(LooseLabel { run: run.clone(), label }))?;
    }
    Ok(())
}
