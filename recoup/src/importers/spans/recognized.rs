//! What OpenTelemetry's files look like, in all the forms in which programs write spans.

use super::protobuf;
use crate::importers::{Outline, Probe};

/// Keys under which OTLP holds spans and log records, in protobuf's JSON and in field names.
pub(super) const BATCHES: [&[&str]; 4] =
    [&["resourceSpans"], &["resource_spans"], &["resourceLogs"], &["resource_logs"]];

/// Members of one resource's part of a batch.
pub(super) const SCOPES: [&str; 3] = ["resource", "scopeSpans", "scopeLogs"];

pub(super) fn is_spans(probe: &Probe) -> bool {
    let records = probe.records().iter();
    records.into_iter().any(|record| is_batch(record) || is_row(record) || is_page(record) || is_tree(record))
        || protobuf::framing(&probe.head).is_some()
}

pub(super) fn is_batch(record: &Outline) -> bool {
    BATCHES.iter().any(|path| record.has_all(path) && record.get(path[0]).is_some_and(Outline::is_array))
}

fn is_row(record: &Outline) -> bool {
    let named = record.get("context").is_some_and(|context| context.has_all(&["trace_id", "span_id"]));
    let flat = record.has_all(&["context.trace_id", "context.span_id"]);
    (named || flat) && record.has_all(&["name", "start_time"])
}

/// Rows as Phoenix and Arize write them: those of no other writer have the kind beside the attributes, or
/// the attributes' names behind a prefix.
fn is_open_inference_row(record: &Outline) -> bool {
    let kinds = ["span_kind", "attributes.openinference.span.kind"];
    is_row(record) && kinds.iter().any(|kind| record.get(kind).is_some())
}

/// An answer of Phoenix's server: rows, or spans in OTLP's names.
pub(super) fn is_page(record: &Outline) -> bool {
    let is_span = |row: &Outline| row.has_all(&["trace_id", "span_id", "start_time_unix_nano", "attributes"]);
    record.get("data").is_some_and(|page| page.elements().iter().any(|row| is_row(row) || is_span(row)))
}

/// A trace whose spans hold those beneath them.
fn is_tree(record: &Outline) -> bool {
    let is_span = |span: &Outline| span.has_all(&["trace_id", "span_id", "span_name", "span_attributes"]);
    record.get("spans").and_then(Outline::first).is_some_and(is_span)
}

/// True for spans with OpenInference's attributes.
pub(super) fn is_open_inference(probe: &Probe) -> bool {
    // As the name of an attribute, or where attributes are nested; a text may speak of it.
    let names: [&[u8]; 2] = [b"openinference.span.kind", b"\"openinference\""];
    let is_named = names.iter().any(|name| memchr::memmem::find(&probe.head, name).is_some());
    let rows = probe.records().iter().flat_map(|record| match record.get("data") {
        Some(page) => page.elements(),
        None => std::slice::from_ref(record),
    });
    (is_named && is_spans(probe)) || rows.into_iter().any(is_open_inference_row)
}
