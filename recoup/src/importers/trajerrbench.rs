//! TrajErrBench and the other data sets in TrajDebug's unified form: `{messages, metadata}`, where each
//! message says its step (its index, from 0) and the metadata names the step that a person found
//! decisive.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::dialect::{Aside, Dialect, messages};
use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, Stop};
use super::value::{elements, json_object};
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source, row};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Outcome, Role, Trajectory};
use crate::verdict::ReferenceLabel;

const FORMAT: &str = "trajerrbench";

/// Unified trajectories.
pub(super) struct TrajErrBench;

impl Importer for TrajErrBench {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "runs with `messages` whose `metadata` has an `annotation` with `critical_error_step`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            record.get("messages").is_some_and(Outline::is_array)
                && record.get("metadata").is_some_and(|metadata| {
                    metadata.has_all(&["dataset", "task_id"])
                        && metadata
                            .get("annotation")
                            .is_some_and(|annotation| annotation.get("critical_error_step").is_some())
                })
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let raw: &RawValue = row.required("messages")?;
    let mut metadata: Object<'_> = row.required("metadata")?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut aside = Aside::default();
    for node in messages(raw, Some(Dialect::Chat), Role::User, &mut aside)? {
        run.push(node);
    }
    let mut losses = BTreeSet::new();
    aside.settle(&mut run, &mut losses);
    let dataset = metadata.text("dataset").ok_or_else(|| missing("metadata.dataset"))?;
    let id = metadata.id("task_id").ok_or_else(|| missing("metadata.task_id"))?;
    let goal = metadata.text("task_description").filter(|goal| !goal.is_empty());
    run.task = Task::named(format!("{FORMAT}/{dataset}/{id}"), goal.unwrap_or_else(|| row::goal(&run)));
    let reward = metadata.read("reward");
    let outcome = reward.map_or_else(Outcome::unknown, |reward| {
        Outcome::from_score(reward, scoring.success_at.unwrap_or(1.0), "reward")
    });
    let label = metadata.take("annotation").and_then(|annotation| label(annotation, raw, run.nodes.len()));
    // The original's labels among other things; neither a judge nor a view may see them.
    run.hidden.reference = metadata.take("extra").filter(|raw| raw.get() != "{}").map(Json::from);
    run.extra.insert("dataset".to_owned(), Json::string(&dataset));
    run.extra.extend(metadata.rest());
    run.extra.extend(row.rest());
    run.finish(outcome);
    emit_losses(losses, sink)?;
    record.emit(sink, run, Some(format!("{dataset}/{id}")), label.into_iter().collect(), 0)?;
    Ok(())
}

/// The label, unless the annotation names no step: then the run succeeded.
fn label(annotation: &RawValue, messages: &RawValue, count: usize) -> Option<ReferenceLabel> {
    let mut named = Object::of(annotation)?;
    let native = json_object(named.clone().rest())?;
    let step: usize = named.read("critical_error_step")?;
    let says = |message: &&RawValue| Object::of(message)?.read::<usize>("step");
    let said = elements(messages)?.iter().position(|message| says(message) == Some(step));
    Some(ReferenceLabel {
        source: FORMAT.to_owned(),
        index_base: 0,
        native,
        node: said.or(Some(step)).filter(|node| *node < count),
        agent: None,
        reason: named.text("human_rationale"),
    })
}
