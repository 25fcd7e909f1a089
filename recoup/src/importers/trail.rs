//! TRAIL label files: the errors that people found in a trace, each at a span. A file holds the errors
//! of one trace and is named by the trace's id; a row of the data set holds trace and labels together.
//!
//! A label file only names its run, whose spans come with a file of their own; each label finds its message
//! by the span's id when both are there.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::slice::{self, RawRecord, RecordError, Stop};
use super::value::{json_object, text};
use super::{Event, ImportError, Importer, LooseLabel, Outline, Probe, Scoring, Sink, Source, spans};
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
        let scoring = &source.options().scoring;
        let layout = Probe::read(source)?.layout();
        slice::each(source, layout, sink, |record, sink| read(record, stem, scoring, sink))
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

fn read(record: &RawRecord, stem: &str, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut file: Object<'_> = record.parse()?;
    let Some(raw) = file.take("labels") else {
        for label in labels(file, stem.to_owned())? {
            match label {
                Ok(label) => sink.event(Event::Label(label))?,
                Err(error) => sink.event(record.quarantine(&error))?,
            }
        }
        return Ok(());
    };
    let held = text(raw);
    let inner: Object<'_> = parsed(held.as_deref().unwrap_or(raw.get()), "labels")?;
    let raw = file.take("trace").ok_or_else(|| missing("trace"))?;
    let held = text(raw);
    let trace: &RawValue = parsed(held.as_deref().unwrap_or(raw.get()), "trace")?;
    let run = trace_id(Object::parse(trace, "trace")?).ok_or_else(|| missing("trace.trace_id"))?;
    let mut losses = BTreeSet::new();
    let told = spans::held(trace, scoring, &mut losses)?;
    let mut found = Vec::new();
    for label in labels(inner, run.clone())? {
        match label {
            Ok(label) => found.push(label),
            Err(error) => sink.event(record.quarantine(&error))?,
        }
    }
    let Some((told, mut own)) = told else {
        losses.into_iter().try_for_each(|loss| sink.loss(loss))?;
        return Ok(found.into_iter().try_for_each(|label| sink.event(Event::Label(label)))?);
    };
    for LooseLabel { mut label, .. } in found {
        let native = label.native.to_value();
        let span = native.get("location").and_then(|span| span.as_str()).unwrap_or_default();
        label.node = spans::message_of_span(told.nodes.iter().map(|node| &node.occurrence), span);
        if label.node.is_none() {
            let reason = "a span that gave no message; the label stays with the run as a whole";
            losses.insert(Loss::new(FORMAT, "location", reason));
        }
        own.push(label);
    }
    losses.into_iter().try_for_each(|loss| sink.loss(loss))?;
    record.emit(sink, told, Some(run), own, 0)?;
    Ok(())
}

fn parsed<'a, T: serde::Deserialize<'a>>(source: &'a str, place: &str) -> Result<T, RecordError> {
    serde_json::from_str(source)
        .map_err(|error| RecordError::new("wrong-type", format!("`{place}`: {error}")))
}

fn trace_id(mut trace: Object<'_>) -> Option<String> {
    let spans = trace.list("spans").unwrap_or_default();
    trace.text("trace_id").or_else(|| Object::of(spans.first()?)?.text("trace_id"))
}

/// One label per error, each with the file's scores; an error that is none costs only itself.
fn labels(mut file: Object<'_>, run: String) -> Result<Vec<Result<LooseLabel, RecordError>>, RecordError> {
    let run = file.id("trace_id").unwrap_or(run);
    let errors = file.list("errors").ok_or_else(|| missing("errors"))?;
    let rest: Vec<(String, Json)> = file.rest().into_iter().collect();
    let label = |(index, raw): (usize, &RawValue)| {
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
        Ok(LooseLabel { run: run.clone(), label })
    };
    Ok(errors.into_iter().enumerate().map(label).collect())
}
