//! AgentRx ground truth: which steps of a run failed, which of them was the root cause, and why. The
//! runs themselves stand in other files, so every label waits for its run.
//!
//! Steps count from 1, and a labelled step may be the user's. Spellings vary within the files
//! ("WebSurfer", "Websurfer"); a label keeps its own.

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::slice::{self, RawRecord, Stop};
use super::value::json_object;
use super::{Event, ImportError, Importer, LooseLabel, Outline, Probe, Sink, Source};
use crate::json::Json;
use crate::verdict::ReferenceLabel;

const FORMAT: &str = "agentrx";

/// Label files of AgentRx.
pub(super) struct AgentRx;

impl Importer for AgentRx {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "labels with `trajectory_id`, `root_cause` and `failures`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            record.has_all(&["trajectory_id", "root_cause"])
                && record.get("failures").is_some_and(Outline::is_array)
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        slice::each(source, Probe::read(source)?.layout(), sink, read)
    }
}

/// One label per failure: its own members, whether it is the root cause, and the run's summary.
fn read(record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let run = row.id("trajectory_id").ok_or_else(|| missing("trajectory_id"))?;
    let failures: Vec<&RawValue> = row.required("failures")?;
    let root: Object<'_> = row.optional("root_cause")?.unwrap_or_default();
    let rest: Vec<(String, Json)> = row.rest().into_iter().collect();
    for raw in failures {
        let label = label(raw, root.clone(), &rest)?;
        sink.event(Event::Label(LooseLabel { run: run.clone(), label }))?;
    }
    Ok(())
}

fn label(raw: &RawValue, mut root: Object<'_>, rest: &[(String, Json)]) -> Result<ReferenceLabel, Stop> {
    let failure = Object::parse(raw, "failures[]")?;
    let mut named = failure.clone();
    let is_root = match (named.id("failure_id"), root.id("failure_id")) {
        (Some(failure), Some(root)) => failure == root,
        _ => false,
    };
    let agent = named.text("failed_agent");
    let reason = named.text("step_reason");
    let mut native = failure.rest();
    native.insert("is_root_cause".to_owned(), Json::from_foreign(if is_root { "true" } else { "false" }));
    if is_root {
        native.extend(root.rest());
    }
    native.extend(rest.iter().cloned());
    Ok(ReferenceLabel {
        source: FORMAT.to_owned(),
        index_base: 1,
        native: json_object(native).unwrap_or_else(|| Json::from_foreign("{}")),
        node: None,
        agent,
        reason,
    })
}
