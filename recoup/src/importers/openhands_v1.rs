//! OpenHands runs of the software agent SDK (V1): the events of a conversation as a folder of files
//! (`events/event-00000-….json`), as an array, as lines, or as the `history` of an evaluation's
//! `output.jsonl`.
//!
//! Calls that one response of the model made in parallel are several events that share its id; they are
//! one message here. What the model was shown after a condensation is not what it was shown before, and
//! the condenser's summary says so.

mod event;
mod folder;

use serde_json::value::RawValue;

use self::event::Events;
use self::folder::Listing;
use super::object::{Object, missing};
use super::openhands::outcome;
use super::slice::{self, Layout, RawRecord, Stop};
use super::value::elements;
use super::{ImportError, Importer, Outline, Probe, Shape, Sink, Source, each_file, instance, row};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Harness, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "openhands-v1";

/// OpenHands runs (V1).
pub(super) struct OpenHandsV1;

impl Importer for OpenHandsV1 {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "events with `kind` and `source`, as files, lines or the `history` of an output row"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe
            .records()
            .iter()
            .any(|record| is_event(record) || is_output(record) || is_page(record) || is_state(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        read_file(source, &mut Listing::default(), sink)
    }

    fn family(&self) -> Option<&str> {
        Some(FORMAT)
    }

    fn import_together(&self, sources: &[&Source], sink: &mut dyn Sink) -> Result<(), ImportError> {
        let mut listing = Listing::default();
        each_file(sources, sink, |source, sink| read_file(source, &mut listing, sink))
    }
}

fn read_file(source: &Source, listing: &mut Listing, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let probe = Probe::read(source)?;
    let first = probe.records().first();
    if first.is_some_and(is_state) {
        // Read with the conversation's events.
        return Ok(());
    }
    if probe.shape == Shape::Object && first.is_some_and(is_event) && probe.records().len() == 1 {
        return folder::import(source, listing, sink);
    }
    if first.is_some_and(is_event) {
        return if probe.shape == Shape::Array {
            slice::each(source, Layout::Document, sink, read)
        } else {
            lines(source, sink)
        };
    }
    slice::each(source, probe.layout(), sink, read)
}

/// Every event names its class.
fn is_event(value: &Outline) -> bool {
    let kind = value.get("kind").and_then(Outline::as_str);
    let classes = ["Event", "Observation", "Condensation", "CondensationRequest", "CondensationSummaryEvent"];
    kind.is_some_and(|kind| classes.iter().any(|class| kind.ends_with(class)))
        && value.has_all(&["id", "timestamp", "source"])
}

fn is_output(record: &Outline) -> bool {
    record.get("history").and_then(Outline::first).is_some_and(is_event)
}

/// A page of the agent server's answer.
fn is_page(record: &Outline) -> bool {
    record.get("items").and_then(Outline::first).is_some_and(is_event)
}

/// The program's state above the events of a conversation.
fn is_state(record: &Outline) -> bool {
    record.has_all(&["id", "agent", "workspace", "persistence_dir", "execution_status"])
}

/// One event a line: all of them are one run.
fn lines(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let mut joined: Option<slice::Joined> = None;
    let mut events = Events::default();
    slice::each_in_order(source, Layout::Lines, sink, |record, _| {
        joined.get_or_insert_with(|| slice::Joined::new(record)).add(record);
        events.add(record.parse()?)?;
        Ok(())
    })?;
    let Some(joined) = joined else { return Ok(()) };
    let record = joined.finish();
    Ok(record.attempt(sink, |record, sink| finish(record, events, Object::default(), None, sink))?)
}

fn read(record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let raw: &RawValue = record.parse()?;
    let mut output = Object::default();
    let list = if let Some(list) = elements(raw) {
        list
    } else {
        output = Object::parse(raw, "run")?;
        let held = ["history", "items"].into_iter().find_map(|key| output.list(key));
        held.ok_or_else(|| missing("history"))?
    };
    let mut events = Events::default();
    for (index, raw) in list.into_iter().enumerate() {
        events
            .add(raw)
            .map_err(|error| super::RecordError::new(error.code, format!("history[{index}]: {error}")))?;
    }
    finish(record, events, output, None, sink)
}

/// Fills in what the record says beside the events and hands the run on.
fn finish(
    record: &RawRecord,
    events: Events,
    mut output: Object<'_>,
    conversation: Option<Object<'_>>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let state = events.settle(&mut run);
    let mut conversation = conversation.unwrap_or_default();
    let native = conversation.text("id");
    let mut metadata = output.object("metadata");
    let mut llm = metadata.object("llm");
    llm.absorb(metadata.object("llm_config"));
    llm.absorb(conversation.object("agent").object("llm"));
    let model = llm.text("model");
    for agent in &mut run.agents {
        agent.model.clone_from(&model);
    }
    let goal = row::goal(&run);
    run.task = match output.text("instance_id") {
        Some(id) => instance::task("openhands", &id, goal),
        None => Task::from_goal(goal),
    };
    run.harness = Some(Harness { name: "openhands".to_owned(), version: metadata.text("sdk_version") });
    run.trial = output.read("attempt");
    let status = conversation.text("execution_status");
    let scored = outcome::read(&mut output, state.as_deref().or(status.as_deref()));
    run.verifier = scored.verifier.map(|name| VerifierRef { name: name.to_owned(), version: None });
    run.hidden.verifier_output = scored.output;
    run.hidden.reference = output.take("instance").map(Json::from);
    for key in conversation.keys() {
        if !["workspace", "persistence_dir"].contains(&key) {
            sink.loss(Loss::new(
                FORMAT,
                format!("base_state.{key}"),
                "state of the program, not of the run",
            ))?;
        }
    }
    run.extra
        .extend(super::value::json_object(metadata.filled_rest()).map(|rest| ("metadata".to_owned(), rest)));
    run.extra.extend(output.filled_rest());
    run.finish(scored.outcome);
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}
