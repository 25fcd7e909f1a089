//! AgentErrorBench: failed runs in one folder (`{messages, metadata}`, the file's name is the run's id),
//! and in another the labels, whose runs they name.
//!
//! A label counts the agent's turns from 1. The messages alternate, the user's first, in every run of
//! the set, so its message is known without the run.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::dialect::{Aside, Dialect, messages};
use super::object::{Object, missing, wrong_type};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, Stop};
use super::value::json_object;
use super::{Event, ImportError, Importer, Layout, LooseLabel, Outline, Probe, Sink, Source, row};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Outcome, Role, Trajectory};
use crate::verdict::ReferenceLabel;

const FORMAT: &str = "agenterrorbench";

/// Runs and labels of AgentErrorBench.
pub(super) struct AgentErrorBench;

impl Importer for AgentErrorBench {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "runs with `messages` and `metadata`, or labels that name a run and its critical failure"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| is_label(record) || is_run(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        if probe.records().iter().any(is_label) {
            return slice::each(source, probe.layout(), sink, read_label);
        }
        // Of several runs in one file none is named by it.
        let stem = source.stem();
        let native = (probe.layout() == Layout::Document).then(|| stem.to_owned());
        slice::each(source, probe.layout(), sink, |record, sink| read_run(record, native.clone(), sink))
    }
}

fn is_label(record: &Outline) -> bool {
    record.has_all(&["trajectory_id", "critical_failure_step", "critical_failure_module"])
}

fn is_run(record: &Outline) -> bool {
    record.get("messages").is_some_and(Outline::is_array)
        && record
            .get("metadata")
            .is_some_and(|metadata| metadata.has_all(&["batch_idx", "env_id", "won", "environment"]))
}

fn read_run(record: &RawRecord, native: Option<String>, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut file: Object<'_> = record.parse()?;
    let mut metadata: Object<'_> = file.required("metadata")?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let (mut aside, mut losses) = (Aside::default(), BTreeSet::new());
    for node in messages(file.required("messages")?, Some(Dialect::Chat), Role::User, &mut aside)? {
        run.push(node);
    }
    aside.settle(&mut run, &mut losses);
    let environment = metadata.text("environment").unwrap_or_default();
    let task = ["gamefile", "pid"].into_iter().find_map(|key| metadata.id(key));
    run.task = match task {
        Some(task) => Task::named(format!("{environment}/{task}"), row::goal(&run)),
        None => row::derived_task(&run),
    };
    let model = metadata.text("model");
    for agent in &mut run.agents {
        agent.model.clone_from(&model);
    }
    let won: Option<bool> = metadata.read("won");
    run.extra.insert("environment".to_owned(), Json::string(&environment));
    run.extra.extend(metadata.rest());
    run.extra.extend(file.rest());
    run.finish(won.map_or_else(Outcome::unknown, |won| Outcome::from_flag(won, "won")));
    emit_losses(losses, sink)?;
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

fn read_label(record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let native = row.clone();
    let run = row.id("trajectory_id").ok_or_else(|| missing("trajectory_id"))?;
    let turn: u64 = row.required("critical_failure_step")?;
    let message = turn.checked_sub(1).map(|turn| turn.saturating_mul(2).saturating_add(1));
    let message = message.ok_or_else(|| wrong_type("critical_failure_step", "counted from 1"))?;
    let module = row.text("critical_failure_module").unwrap_or_default();
    let notes = row.list("step_annotations").unwrap_or_default();
    let reason = notes.iter().find_map(|raw| reason(raw, turn, &module));
    let mut native = native.rest();
    native.insert("step".to_owned(), Json::from_foreign(&message.to_string()));
    let label = ReferenceLabel {
        source: FORMAT.to_owned(),
        index_base: 0,
        native: json_object(native).unwrap_or_else(|| Json::from_foreign("{}")),
        node: None,
        agent: None,
        reason,
    };
    sink.event(Event::Label(LooseLabel { run, label }))?;
    Ok(())
}

/// What an annotation of the turn says of the module: `{step, <module>: {failure_type, reasoning}}`.
fn reason(raw: &RawValue, turn: u64, module: &str) -> Option<String> {
    let mut note = Object::of(raw)?;
    if note.read::<u64>("step") != Some(turn) {
        return None;
    }
    note.object(module).text("reasoning").filter(|reason| !reason.trim().is_empty())
}
