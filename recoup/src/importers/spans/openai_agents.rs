//! Traces of the OpenAI Agents SDK, as its exporter sends them: an item for the trace and one for each
//! span, one a line or several in a list under `data`.

use serde_json::value::RawValue;

use super::genai::plain;
use super::span::{Kind, Span, Trace};
use super::time::Time;
use super::{Piece, Pieces, Spans};
use crate::importers::dialect::usage;
use crate::importers::object::Object;
use crate::importers::value::{elements, is_object, json_object};
use crate::importers::{Outline, Probe, RawRecord, RecordError};
use crate::json::Json;

/// Traces of the OpenAI Agents SDK.
pub(in crate::importers) struct OpenAiAgents;

impl Spans for OpenAiAgents {
    fn name(&self) -> &'static str {
        "openai-agents"
    }

    fn phrase(&self) -> &'static str {
        "items whose `object` is `trace` or `trace.span`, as the Agents SDK exports them"
    }

    fn detects(&self, probe: &Probe) -> bool {
        let item = |record: &Outline| match record.get("object").and_then(Outline::as_str) {
            Some("trace") => record.has_all(&["id", "workflow_name"]),
            Some("trace.span") => record.has_all(&["id", "trace_id", "span_data"]),
            _ => false,
        };
        let sent = |record: &Outline| record.get("data").is_some_and(|list| list.elements().iter().any(item));
        probe.records().iter().any(|record| item(record) || sent(record))
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        let whole: &RawValue = record.parse()?;
        let sent = Object::parse(whole, "item")?.get("data").and_then(elements);
        for body in sent.unwrap_or_else(|| vec![whole]) {
            if !is_object(body) {
                pieces.lost.push(("data[]".to_owned(), "no item"));
                continue;
            }
            let mut item = Object::parse(body, "item")?;
            let Some(run) = item.text("trace_id").or_else(|| item.text("id")) else {
                pieces.lost.push(("trace_id".to_owned(), "an item of no trace"));
                continue;
            };
            pieces.pieces.push(Piece { run, body: body.get(), context: None });
        }
        Ok(())
    }

    fn read<'r>(&self, mut item: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        if item.text("object").as_deref() == Some("trace") {
            item.take("id");
            if let Some(name) = item.text("workflow_name") {
                trace.extra.insert("workflow_name".to_owned(), Json::string(&name));
            }
            trace.extra.extend(item.filled_rest());
            return Ok(());
        }
        span(item, trace)
    }
}

fn span<'a>(mut item: Object<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    item.take("trace_id");
    let mut span = Span {
        id: item.required("id")?,
        parent: item.text("parent_id"),
        start: item.text("started_at").as_deref().and_then(Time::parse),
        end: item.text("ended_at").as_deref().and_then(Time::parse),
        ..Span::default()
    };
    let mut error = item.object("error");
    if let Some(message) = error.text("message") {
        let cause = error.object("data").text("error");
        span.error = Some(cause.map_or_else(|| message.clone(), |cause| format!("{message}: {cause}")));
    }
    let mut data = item.object("span_data");
    let kind = data.text("type").unwrap_or_default();
    span.name = data.text("name").unwrap_or_else(|| kind.clone());
    match kind.as_str() {
        "agent" => {
            span.kind = Kind::Agent;
            span.agent = Some(span.name.clone());
        }
        "generation" | "response" => {
            span.kind = Kind::Model;
            span.call.model = data.text("model");
            span.call.parameters = json_object(data.object("model_config").filled_rest());
            span.call.usage = usage(&mut data.object("usage"));
            span.response = data.text("response_id");
            if span.response.is_some() && data.get("output").is_none() {
                trace.lose("response_id", "a response that OpenAI holds, not the trace");
            }
            span.input = data.take("input").map(std::borrow::Cow::Borrowed);
            span.output = data.take("output").map(std::borrow::Cow::Borrowed);
        }
        "function" => {
            span.kind = Kind::Tool;
            span.tool.name = Some(span.name.clone());
            span.tool.arguments = data.take("input").map(plain);
            span.tool.result = data.take("output").map(plain);
        }
        other => span.kind = Kind::Other(other.to_owned()),
    }
    span.rest.extend(data.filled_rest());
    span.rest.extend(item.filled_rest());
    trace.spans.push(span);
    Ok(())
}
