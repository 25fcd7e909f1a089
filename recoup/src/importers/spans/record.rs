//! One span or log record of OpenTelemetry, in the names of OTLP, of rows and of data frames.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::genai::{self, plain};
use super::openinference;
use super::otlp_value::any_value;
use super::span::{Kind, Span, Trace};
use super::time::Time;
use crate::importers::RecordError;
use crate::importers::object::{Object, missing};
use crate::importers::value::{json_object, text, value};
use crate::json::Json;

/// The format of a trace in OpenTelemetry's own conventions.
pub(super) const CONVENTIONS: &str = "otel-genai";
/// The format of a trace in which spans are in OpenInference's.
pub(super) const OPEN_INFERENCE: &str = "openinference";

/// Spans within spans that are followed.
const DEPTH_MAX: usize = 100;

/// Reads a span with those beneath it, a log record, or what a batch says of them.
///
/// # Errors
/// When it is none.
pub(super) fn read<'a>(mut fields: Object<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    if fields.has("context") && !fields.has("name") {
        return resource(fields.object("context"), trace);
    }
    if ["body", "severityNumber", "timeUnixNano", "observedTimeUnixNano", "eventName"]
        .iter()
        .any(|key| fields.has(key))
    {
        return log_record(fields, trace);
    }
    let mut open: Vec<(Object<'a>, Option<String>, usize)> = vec![(fields, None, 0)];
    while let Some((fields, parent, depth)) = open.pop() {
        let (id, children) = span(fields, parent, trace)?;
        if depth >= DEPTH_MAX && !children.is_empty() {
            trace.lose("child_spans", "spans within spans deeper than a trace nests them");
            continue;
        }
        // The first one is read next.
        for raw in children.into_iter().rev() {
            open.push((Object::parse(raw, "child_spans")?, Some(id.clone()), depth + 1));
        }
    }
    Ok(())
}

/// Reads a span that stands in `parent`; returns its id and the spans that stand in it.
fn span<'a>(
    mut fields: Object<'a>,
    parent: Option<String>,
    trace: &mut Trace<'a>,
) -> Result<(String, Vec<&'a RawValue>), RecordError> {
    let children = fields.list("child_spans").unwrap_or_default();
    let mut span = Span::default();
    let mut attributes = place(&mut fields, &mut span)?;
    span.parent = span.parent.or(parent);
    events(&mut fields, &mut span, trace)?;
    for key in ["droppedAttributesCount", "dropped_attributes_count"] {
        if fields.read::<u64>(key).is_some_and(|count| count > 0) {
            trace.lose(key, "attributes that the exporter dropped");
        }
    }
    for (key, reason) in [("links", "a link to another span"), ("logs", "what was logged meanwhile")] {
        if fields.list(key).is_some_and(|list| !list.is_empty()) {
            trace.lose(format!("span.{key}"), reason);
        }
    }
    columns(&mut fields, &span.id, trace);
    if attributes.has("openinference.span.kind") {
        trace.format = Some(OPEN_INFERENCE);
        openinference::read(&mut attributes, &mut span, trace);
    } else {
        trace.format.get_or_insert(CONVENTIONS);
        genai::read(&mut attributes, &mut span, trace);
    }
    span.rest.extend(attributes.rest());
    let id = span.id.clone();
    trace.spans.push(span);
    Ok((id, children))
}

/// What a row says beside its span: where it was recorded, and how others judged it.
fn columns(fields: &mut Object<'_>, id: &str, trace: &mut Trace<'_>) {
    let resource = fields.object("resource_attributes");
    if !resource.is_empty() {
        recorder(Attributes::from_object(resource), trace);
    }
    for prefix in ["eval.", "trace_eval.", "session_eval.", "annotation."] {
        let mut judged: BTreeMap<String, Attributes<'_>> = BTreeMap::new();
        for (name, raw) in fields.take_under(prefix).members() {
            let Some((name, what)) = name.rsplit_once('.') else { continue };
            judged.entry(name.to_owned()).or_default().insert(what.to_owned(), Cow::Borrowed(raw));
        }
        for (name, said) in judged {
            openinference::score(name, said, id, trace);
        }
    }
}

/// What a batch says of its spans together.
fn resource(mut context: Object<'_>, trace: &mut Trace<'_>) -> Result<(), RecordError> {
    let mut resource = context.object("resource");
    if let Some(list) = resource.take("attributes") {
        recorder(Attributes::from_otlp(list)?, trace);
    }
    if let Some(scope) = json_object(context.object("scope").filled_rest()) {
        trace.extra.entry("scope".to_owned()).or_insert(scope);
    }
    Ok(())
}

/// The program that spans were recorded in.
fn recorder(mut attributes: Attributes<'_>, trace: &mut Trace<'_>) {
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

/// Takes what places a span, in the names of OTLP and of rows; returns its attributes.
pub(super) fn place<'a>(fields: &mut Object<'a>, span: &mut Span<'a>) -> Result<Attributes<'a>, RecordError> {
    let mut context = fields.object("context");
    let mut first = |names: &[&str]| names.iter().find_map(|name| fields.text(name));
    let id = first(&["spanId", "span_id", "context.span_id"]).or_else(|| context.text("span_id"));
    span.id = id.ok_or_else(|| missing("spanId"))?;
    let parent = first(&["parentSpanId", "parent_span_id", "parent_id"]);
    span.parent = parent.filter(|parent| !parent.is_empty());
    span.name = first(&["name", "span_name"]).unwrap_or_default();
    span.start = time(fields, &["startTimeUnixNano", "start_time_unix_nano", "start_time", "timestamp"]);
    span.end = time(fields, &["endTimeUnixNano", "end_time_unix_nano", "end_time"]);
    if let (Some(start), None) = (&span.start, &span.end) {
        span.end = fields.text("duration").and_then(|took| start.after(&took));
    }
    let mut status = fields.object("status");
    let code =
        status.take("code").or_else(|| status.take("status_code")).or_else(|| fields.take("status_code"));
    let failed =
        code.is_some_and(|code| matches!(&*plain(code), "2" | "STATUS_CODE_ERROR" | "ERROR" | "Error"));
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
    attributes.unpack(&["llm.input_messages", "llm.output_messages", "llm.tools"]);
    if fields.has("span_attributes") {
        // Whose rows have the kind of OpenTelemetry under the name of OpenInference's.
        attributes.absorb(Attributes::flattened(fields.object("span_attributes")));
    } else if let Some(kind) = fields.text("span_kind").filter(|kind| kind != "UNKNOWN")
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
        let name = event.text("name").or_else(|| event.text("Name")).unwrap_or_default();
        let mut attributes = match event.take("attributes").or_else(|| event.take("Attributes")) {
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
