//! OpenTelemetry's own files: OTLP as JSON or protobuf, whole or line by line, and rows of one span
//! each, as the console exporter and Phoenix write them.
//!
//! The container is the same for every instrumentation; each span says by its attributes in whose words
//! it is written, so files may mix them.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::attributes::{Attributes, any_value};
use super::genai::{self, plain};
use super::openinference;
use super::protobuf;
use super::span::{Kind, Span, Trace};
use super::time::Time;
use super::{Part, Piece, Pieces, Spans};
use crate::importers::object::{Object, missing, wrong_type};
use crate::importers::value::{is_object, json_object, text, value};
use crate::importers::{ImportError, Layout, Outline, Probe, RawRecord, RecordError, Shape, Sink, Source};
use crate::json::Json;

/// OpenTelemetry files with the semantic conventions for generative AI.
pub(in crate::importers) struct OtelGenAi;

/// Files of spans with OpenInference's conventions.
pub(in crate::importers) struct OpenInference;

/// Keys under which OTLP holds spans and log records, in protobuf's JSON and in field names.
const BATCHES: [&[&str]; 4] =
    [&["resourceSpans"], &["resource_spans"], &["resourceLogs"], &["resource_logs"]];

/// Members of one resource's part of a batch.
const SCOPES: [&str; 3] = ["resource", "scopeSpans", "scopeLogs"];

fn is_spans(probe: &Probe) -> bool {
    probe.records().iter().any(|record| is_batch(record) || is_row(record))
        || protobuf::framing(&probe.head).is_some()
}

fn is_batch(record: &Outline) -> bool {
    BATCHES.iter().any(|path| record.has_all(path) && record.get(path[0]).is_some_and(Outline::is_array))
}

fn is_row(record: &Outline) -> bool {
    let named = record.get("context").is_some_and(|context| context.has_all(&["trace_id", "span_id"]));
    let flat = record.has_all(&["context.trace_id", "context.span_id"]);
    (named || flat) && record.has_all(&["name", "start_time"])
}

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
        _ => vec![probe.layout()],
    };
    Ok(Part { source: source.clone(), layouts, translated: None })
}

/// A batch, or one resource's part of it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Batch<'a> {
    #[serde(borrow, alias = "resourceSpans", alias = "resource_spans")]
    spans: Vec<Resource<'a>>,
    #[serde(borrow, alias = "resourceLogs", alias = "resource_logs")]
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
        "otel-genai"
    }

    fn phrase(&self) -> &'static str {
        "OTLP with `resourceSpans` or `resourceLogs`, as JSON or protobuf, or rows of spans with `context`, `name` and `start_time`"
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
        read(piece, trace)
    }
}

impl Spans for OpenInference {
    fn name(&self) -> &'static str {
        "openinference"
    }

    fn phrase(&self) -> &'static str {
        "spans as of OpenTelemetry, with attributes of `openinference`"
    }

    fn detects(&self, probe: &Probe) -> bool {
        // As the name of an attribute, or where attributes are nested; a text may speak of it.
        let names: [&[u8]; 2] = [b"openinference.span.kind", b"\"openinference\""];
        names.iter().any(|name| memchr::memmem::find(&probe.head, name).is_some()) && is_spans(probe)
    }

    fn part(&self, source: &Source, sink: &mut dyn Sink) -> Result<Part, ImportError> {
        part(source, sink)
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        find(record, pieces)
    }

    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        read(piece, trace)
    }
}

fn find<'r>(record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
    let batch: Batch<'r> = record.parse()?;
    if batch.spans.is_empty() && batch.logs.is_empty() {
        let resource: Resource<'r> = record.parse()?;
        if resource.scopes.is_empty() {
            // A batch without content is none of a row's business.
            if memchr::memmem::find(&record.bytes, b"trace_id").is_some() {
                return piece(record.parse()?, None, pieces);
            }
            let fields: Object<'r> = record.parse()?;
            let is_empty =
                BATCHES.iter().flat_map(|path| path.iter()).chain(&SCOPES).any(|key| fields.has(key));
            return if is_empty { Ok(()) } else { Err(missing("resourceSpans")) };
        }
        return from_resource(&resource, pieces);
    }
    batch.spans.iter().chain(&batch.logs).try_for_each(|resource| from_resource(resource, pieces))
}

fn from_resource<'r>(resource: &Resource<'r>, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
    for scope in &resource.scopes {
        let named = [("resource", resource.resource), ("scope", scope.scope)];
        let named = named.into_iter().filter_map(|(name, raw)| Some((name, raw?.get())));
        let context: Arc<str> = crate::importers::value::write_object(named).into();
        for raw in &scope.pieces {
            match piece(raw, Some(context.clone()), pieces) {
                Err(error) if error.code == "wrong-type" => {
                    pieces.lost.push(("spans[]".to_owned(), "no span or log record"));
                }
                read => read?,
            }
        }
    }
    Ok(())
}

fn piece<'r>(
    body: &'r RawValue,
    context: Option<Arc<str>>,
    pieces: &mut Pieces<'r>,
) -> Result<(), RecordError> {
    if !is_object(body) {
        return Err(wrong_type("spans[]", "an object"));
    }
    let head: Head<'r> = serde_json::from_str(body.get())?;
    let trace = head.trace.or(head.flat).or(head.context.and_then(|context| context.trace_id));
    let Some(trace) = trace.filter(|trace| !trace.is_empty()) else {
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
    pieces.pieces.push(Piece { run, body, context });
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

fn read<'a>(mut fields: Object<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    if fields.has("context") && !fields.has("name") {
        return resource(fields.object("context"), trace);
    }
    if ["body", "severityNumber", "timeUnixNano", "observedTimeUnixNano", "eventName"]
        .iter()
        .any(|key| fields.has(key))
    {
        return log_record(fields, trace);
    }
    let mut span = Span::default();
    let mut attributes = place(&mut fields, &mut span)?;
    events(&mut fields, &mut span, trace)?;
    for key in ["droppedAttributesCount", "dropped_attributes_count"] {
        if fields.read::<u64>(key).is_some_and(|count| count > 0) {
            trace.lose(key, "attributes that the exporter dropped");
        }
    }
    if ["links"].iter().any(|key| fields.list(key).is_some_and(|links| !links.is_empty())) {
        trace.lose("span.links", "a link to another span");
    }
    if attributes.has("openinference.span.kind") {
        openinference::read(&mut attributes, &mut span, trace);
    } else {
        genai::read(&mut attributes, &mut span, trace);
    }
    span.rest.extend(attributes.rest());
    trace.spans.push(span);
    Ok(())
}

/// What a batch says of its spans together.
fn resource(mut context: Object<'_>, trace: &mut Trace<'_>) -> Result<(), RecordError> {
    let mut resource = context.object("resource");
    if let Some(list) = resource.take("attributes") {
        let mut attributes = Attributes::from_otlp(list)?;
        let service = attributes.peek("service.name").map(Cow::into_owned);
        if let Some(name) = service.filter(|name| !name.starts_with("unknown_service")) {
            attributes.take("service.name");
            let version = attributes.text("service.version");
            trace.harness.get_or_insert((name, version));
        }
        if let Some(rest) = json_object(attributes.rest()) {
            trace.extra.entry("resource".to_owned()).or_insert(rest);
        }
    }
    if let Some(scope) = json_object(context.object("scope").filled_rest()) {
        trace.extra.entry("scope".to_owned()).or_insert(scope);
    }
    Ok(())
}

/// Takes what places a span, in the names of OTLP and of rows; returns its attributes.
pub(super) fn place<'a>(fields: &mut Object<'a>, span: &mut Span<'a>) -> Result<Attributes<'a>, RecordError> {
    let mut context = fields.object("context");
    let mut first = |names: &[&str]| names.iter().find_map(|name| fields.text(name));
    let id = first(&["spanId", "span_id", "context.span_id"]).or_else(|| context.text("span_id"));
    span.id = id.ok_or_else(|| missing("spanId"))?;
    let parent = first(&["parentSpanId", "parent_span_id", "parent_id"]);
    span.parent = parent.filter(|parent| !parent.is_empty());
    span.name = first(&["name"]).unwrap_or_default();
    span.start = time(fields, &["startTimeUnixNano", "start_time_unix_nano", "start_time"]);
    span.end = time(fields, &["endTimeUnixNano", "end_time_unix_nano", "end_time"]);
    let mut status = fields.object("status");
    let code =
        status.take("code").or_else(|| status.take("status_code")).or_else(|| fields.take("status_code"));
    let failed = code.is_some_and(|code| matches!(&*plain(code), "2" | "STATUS_CODE_ERROR" | "ERROR"));
    let message = [status.text("message"), status.text("description"), fields.text("status_message")];
    let message = message.into_iter().flatten().find(|message| !message.is_empty());
    span.error = failed.then(|| message.unwrap_or_else(|| genai::NO_MESSAGE.to_owned()));
    let mut attributes = match fields.get("attributes") {
        Some(list) if list.get().starts_with('[') => {
            fields.take("attributes");
            Attributes::from_otlp(list)?
        }
        _ => Attributes::flattened(fields.object("attributes")),
    };
    // Columns of a data frame: the attributes' names behind a prefix.
    attributes.absorb(Attributes::flattened(fields.take_under("attributes.")));
    if let Some(kind) = fields.text("span_kind").filter(|kind| kind != "UNKNOWN")
        && !attributes.has("openinference.span.kind")
        && let Some(kind) = super::span::made(Json::string(&kind).as_str().to_owned())
    {
        attributes.insert("openinference.span.kind".to_owned(), kind);
    }
    Ok(attributes)
}

/// A time in nanoseconds, as a number or a string of one, or as a date; rows count in milliseconds too.
fn time(fields: &mut Object<'_>, names: &[&str]) -> Option<Time> {
    let raw = names.iter().find_map(|name| fields.take(name))?;
    let said = plain(raw);
    match said.parse::<i128>() {
        Ok(millis) if (1..100_000_000_000_000).contains(&millis) => Time::from_nanos(millis * 1_000_000),
        Ok(nanos) => Time::from_nanos(nanos),
        Err(_) => Time::parse(&said),
    }
}

/// Reads a span's events: its exception, and messages of the generation that wrote them so.
pub(super) fn events<'a>(
    fields: &mut Object<'a>,
    span: &mut Span<'a>,
    trace: &mut Trace<'a>,
) -> Result<(), RecordError> {
    let mut messages = genai::Events::default();
    for raw in fields.list("events").unwrap_or_default() {
        let mut event = Object::parse(raw, "event")?;
        let name = event.text("name").unwrap_or_default();
        let mut attributes = match event.take("attributes") {
            Some(list) if list.get().starts_with('[') => Attributes::from_otlp(list)?,
            Some(object) => Object::of(object).map(Attributes::from_object).unwrap_or_default(),
            None => Attributes::default(),
        };
        match name.as_str() {
            "exception" => {
                let message = attributes.text("exception.message").filter(|message| !message.is_empty());
                let kind = attributes.text("exception.type");
                let said = match (kind, message) {
                    (Some(kind), Some(message)) => Some(format!("{kind}: {message}")),
                    (kind, message) => kind.or(message),
                };
                span.error = said.or(span.error.take());
            }
            "gen_ai.content.prompt" => span.input = attributes.take("gen_ai.prompt"),
            "gen_ai.content.completion" => span.output = attributes.take("gen_ai.completion"),
            "gen_ai.client.inference.operation.details" => {
                trace.said(&span.id, None).detail(attributes);
            }
            _ if messages.take(&name, attributes) => {}
            _ => trace.lose(format!("span.event {name}"), "an event that is no message"),
        }
    }
    messages.settle(span);
    Ok(())
}

/// Reads a log record: a message of a model call, or all of them.
fn log_record<'a>(mut fields: Object<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    let span = fields.text("spanId").or_else(|| fields.text("span_id")).unwrap_or_default();
    let mut attributes = match fields.take("attributes") {
        Some(list) => Attributes::from_otlp(list)?,
        None => Attributes::default(),
    };
    let name = fields.text("eventName").or_else(|| attributes.text("event.name"));
    let name = name.filter(|name| name.starts_with("gen_ai."));
    let at = time(&mut fields, &["timeUnixNano"]).or_else(|| time(&mut fields, &["observedTimeUnixNano"]));
    let Some(name) = name.filter(|_| !span.is_empty()) else {
        trace.lose("logRecord", "a log record that is no message");
        return Ok(());
    };
    if name == "gen_ai.client.inference.operation.details" {
        trace.said(&span, at).detail(attributes);
        return Ok(());
    }
    let body = fields.take("body").and_then(any_value);
    let body = body.map(|raw| raw.get().to_owned()).unwrap_or_default();
    let inner = serde_json::from_str::<&RawValue>(&body).ok();
    let decoded = inner.and_then(text).map(Cow::into_owned);
    let inner = decoded.as_deref().map_or(inner, |text| serde_json::from_str(text).ok());
    let members = inner.and_then(value::<Object<'_>>).map(Attributes::from_object).unwrap_or_default();
    if !trace.said(&span, at).messages.take(&name, members) {
        trace.lose(format!("logRecord {name}"), "an event that is no message");
    }
    Ok(())
}

impl<'a> super::span::Said<'a> {
    /// Takes an event that holds everything its model call said.
    fn detail(&mut self, mut attributes: Attributes<'a>) {
        let mut span = Span { kind: Kind::Model, ..Span::default() };
        let mut aside = Trace::default();
        genai::read(&mut attributes, &mut span, &mut aside);
        self.detail = Some(span);
    }
}
