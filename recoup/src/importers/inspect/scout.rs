//! Transcripts of Inspect Scout: a table of runs, one a row, whose messages and events are Inspect's own
//! written as JSON into a cell. The same rows come as JSONL.
//!
//! A transcript of an evaluation's log is that log's sample: it has the sample's task.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::attachments::Attachments;
use super::{model_event, sample, score};
use crate::importers::object::{Object, missing};
use crate::importers::prompts::{Prompts, finish};
use crate::importers::slice::{self, Stop};
use crate::importers::value::{elements, is_number, json_object, text};
use crate::importers::{
    ImportError, ImportOptions, Importer, Probe, RawRecord, RecordError, Sink, Source, row,
};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Agent, Harness, Node, Outcome, Role, TerminationKind, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "inspect-scout";
/// Columns that only a transcript has beside its messages, of which one suffices.
const COLUMNS: [&str; 4] = ["source_type", "source_id", "task_repeat", "message_count"];

/// Transcripts of Inspect Scout.
pub(in crate::importers) struct InspectScout;

impl Importer for InspectScout {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "rows with `transcript_id` and `messages`, as Parquet or JSON"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            record.has_all(&["transcript_id", "messages"])
                && COLUMNS.iter().any(|column| record.get(column).is_some())
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        let options = source.options();
        slice::each(source, layout, sink, |record, sink| read(record, options, sink))
    }
}

fn read(record: &RawRecord, options: &ImportOptions, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let native = row.id("transcript_id").ok_or_else(|| missing("transcript_id"))?;
    let messages = list(&mut row, "messages")?;
    let events = list(&mut row, "events")?;
    let pool = row.object("events_data").list("messages").unwrap_or_default();
    let attachments = Attachments::new(BTreeMap::new(), options.record_bytes_max as usize);
    let model_events = model_event::read(&events, &pool, &attachments);
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let model = row.text("model");
    run.agents.push(Agent { name: "assistant".to_owned(), model, system_prompt: None });
    let mut prompts = Prompts::default();
    let last = sample::push_messages(&mut run, &mut prompts, &messages, &attachments, &model_events)?;
    for prompt in &model_events.prompts {
        sample::push_prompt(&mut run, &mut prompts, prompt, &attachments);
    }
    if !events.is_empty() {
        let reason =
            "of a transcript's events the model calls' figures, tools and differing prompts are kept";
        sink.loss(Loss::new(FORMAT, "events", reason))?;
    }
    if row.take("timelines").is_some_and(|raw| raw.get() != "[]") {
        let reason = "views of the events, which are not kept either";
        sink.loss(Loss::new(FORMAT, "timelines", reason))?;
    }
    row.take("events_data");
    run.tools = model_events.tools;
    run.task = task(&mut row, &run);
    run.trial = row.read("task_repeat");
    run.harness = row.text("agent").map(|name| Harness { name, version: None });
    let outcome = outcome(&mut row, &mut run, options);
    finish(&mut run, last, outcome);
    // Counts of what is here anyway.
    row.take_if("message_count", is_number);
    run.extra.extend(row.filled_rest());
    record.emit(sink, run, Some(native), Vec::new(), 0)?;
    Ok(())
}

/// The elements of a column; a cell may be empty, but hold nothing else.
fn list<'a>(row: &mut Object<'a>, column: &'static str) -> Result<Vec<&'a RawValue>, RecordError> {
    match row.take(column) {
        None => Ok(Vec::new()),
        Some(raw) if text(raw).is_some_and(|text| text.trim().is_empty()) => Ok(Vec::new()),
        Some(raw) => elements(raw).ok_or_else(|| {
            RecordError::new(
                "wrong-type",
                format!("`{column}` is not a JSON array; it was perhaps cut short"),
            )
        }),
    }
}

fn task(row: &mut Object<'_>, run: &Trajectory) -> Task {
    let goal = run.nodes.iter().find(|node| node.role == Role::User).map(Node::text).unwrap_or_default();
    let is_log = row.get("source_type").and_then(text).as_deref() == Some("eval_log");
    let family = if is_log { super::FORMAT } else { FORMAT };
    match (row.text("task_set"), row.id("task_id")) {
        (Some(set), Some(id)) => Task::named(format!("{family}/{set}/{id}"), goal),
        (None, Some(id)) => Task::named(format!("{family}/{id}"), goal),
        (set, None) => {
            let group_keys = set.map(|set| format!("task-set/{set}")).into_iter().collect();
            Task { group_keys, ..row::derived_task(run) }
        }
    }
}

/// Takes score, error and limit. `success` is the score's own reduction; a score without it decides
/// where it is a number on Inspect's scale.
fn outcome(row: &mut Object<'_>, run: &mut Trajectory, options: &ImportOptions) -> Outcome {
    let scores = row.get("score").map(|raw| format!("{{\"score\":{}}}", raw.get()));
    let named = scores.as_deref().and_then(|text| serde_json::from_str(text).ok()).map(score::named);
    let named = named.unwrap_or_default();
    let judged: Vec<(&str, Json)> = ["score", "score_explanation", "success"]
        .into_iter()
        .filter_map(|key| Some((key, row.get(key)?.into())))
        .collect();
    run.hidden.verifier_output = json_object(judged);
    if run.hidden.verifier_output.is_some() {
        run.verifier = Some(VerifierRef { name: "score".to_owned(), version: None });
    }
    let outcome = match row.read::<bool>("success") {
        Some(passed) if options.scoring.score.is_none() => {
            let score = if let [(_, only)] = named.as_slice() { Some(*only) } else { None };
            Outcome { score, ..Outcome::from_flag(passed, "success") }
        }
        _ => options.scoring.outcome(&named, 1.0),
    };
    row.take("score");
    row.take("score_explanation");
    match (row.text("error").filter(|error| !error.is_empty()), row.text("limit")) {
        (Some(error), _) => outcome.ended(TerminationKind::InfrastructureError, error),
        (None, Some(limit)) => outcome.ended(score::limit(&limit), limit),
        (None, None) => outcome,
    }
}
