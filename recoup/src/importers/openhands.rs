//! OpenHands runs (V0): the events of one run as an array, or `output.jsonl` of an evaluation, whose
//! `history` is a list of events or, in older files, of `[action, observation]` pairs.
//!
//! Every event is a node, so that positions are the file's own.

mod event;
mod model_response;
pub(super) mod outcome;

use serde_json::value::RawValue;

use self::event::Events;
use super::object::Object;
use super::slice::{self, Layout, Stop};
use super::value::elements;
use super::{ImportError, Importer, Outline, Probe, RawRecord, RecordError, Shape, Sink, Source, instance};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Budget, Harness, Node, Role, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "openhands";

/// OpenHands runs (V0): event arrays and `output.jsonl`.
pub(super) struct OpenHands;

impl Importer for OpenHands {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "an array of events that have `id`, `timestamp`, `source` and an `action` or `observation`, or \
         rows with a `history` of them"
    }

    fn detect(&self, probe: &Probe) -> bool {
        is_event_array(probe) || probe.records().iter().any(is_output)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = if is_event_array(&probe) { Layout::Document } else { probe.layout() };
        slice::each(source, layout, sink, read)
    }
}

fn is_event_array(probe: &Probe) -> bool {
    probe.shape == Shape::Array && !probe.records().is_empty() && probe.records().iter().all(is_full_event)
}

/// An event with what every event of the program's own store has.
fn is_full_event(value: &Outline) -> bool {
    is_event(value) && value.has_all(&["id", "timestamp", "source"])
}

fn is_event(value: &Outline) -> bool {
    let named = |key: &str| value.get(key).and_then(Outline::as_str).is_some();
    named("action") || named("observation")
}

/// A record of an evaluation: its history holds events, bare or in pairs.
fn is_output(record: &Outline) -> bool {
    let first = record.get("history").and_then(Outline::first);
    let is_history = first.is_some_and(|first| is_event(first) || first.first().is_some_and(is_event));
    is_history && record.get("trajectory").is_none()
}

fn read(record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let raw: &RawValue = record.parse()?;
    let (output, events) = if let Some(events) = elements(raw) {
        (Object::default(), events)
    } else {
        let mut output = Object::parse(raw, "run")?;
        let history = output.list("history");
        // A run that failed before its first event has `null` there.
        let none = (output.has("history") && output.get("history").is_none()).then(Vec::new);
        let missing = || RecordError::new("missing-field", "expected an array `history`");
        (output, history.or(none).ok_or_else(missing)?)
    };
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut reader = Events::default();
    for event in events {
        match elements(event) {
            Some(pair) => {
                for event in pair {
                    run.push(reader.node(event)?);
                }
            }
            None => {
                run.push(reader.node(event)?);
            }
        }
    }
    if run.nodes.iter().any(|node| node.occurrence.call.is_some()) {
        let reason = "model, finish reason, usage and calls are kept, the provider's envelope is not";
        sink.loss(Loss::new(FORMAT, "tool_call_metadata.model_response", reason))?;
    }
    describe(&mut run, reader, output);
    record.emit(sink, run, None, Vec::new(), 0)?;
    Ok(())
}

/// Fills in what the record says of the run beside its events.
fn describe(run: &mut Trajectory, reader: Events, mut output: Object) {
    let instruction = output.text("instruction");
    let asked = run.nodes.iter().find(|node| node.role == Role::User).map(Node::text);
    let goal = asked.or(instruction).unwrap_or_default();
    run.task = match (output.text("instance_id"), issue(&output)) {
        (Some(id), _) => instance::task(FORMAT, &id, goal),
        (None, Some((repository, number))) => {
            let mut task = Task::named(format!("{FORMAT}/{repository}#{number}"), goal);
            task.group_keys = vec![format!("repository/{repository}")];
            task
        }
        (None, None) => Task::from_goal(goal),
    };
    let metadata = output.get("metadata").and_then(Object::of);
    let mut metadata = metadata.unwrap_or_default();
    let model = metadata.object("llm_config").text("model").or(reader.model);
    for agent in &mut run.agents {
        agent.model.clone_from(&model);
    }
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: metadata.text("git_commit") });
    if let Some(steps) = metadata.read("max_iterations") {
        run.budget = Some(Budget { steps: Some(steps), ..Budget::default() });
    }
    run.tools = reader.tools;
    run.media = reader.media;
    run.hidden.reference = output.take("instance").map(Json::from);
    let scored = outcome::read(&mut output, reader.last_state.as_deref());
    run.hidden.verifier_output = scored.output;
    run.verifier = scored.verifier.map(|name| VerifierRef { name: name.to_owned(), version: None });
    run.finish(scored.outcome);
    run.extra = output.filled_rest();
}

/// Repository and number of the issue that a resolver's run was given.
fn issue(output: &Object) -> Option<(String, String)> {
    let mut issue = Object::of(output.get("issue")?)?;
    let (owner, name) = issue.text("owner").zip(issue.text("repo"))?;
    Some((format!("{owner}/{name}"), issue.id("number")?))
}
