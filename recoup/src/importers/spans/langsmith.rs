//! LangSmith run exports: one run (LangSmith's word for a span) a row, as `list_runs` and the bulk
//! export give it.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::genai::{NO_MESSAGE, plain};
use super::span::{Kind, Score, Span, Trace, Value};
use super::time::Time;
use super::{Piece, Pieces, Spans};
use crate::importers::dialect::usage;
use crate::importers::object::{Object, missing};
use crate::importers::openai_chat::tools;
use crate::importers::value::{json_object, text, value};
use crate::importers::{Outline, Probe, RawRecord, RecordError};
use crate::json::Json;
use crate::trajectory::Usage;

/// LangSmith's exports.
pub(in crate::importers) struct LangSmith;

impl Spans for LangSmith {
    fn name(&self) -> &'static str {
        "langsmith"
    }

    fn phrase(&self) -> &'static str {
        "rows of runs with `id`, `trace_id`, `run_type` and `inputs`"
    }

    fn detects(&self, probe: &Probe) -> bool {
        let run = |record: &Outline| record.has_all(&["id", "trace_id", "run_type", "inputs"]);
        probe.records().iter().any(run)
    }

    fn pieces<'r>(&self, record: &'r RawRecord, pieces: &mut Pieces<'r>) -> Result<(), RecordError> {
        let body: &RawValue = record.parse()?;
        let mut row = Object::parse(body, "run")?;
        let run = row.id("trace_id").or_else(|| row.id("id")).ok_or_else(|| missing("trace_id"))?;
        pieces.pieces.push(Piece { run, body: body.get(), context: None });
        Ok(())
    }

    fn read<'r>(&self, piece: Object<'r>, trace: &mut Trace<'r>) -> Result<(), RecordError> {
        run(piece, trace)
    }
}

/// What the trace's shape or other columns say already, or what says nothing of the run.
const REPEATED: [&str; 20] = [
    "trace_id",
    "dotted_order",
    "parent_run_ids",
    "child_run_ids",
    "direct_child_run_ids",
    "status",
    "total_tokens",
    "prompt_token_details",
    "completion_token_details",
    "app_path",
    "manifest_id",
    "in_dataset",
    "inputs_preview",
    "outputs_preview",
    "execution_order",
    "last_queued_at",
    "share_token",
    "first_token_time",
    "serialized",
    "events",
];

fn run<'a>(mut row: Object<'a>, trace: &mut Trace<'a>) -> Result<(), RecordError> {
    for key in REPEATED {
        row.take(key);
    }
    let mut span = Span {
        id: row.id("id").ok_or_else(|| missing("id"))?,
        parent: row.id("parent_run_id"),
        name: row.text("name").unwrap_or_default(),
        start: row.text("start_time").as_deref().and_then(Time::parse),
        end: row.text("end_time").as_deref().and_then(Time::parse),
        error: row.text("error").filter(|error| !error.is_empty()),
        ..Span::default()
    };
    let kind = row.text("run_type").unwrap_or_default();
    span.kind = match kind.as_str() {
        "llm" => Kind::Model,
        "tool" => Kind::Tool,
        other => Kind::Other(other.to_owned()),
    };
    let mut extra = row.object("extra");
    let mut metadata = extra.object("metadata");
    span.agent = metadata.text("lc_agent_name");
    let (inputs, outputs) = (row.take("inputs"), row.take("outputs"));
    match span.kind {
        Kind::Tool => tool(&mut span, &mut extra, &mut metadata, inputs, outputs),
        Kind::Model => call(&mut span, &mut extra, &mut metadata, outputs, &mut row),
        _ => {}
    }
    if span.kind != Kind::Tool {
        span.input = inputs.map(Cow::Borrowed);
        span.output = outputs.filter(|raw| raw.get() != "{}").map(Cow::Borrowed);
    }
    for (name, raw) in row.object("feedback_stats").members() {
        let number = Object::of(raw).and_then(|mut stats| stats.read::<f64>("avg"));
        let value = number.map_or(Value::Other, Value::Number);
        let span = Some(span.id.clone());
        trace.scores.push(Score { name, span, value, reason: None, native: Json::from(raw) });
    }
    if span.parent.is_none() {
        trace.extra.extend(metadata.filled_rest());
    } else {
        span.rest.extend(metadata.filled_rest());
    }
    span.rest.extend(extra.filled_rest());
    span.rest.extend(row.filled_rest());
    trace.spans.push(span);
    Ok(())
}

/// Takes a model call's parameters, tools, model, usage and cost.
fn call(
    span: &mut Span<'_>,
    extra: &mut Object<'_>,
    metadata: &mut Object<'_>,
    outputs: Option<&RawValue>,
    row: &mut Object<'_>,
) {
    let mut parameters = extra.object("invocation_params");
    let asked = ["model", "model_name"].iter().filter_map(|key| parameters.text(key)).next_back();
    span.call.model = metadata.text("ls_model_name").or(asked);
    if let Some(raw) = parameters.take("tools").or_else(|| parameters.take("functions")) {
        span.tools = tools(raw, "", &mut std::collections::BTreeSet::new()).unwrap_or_default();
    }
    span.call.parameters = json_object(parameters.filled_rest());
    let mut outputs = outputs.and_then(Object::of).unwrap_or_default();
    let mut of_output = outputs.object("llm_output");
    let counted = usage(&mut of_output.object("token_usage"))
        .or_else(|| usage(&mut outputs.object("usage_metadata")))
        .or_else(|| usage(&mut outputs.object("usage")))
        .or_else(|| usage(&mut metadata.object("usage_metadata")));
    let columns = (row.read::<u64>("prompt_tokens"), row.read::<u64>("completion_tokens"));
    let of_columns = || match columns {
        (Some(input), Some(output)) => Some(Usage { input, output, ..Usage::default() }),
        _ => None,
    };
    span.call.usage = counted.or_else(of_columns);
    let cost = row.take("total_cost");
    span.call.cost = cost.and_then(|raw| value(raw).or_else(|| text(raw)?.parse().ok()));
}

/// Takes a tool's run. LangChain gives arguments as a string under `input`, others as they are.
fn tool(
    span: &mut Span<'_>,
    extra: &mut Object<'_>,
    metadata: &mut Object<'_>,
    inputs: Option<&RawValue>,
    outputs: Option<&RawValue>,
) {
    span.tool.name = Some(span.name.clone());
    let mut fields = inputs.and_then(Object::of).unwrap_or_default();
    span.tool.arguments = fields.text("input").or_else(|| inputs.map(plain));
    let output = outputs.and_then(Object::of).and_then(|mut outputs| outputs.take("output"));
    let mut message = output.and_then(Object::of).unwrap_or_default();
    if message.has("kwargs") {
        message = message.object("kwargs");
    }
    span.tool.call_id = message.text("tool_call_id");
    span.tool.call_id = span.tool.call_id.take().or_else(|| extra.text("tool_call_id"));
    span.tool.call_id = span.tool.call_id.take().or_else(|| metadata.text("tool_call_id"));
    if message.text("status").as_deref() == Some("error") {
        span.error.get_or_insert_with(|| NO_MESSAGE.to_owned());
    }
    let content = message.take("content").or(output).or(outputs.filter(|raw| raw.get() != "{}"));
    span.tool.result = content.map(plain);
}
