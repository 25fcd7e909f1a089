//! verifiers: `traces.jsonl`, a line an episode with a trace for each agent, whose messages form a graph
//! with the tokens that each adds; and the older `results.jsonl`, a line a rollout.

mod results;
mod trace;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, Stop};
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source};

const FORMAT: &str = "verifiers";

/// Traces and results of verifiers.
pub(super) struct Verifiers;

impl Importer for Verifiers {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "episodes with `traces`, `env` and `task`, or rollouts with `prompt`, `completion` and `reward`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| is_episode(record) || is_trace(record) || results::is_row(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

fn is_episode(record: &Outline) -> bool {
    record.get("traces").is_some_and(Outline::is_array) && record.has_all(&["env", "task", "ok"])
}

fn is_trace(record: &Outline) -> bool {
    record.get("nodes").is_some_and(Outline::is_array)
        && record.has_all(&["verifiers", "task", "agent", "calls"])
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut line: Object<'_> = record.parse()?;
    let mut losses = BTreeSet::new();
    if line.get("completion").is_some() {
        let (run, native) = results::run(line, scoring, &mut losses)?;
        emit_losses(losses, sink)?;
        record.emit(sink, run, native, Vec::new(), 0)?;
        return Ok(());
    }
    let traces = match line.list("traces") {
        Some(traces) => traces,
        None if line.get("nodes").is_some() => {
            let raw: &RawValue = record.parse()?;
            line = Object::default();
            vec![raw]
        }
        None => return Err(missing("traces").into()),
    };
    let mut environment = line.object("env");
    let environment = ["name", "id"].into_iter().find_map(|key| environment.text(key));
    let episode = line.clone().text("id");
    let rest = line.rest();
    for (part, raw) in (0..).zip(traces) {
        let trace = Object::parse(raw, "traces[]")?;
        let (mut run, native) = trace::run(trace, environment.as_deref(), scoring, &mut losses)?;
        if let Some(episode) = &episode {
            run.extra.insert("episode".to_owned(), crate::json::Json::string(episode));
        }
        let said = rest.iter().filter(|(key, _)| matches!(key.as_str(), "group" | "run"));
        run.extra.extend(said.map(|(key, value)| (key.clone(), value.clone())));
        record.emit(sink, run, native, Vec::new(), part)?;
    }
    emit_losses(losses, sink)?;
    Ok(())
}
