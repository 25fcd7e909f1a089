//! ATIF, Harbor's trajectory interchange format, versions 1.4 to 1.8.
//!
//! A step becomes one message, and its observation a message of the tools right after it. What a
//! message has no place for stays in its `extra` under ATIF's names, so that
//! [`crate::exporters::atif::atif`] writes the document again. Strict readers forbid unknown keys; what
//! recoup knows beyond ATIF travels under `extra.recoup` and is read back here.
//!
//! An embedded subagent's trajectory is a run of its own.

mod metrics;
mod own;
mod step;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

pub(crate) use self::metrics::metrics;
use super::object::{Object, missing};
use super::openai_chat::{emit_losses, tools};
use super::slice::{self, RawRecord, Stop};
use super::value::{is_array, is_object};
use super::{ImportError, Importer, Outline, Probe, RecordError, Scoring, Sink, Source, harbor, row};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Agent, Harness, Outcome, Tool, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "atif";
/// The version that is written where a run names none, and not kept where a document names it.
pub(crate) const VERSION: &str = "ATIF-v1.7";
/// Subagents within subagents that are followed.
const SUBAGENT_DEPTH_MAX: usize = 16;

/// ATIF documents.
pub(super) struct Atif;

impl Importer for Atif {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "documents with `schema_version` ATIF-v1 and `steps`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            let version = record.get("schema_version").and_then(Outline::as_str);
            version.is_some_and(|version| version.starts_with("ATIF-v"))
                && record.get("steps").is_some_and(Outline::is_array)
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        if harbor::is_trials_own(source) {
            // The trial reads it, and knows its task and outcome.
            return Ok(());
        }
        let layout = Probe::read(source)?.layout();
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

/// Reads a document and the subagents embedded in it, the parent first.
fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut losses = BTreeSet::new();
    let runs = documents(record.parse()?, &record.sha256, scoring, &mut losses)?;
    emit_losses(losses, sink)?;
    for (part, (run, native)) in (0..).zip(runs) {
        record.emit(sink, run, native, Vec::new(), part)?;
    }
    Ok(())
}

/// The runs of a document: its own and those of the subagents embedded in it, the parent first, each
/// with the id it has there. `name` stands for the id of a parent that has none.
pub(super) fn documents(
    raw: &RawValue,
    name: &str,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<Vec<(Trajectory, Option<String>)>, RecordError> {
    let mut pending = vec![(raw, None::<String>, 0)];
    let mut runs = Vec::new();
    while let Some((raw, parent, depth)) = pending.pop() {
        let mut root = Object::parse(raw, "trajectory")?;
        let subagents = root.list("subagent_trajectories");
        let (mut run, native) = document(root, scoring, losses)?;
        let native = native.map(|native| match &parent {
            Some(parent) => format!("{parent}/{native}"),
            None => native,
        });
        if let Some(parent) = &parent {
            run.extra.insert("parent_trajectory".to_owned(), Json::string(parent));
        }
        if let Some(subagents) = subagents {
            let count = Json::from_foreign(&subagents.len().to_string());
            run.extra.insert("subagent_trajectories".to_owned(), count);
            if depth < SUBAGENT_DEPTH_MAX {
                let name = native.clone().unwrap_or_else(|| name.to_owned());
                pending.extend(subagents.into_iter().rev().map(|raw| (raw, Some(name.clone()), depth + 1)));
            } else {
                let reason = "subagents nested too deeply are not followed";
                losses.insert(Loss::new(FORMAT, "subagent_trajectories", reason));
            }
        }
        runs.push((run, native));
    }
    Ok(runs)
}

/// One document without its subagents, and the id it gives the run.
fn document(
    mut root: Object<'_>,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<(Trajectory, Option<String>), RecordError> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    root.take_if("schema_version", |raw| raw.get() == format!("\"{VERSION}\""));
    take_agent(root.required("agent")?, &mut run, losses)?;
    let (extra, mut own) = own::split(root.take("extra"));
    own::restore_agents(&mut own, &mut run);
    let steps = root.required::<Vec<&RawValue>>("steps")?;
    for (index, raw) in steps.into_iter().enumerate() {
        step::push(raw, index, &mut run)
            .map_err(|error| RecordError::new(error.code, format!("steps[{index}]: {error}")))?;
    }
    let native = ["trajectory_id", "session_id"].into_iter().find_map(|key| root.clone().text(key));
    run.task = row::derived_task(&run);
    let stated = stated_outcome(extra.as_ref(), scoring);
    run.extra.extend(root.rest());
    run.extra.extend(extra.map(|extra| ("extra".to_owned(), extra)));
    own::restore(&mut own, &mut run, stated);
    Ok((run, native))
}

/// ATIF has no outcome of its own; harnesses put a reward or a flag into the root's `extra`.
pub(crate) fn stated_outcome(extra: Option<&Json>, scoring: &Scoring) -> Outcome {
    extra
        .and_then(|extra| serde_json::from_str(extra.as_str()).ok())
        .map_or_else(Outcome::unknown, |extra| row::outcome(&extra, scoring))
}

fn take_agent(
    mut agent: Object<'_>,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    let name = agent.text("name").ok_or_else(|| missing("agent.name"))?;
    let version = agent.text("version");
    run.harness = Some(Harness { name: name.clone(), version });
    let model = agent.text("model_name");
    run.agents.push(Agent { name, model, system_prompt: None });
    if let Some(raw) = agent.take_if("tool_definitions", is_array) {
        // What a definition says beyond a tool's fields is kept with the definitions as a whole.
        let read = tools(raw, FORMAT, &mut BTreeSet::new());
        run.tools = read.unwrap_or_default();
        if Json::from(raw) != tool_definitions(&run.tools) {
            run.extra.insert("tool_definitions".to_owned(), raw.into());
        }
    }
    if let Some(extra) = agent.take_if("extra", is_object) {
        run.extra.insert("agent_extra".to_owned(), extra.into());
    }
    for key in agent.keys() {
        losses.insert(Loss::new(FORMAT, format!("agent.{key}"), "no field of the format"));
    }
    Ok(())
}

/// Tools as ATIF defines them, in OpenAI's form.
pub(crate) fn tool_definitions(tools: &[Tool]) -> Json {
    let definitions: Vec<serde_json::Value> = tools
        .iter()
        .map(|tool| {
            let mut function = serde_json::Map::new();
            function.insert("name".to_owned(), tool.name.as_str().into());
            if !tool.description.is_empty() {
                function.insert("description".to_owned(), tool.description.as_str().into());
            }
            if let Some(parameters) = &tool.parameters {
                function.insert("parameters".to_owned(), parameters.to_value());
            }
            let mut definition = serde_json::json!({"type": "function", "function": function});
            if let (Some(read_only), Some(members)) = (tool.read_only, definition.as_object_mut()) {
                members.insert("read_only".to_owned(), read_only.into());
            }
            definition
        })
        .collect();
    Json::from_serialize(&definitions).unwrap_or_else(|_| Json::from_foreign("[]"))
}
