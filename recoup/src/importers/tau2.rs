//! tau2-bench results: conversations between an agent and a simulated user who has tools of its own.
//!
//! One file holds `info`, `tasks` and `simulations`; or a directory holds `results.json` with the
//! first two and `simulations/*.json` with a run each. A run's file read alone gives the run without
//! what its experiment knew of it. Voice runs come as `ticks`; published ones have lost their text
//! and are valid runs with nothing to diagnose.

mod experiment;
mod message;
mod ticks;

use std::collections::BTreeSet;

use self::experiment::Experiment;
use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, Stop};
use super::value::{is_object, json_object};
use super::{ImportError, Importer, Layout, Outline, Probe, Scoring, Sink, Source, row};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Outcome, TerminationKind, Trajectory};

const FORMAT: &str = "tau2";

/// Results of tau2-bench.
pub(super) struct Tau2;

impl Importer for Tau2 {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "an experiment with `info`, `tasks` and `simulations`, or runs with `task_id`, \
         `termination_reason` and `messages`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        is_experiment(probe) || probe.records().iter().any(is_simulation)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let scoring = &source.options().scoring;
        if is_experiment(&probe) {
            let header = match slice::header(source, &["simulations"]) {
                Ok(header) => header,
                // The directory form: its runs are files of their own and read this one.
                Err(ImportError::Unreadable { code: "missing-field", .. }) => return Ok(()),
                // A file cut off among its runs: the complete ones are runs like any other.
                Err(ImportError::Unreadable { code: "truncated", .. }) => {
                    slice::header_before_cut(source, &["simulations"])?
                }
                Err(error) => return Err(error),
            };
            let experiment = Experiment::of(Some(&header));
            return slice::each(source, Layout::Elements(&["simulations"]), sink, |record, sink| {
                read(record, &experiment, scoring, sink)
            });
        }
        let beside = source.sibling_above(1, "results.json").ok();
        let header = beside.as_ref().and_then(|beside| slice::document(beside, &mut Vec::new()).ok()?);
        let experiment = Experiment::of(header.as_ref());
        slice::each(source, probe.layout(), sink, |record, sink| read(record, &experiment, scoring, sink))
    }
}

/// A file with what the runs of an experiment share, and perhaps the runs.
fn is_experiment(probe: &Probe) -> bool {
    probe.values.first().is_some_and(|value| {
        value.get("tasks").is_some_and(Outline::is_array)
            && value.get("info").is_some_and(|info| {
                info.has_all(&["num_trials", "agent_info"]) || info.get("environment_info").is_some()
            })
    })
}

/// One run.
fn is_simulation(outline: &Outline) -> bool {
    outline.has_all(&["id", "task_id", "termination_reason"])
        && ["messages", "ticks"].iter().any(|key| outline.get(key).is_some_and(Outline::is_array))
}

fn read(
    record: &RawRecord,
    experiment: &Experiment<'_>,
    scoring: &Scoring,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut losses = BTreeSet::new();
    let native = row.id("id").ok_or_else(|| missing("id"))?;
    let task_id = row.id("task_id").ok_or_else(|| missing("task_id"))?;
    let ended = row.text("termination_reason").unwrap_or_default();
    for raw in row.list("messages").unwrap_or_default() {
        message::push(raw, &mut run, &mut losses)?;
    }
    if let Some(ticks) = row.list("ticks") {
        ticks::read(&ticks, &mut run, &mut losses)?;
    }
    let reward_info = row.take_if("reward_info", is_object);
    run.hidden.verifier_output = reward_info.map(Json::from);
    // Opinions of a model that read the run; no judge of ours may lean on them.
    let reviews: Vec<(&str, Json)> = ["review", "user_only_review", "hallucination_check"]
        .into_iter()
        .filter_map(|key| Some((key, row.take(key)?.into())))
        .collect();
    run.hidden.reference = json_object(reviews);
    run.task = Task::named(experiment.task_key(&task_id), row::goal(&run));
    run.trial = row.read("trial");
    run.seed = row.read("seed");
    run.verifier = reward_info.map(|_| VerifierRef { name: "tau2 reward".to_owned(), version: None });
    let policy = row.text("policy");
    experiment.describe(&mut run, &task_id, policy.as_deref(), &mut losses);
    let reward = reward_info.and_then(|raw| Object::of(raw)?.read("reward"));
    let outcome = outcome(reward, &ended, scoring);
    run.extra.extend(row.rest());
    run.finish(outcome);
    emit_losses(losses, sink)?;
    record.emit(sink, run, Some(native), Vec::new(), 0)?;
    Ok(())
}

fn outcome(reward: Option<f64>, ended: &str, scoring: &Scoring) -> Outcome {
    let kind = termination(ended);
    let outcome = match reward {
        // The harness writes 0 for a run that it could not finish: no scorer ran.
        Some(reward) if kind == TerminationKind::InfrastructureError => {
            let evidence = format!("reward {reward} is a placeholder: the run ended by {ended}");
            Outcome { evidence, ..Outcome::unknown() }
        }
        Some(reward) => scoring.outcome(&[("reward".to_owned(), reward)], 1.0),
        None => Outcome::unknown(),
    };
    if ended.is_empty() { outcome } else { outcome.ended(kind, ended) }
}

fn termination(word: &str) -> TerminationKind {
    match word {
        "agent_stop" => TerminationKind::Completed,
        "user_stop" => TerminationKind::UserStop,
        "max_steps" => TerminationKind::StepLimit,
        "timeout" => TerminationKind::Timeout,
        "too_many_errors" => TerminationKind::TooManyErrors,
        "agent_error" => TerminationKind::AgentError,
        "user_error" => TerminationKind::UserError,
        "context_window_exceeded" => TerminationKind::ContextOverflow,
        "infrastructure_error" | "unexpected_error" => TerminationKind::InfrastructureError,
        _ => TerminationKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::outcome;
    use crate::importers::Scoring;
    use crate::trajectory::{Status, TerminationKind};

    #[test]
    fn a_broken_harness_is_no_failed_run() {
        let broken = outcome(Some(0.0), "infrastructure_error", &Scoring::default());
        assert_eq!(broken.status, Status::Unknown);
        assert_eq!(broken.termination_kind(), Some(TerminationKind::InfrastructureError));
        assert_eq!(outcome(Some(0.0), "max_steps", &Scoring::default()).status, Status::Failure);
        assert_eq!(outcome(None, "user_stop", &Scoring::default()).status, Status::Unknown);
    }
}
