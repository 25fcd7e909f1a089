//! OpenTelemetry's own files: OTLP as JSON or protobuf, whole or line by line; rows of one span each, as
//! the console exporter, Phoenix and Arize write them, or a page of such rows; and traces whose spans hold
//! the spans beneath them, as those that TRAIL's labels are about.
//!
//! The container is the same for every instrumentation; each span says by its attributes in whose words
//! it is written, so files and traces may mix them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::protobuf;
use super::recognized::{BATCHES, SCOPES, is_batch, is_open_inference, is_page, is_spans};
use super::record;
use super::span::Trace;
use super::{Part, Piece, Pieces, Spans};
use crate::importers::object::{Object, missing, wrong_type};
use crate::importers::value::{elements, is_object};
use crate::importers::{ImportError, Layout, Probe, RawRecord, RecordError, Shape, Sink, Source};

/// OpenTelemetry files with the semantic conventions for generative AI.
pub(in crate::importers) struct OtelGenAi;

/// Files of spans with OpenInference's conventions.
pub(in crate::importers) struct OpenInference;

/// What both are, for files with parts of one trace.
const FAMILY: &str = "opentelemetry";

/// How the pieces lie in a file.
fn part(source: &Source, sink: &mut dyn Sink) -> Result<Part, ImportError> {
    let probe = Probe::read(source)?;
    if let Some(framing) = protobuf::framing(&probe.head) {
        let (source, size) = protobuf::translate(source, framing, sink)?;
        return Ok(Part { source, layouts: vec![Layout::Lines], translated: Some(size) });
    }
    // One batch may be the whole file: its members are the records then.
    let layouts = match (probe.shape, probe.values.as_slice()) {
        (Shape::Object, [only]) if is_batch(only) && probe.layout() == Layout::Document => {
            let held = BATCHES.into_iter().filter(|path| only.has_all(path));
            held.map(Layout::Elements).collect()
        }
        (Shape::Object, [only]) if is_page(only) && probe.layout() == Layout::Document => {
            vec![Layout::Elements(&["data"])]
        }
        _ => vec![probe.layout()],
    };
    Ok(Part { source: source.clone(), layouts, translated: None })
}

/// A batch, or one resource's part of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Batch<'a> {
    #[serde(borrow, rename = "resourceSpans", alias = "resource_spans")]
    spans: Vec<Resource<'a>>,
    #[serde(borrow, rename = "resourceLogs", alias = "resource_logs")]
    logs: Vec<Resource<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resource<'a> {
    #[serde(borrow)]
    resource: Option<&'a RawValue>,
    #[serde(
        borrow,
        alias = "scopeSpans",
        alias = "scope_spans",
        alias = "instrumentationLibrarySpans",
        alias = "scopeLogs",
        alias = "scope_logs"
    )]
    scopes: Vec<Scope<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Scope<'a> {
    #[serde(borrow, alias = "instrumentationLibrary")]
    scope: Option<&'a RawValue>,
    #[serde(borrow, alias = "spans", alias = "logRecords", alias = "log_records")]
    pieces: Vec<&'a RawValue>,
}

/// What says to which run a piece belongs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head<'a> {
    #[serde(borrow, alias = "traceId", alias = "trace_id")]
    trace: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "parentSpanId", alias = "parent_span_id", alias = "parent_id")]
    parent: Option<Cow<'a, str>>,
    /// Spans have one, log records do not.
    #[serde(borrow)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, alias = "context.trace_id")]
    flat: Option<Cow<'a, str>>,
    #[serde(borrow)]
    context: Option<Context<'a>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Context<'a> {
    #[serde(borrow)]
    trace_id: Option<Cow<'a, str>>,
}

impl Spans for OtelGenAi {
    fn name(&self) -> &'static str {
        record::CONVENTIONS
    }

    fn kin(&self) -> &'static str {
        FAMILY
    }

    fn phrase(&self) -> &'static str {
        "OTLP with `resourceSpans` or `resourceLogs`, as JSON or protobuf, or rows of spans with `context`, `name` and `start_time`, or traces with `spans` that have `span_name` and `span_attributes`"
    }

    fn detects(&self, probe: &Probe) -> bool {
        is_spans(probe)
    }

    fn part(&self, source: &Source, sink: &mut dyn Sink) -> Result<Part, ImportError> {
        part(source, sink)
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        find(record, pieces)
    }

    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        record::read(piece, trace)
    }
}

impl Spans for OpenInference {
    fn name(&self) -> &'static str {
        record::OPEN_INFERENCE
    }

    fn kin(&self) -> &'static str {
        FAMILY
    }

    fn phrase(&self) -> &'static str {
        "spans as of OpenTelemetry, with attributes of `openinference`"
    }

    fn detects(&self, probe: &Probe) -> bool {
        is_open_inference(probe)
    }

    fn part(&self, source: &Source, sink: &mut dyn Sink) -> Result<Part, ImportError> {
        part(source, sink)
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        find(record, pieces)
    }

    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        record::read(piece, trace)
    }
}

fn find<'r>(record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
    let batch: Batch<'r> = record.parse()?;
    if !batch.spans.is_empty() || !batch.logs.is_empty() {
        return batch
            .spans
            .iter()
            .chain(&batch.logs)
            .try_for_each(|resource| from_resource(resource, pieces));
    }
    let resource: Resource<'r> = record.parse()?;
    if !resource.scopes.is_empty() {
        return from_resource(&resource, pieces);
    }
    let fields: Object<'r> = record.parse()?;
    let has = |key: &str| fields.has(key);
    if !["context", "context.trace_id"].into_iter().any(has)
        && let Some(held) = ["spans", "data"].into_iter().find_map(|key| fields.get(key).and_then(elements))
    {
        let run = fields.clone().text("trace_id");
        return held.into_iter().try_for_each(|raw| spare(raw, run.as_deref(), None, pieces));
    }
    if memchr::memmem::find(&record.bytes, b"trace_id").is_some() {
        return piece(record.parse()?, None, None, pieces);
    }
    // A batch without content is none of a row's business.
    let is_empty = BATCHES.iter().flat_map(|path| path.iter()).chain(&SCOPES).any(|key| has(key));
    if is_empty { Ok(()) } else { Err(missing("resourceSpans")) }
}

/// Notes a piece of several in a record; a bad one costs only itself.
fn spare<'r>(
    raw: &'r RawValue,
    run: Option<&str>,
    context: Option<Arc<str>>,
    pieces: &mut Pieces<'r>,
) -> Result<(), RecordError> {
    match piece(raw, run, context, pieces) {
        // Anything else may be mended by rewriting the record.
        Err(error) if error.code == "wrong-type" => {
            pieces.lost.push(("spans[]".to_owned(), "no span or log record"));
            Ok(())
        }
        read => read,
    }
}

fn from_resource<'r>(resource: &Resource<'r>, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
    for scope in &resource.scopes {
        let named = [("resource", resource.resource), ("scope", scope.scope)];
        let named = named.into_iter().filter_map(|(name, raw)| Some((name, raw?.get())));
        let context: Arc<str> = crate::importers::value::write_object(named).into();
        for raw in &scope.pieces {
            spare(raw, None, Some(context.clone()), pieces)?;
        }
    }
    Ok(())
}

/// Notes a span or log record; `run` is the trace it belongs to where it does not say so itself.
fn piece<'r>(
    body: &'r RawValue,
    run: Option<&str>,
    context: Option<Arc<str>>,
    pieces: &mut Pieces<'r>,
) -> Result<(), RecordError> {
    if !is_object(body) {
        return Err(wrong_type("spans[]", "an object"));
    }
    let head: Head<'r> = serde_json::from_str(body.get())?;
    let trace = head.trace.or(head.flat).or(head.context.and_then(|context| context.trace_id));
    let trace = trace.filter(|trace| !trace.is_empty()).or(run.map(Cow::Borrowed));
    let Some(trace) = trace else {
        pieces.lost.push(("traceId".to_owned(), "a span or log record of no trace"));
        return Ok(());
    };
    let mut run = trace.into_owned();
    if head.parent.is_none_or(|parent| parent.is_empty())
        && head.name.is_some()
        && let Some(conversation) = bare_call(body)
    {
        run = conversation;
    }
    pieces.pieces.push(Piece { run, body: body.get(), context });
    Ok(())
}

/// The conversation of a model call that stands alone in its trace, where it names one.
fn bare_call(body: &RawValue) -> Option<String> {
    memchr::memmem::find(body.get().as_bytes(), b"gen_ai.conversation.id")?;
    let mut fields = Object::of(body)?;
    let mut attributes = Attributes::from_otlp(fields.take("attributes")?).ok()?;
    let operation = attributes.text("gen_ai.operation.name")?;
    matches!(operation.as_str(), "chat" | "text_completion" | "generate_content")
        .then(|| attributes.text("gen_ai.conversation.id"))?
}
