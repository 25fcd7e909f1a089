//! MLflow traces: one trace a record, its head under `info`, its spans under `data`, their attributes
//! JSON within strings. Schema 3 names spans as OTLP does, schema 2 as the console exporter.

use serde_json::value::RawValue;

use super::attributes::Attributes;
use super::genai::plain;
use super::record::{events, place};
use super::span::{Kind, Score, Span, Trace, Value, made};
use super::{Piece, Pieces, Spans};
use crate::importers::dialect::usage;
use crate::importers::object::{Object, missing};
use crate::importers::openai_chat::tools;
use crate::importers::value::{json_object, text, value};
use crate::importers::{Outline, Probe, RawRecord, RecordError};
use crate::json::Json;

/// MLflow's traces.
pub(in crate::importers) struct MlFlow;

impl Spans for MlFlow {
    fn name(&self) -> &'static str {
        "mlflow"
    }

    fn phrase(&self) -> &'static str {
        "traces with `info` and `data` that holds `spans`"
    }

    fn detects(&self, probe: &Probe) -> bool {
        let trace = |record: &Outline| {
            let id = record
                .get("info")
                .is_some_and(|info| info.get("trace_id").or_else(|| info.get("request_id")).is_some());
            id && record.get("data").is_some_and(|data| data.get("spans").is_some_and(Outline::is_array))
        };
        probe.records().iter().any(trace)
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        let body: &RawValue = record.parse()?;
        let mut info = Object::parse(body, "trace")?.object("info");
        let run = info.text("trace_id").or_else(|| info.text("request_id"));
        let run = run.ok_or_else(|| missing("info.trace_id"))?;
        pieces.pieces.push(Piece { run, body: body.get(), context: None });
        Ok(())
    }

    fn read<'r>(&self, mut fields: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        let mut info = fields.object("info");
        for raw in info.list("assessments").unwrap_or_default() {
            assessment(raw, trace);
        }
        head(info, trace);
        let spans = fields.object("data").list("spans").ok_or_else(|| missing("data.spans"))?;
        spans.into_iter().try_for_each(|raw| span(raw, trace))
    }
}

/// What is said of the whole trace, but for what its spans say again.
fn head(mut info: Object<'_>, trace: &mut Trace<'_>) {
    for key in ["trace_id", "request_id", "request_preview", "response_preview", "state", "status"] {
        info.take(key);
    }
    for key in ["trace_metadata", "request_metadata"] {
        let mut metadata = info.object(key);
        for repeated in ["mlflow.traceInputs", "mlflow.traceOutputs", "mlflow.trace.tokenUsage"] {
            metadata.take(repeated);
        }
        trace.extra.extend(metadata.filled_rest());
    }
    trace.extra.extend(info.filled_rest());
}

fn span<'a>(raw: &'a RawValue, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    let mut fields = Object::parse(raw, "span")?;
    let mut span = Span::default();
    let mut attributes = decoded(place(&mut fields, &mut span)?);
    events(&mut fields, &mut span, trace)?;
    attributes.take("mlflow.traceRequestId");
    attributes.take("mlflow.spanLogLevel");
    let kind = attributes.text("mlflow.spanType").unwrap_or_default();
    span.kind = match kind.as_str() {
        "LLM" | "CHAT_MODEL" => Kind::Model,
        "TOOL" => Kind::Tool,
        "AGENT" => Kind::Agent,
        "UNKNOWN" | "" => Kind::Unknown,
        other => Kind::Other(other.to_lowercase()),
    };
    if span.kind == Kind::Agent {
        span.agent = Some(span.name.clone()).filter(|name| !name.is_empty());
    }
    let (input, output) = (attributes.take("mlflow.spanInputs"), attributes.take("mlflow.spanOutputs"));
    let tokens = attributes.take("mlflow.chat.tokenUsage");
    span.call.usage = tokens.and_then(|tokens| usage(&mut Object::of(&tokens)?));
    span.call.cost = attributes
        .take("mlflow.llm.cost")
        .and_then(|raw| value(&raw).or_else(|| Object::of(&raw)?.read("total_cost")));
    let definitions = attributes.take("mlflow.chat.tools");
    if span.kind == Kind::Tool {
        span.tool.name = Some(span.name.clone());
        span.tool.arguments = input.as_deref().map(plain);
        span.tool.result = output.as_deref().map(plain);
    } else {
        let mut request = input.as_deref().and_then(Object::of).unwrap_or_default();
        let asked = request.text("model");
        span.call.model = attributes.text("mlflow.llm.model").or(asked);
        let offered = definitions.as_deref().or(request.take("tools"));
        let offered = offered.and_then(|raw| tools(raw, "", &mut std::collections::BTreeSet::new()));
        span.tools = offered.unwrap_or_default();
        if span.kind == Kind::Model {
            for key in ["messages", "input", "prompt", "contents", "system", "instructions", "tools"] {
                request.take(key);
            }
            span.call.parameters = json_object(request.filled_rest());
        }
        if input.as_deref().is_some_and(|raw| raw.get().contains("mlflow-attachment://")) {
            trace.lose("media", "bytes that MLflow holds, not the trace");
        }
        (span.input, span.output) = (input, output);
    }
    span.rest.extend(attributes.rest());
    trace.spans.push(span);
    Ok(())
}

/// Attributes whose values stand as JSON within strings.
fn decoded(encoded: Attributes<'_>) -> Attributes<'_> {
    let mut decoded = Attributes::default();
    for (name, raw) in encoded.into_values() {
        let inner = text(&raw).and_then(|text| made(text.into_owned()));
        decoded.insert(name.into_owned(), inner.unwrap_or(raw));
    }
    decoded
}

/// A judgement of a person or a program, or what the right answer is.
fn assessment(raw: &RawValue, trace: &mut Trace<'_>) {
    let Some(mut fields) = Object::of(raw) else { return };
    let name = fields.text("assessment_name").or_else(|| fields.text("name")).unwrap_or_default();
    if let Some(expected) = fields.object("expectation").take("value") {
        trace.gold.insert(name, Json::from(expected));
        return;
    }
    let given = fields.object("feedback").take("value");
    let value = match given.map(|raw| (value::<bool>(raw), value::<f64>(raw))) {
        Some((Some(flag), _)) => Value::Flag(flag),
        Some((_, Some(number))) => Value::Number(number),
        _ => Value::Other,
    };
    let reason = fields.text("rationale");
    trace.scores.push(Score { name, span: fields.text("span_id"), value, reason, native: Json::from(raw) });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::MlFlow;
    use crate::importers::{Event, Importer as _, Source};

    #[test]
    fn spans_of_the_second_schema_are_read() {
        let text = r#"{"info":{"request_id":"tr-1"},"data":{"spans":[{"name":"ask","context":{"span_id":"s","trace_id":"t"},
            "parent_id":null,"start_time":1700000000000000000,"end_time":1700000001000000000,"status_code":"OK",
            "attributes":{"mlflow.spanType":"\"LLM\"","mlflow.spanInputs":"{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}",
            "mlflow.spanOutputs":"\"hello\""}}]}}"#;
        let source = Source::from_bytes("t.json", text.as_bytes(), Arc::default());
        let mut events: Vec<Event> = Vec::new();
        MlFlow.import(&source, &mut events).unwrap();
        let runs = events.iter().filter_map(|event| match event {
            Event::Trajectory(run) => Some((run.head.task.goal.as_str(), run.step_count)),
            _ => None,
        });
        assert_eq!(runs.collect::<Vec<_>>(), [("hi", 1)]);
    }
}
