//! Harbor job folders: each trial has a folder with `result.json` (task, agent, rewards, exceptions) and
//! the agent's trajectory in ATIF under `agent/`, or under `steps/<step>/agent/` where a task has several.
//!
//! The trial is the run: it lends the trajectory its outcome, and the trajectory is not read again as a
//! file of its own.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, Stop};
use super::value::{is_object, json_object};
use super::{Event, ImportError, Importer, Outline, Probe, RecordError, Scoring, Sink, Source, atif};
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Agent, Harness, Outcome, TerminationKind, Trajectory};
use crate::warning::{Loss, Quarantine};

const FORMAT: &str = "harbor";
/// A trial's own file, and the agent's beneath its folder.
const RESULT: &str = "result.json";
const TRAJECTORY: &str = "agent/trajectory.json";
/// What every trial's result says.
const MEMBERS: [&str; 4] = ["task_name", "trial_name", "task_checksum", "agent_info"];
/// Bytes of a result that is only asked what it is.
const RESULT_BYTES_MAX: u64 = 16 << 20;

/// Trials of Harbor.
pub(super) struct Harbor;

impl Importer for Harbor {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "results of trials with `trial_name`, `task_name` and `agent_info`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(is_trial)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        slice::each(source, layout, sink, |record, sink| read(source, record, sink))
    }
}

fn is_trial(record: &Outline) -> bool {
    record.has_all(&MEMBERS)
}

/// Whether a trajectory belongs to a trial, which reads it.
pub(super) fn is_trials_own(source: &Source) -> bool {
    let folders = source.folder_names();
    let levels = match folders.as_slice() {
        [agent, _, steps, ..] if agent == "agent" && steps == "steps" => 3,
        [agent, ..] if agent == "agent" => 1,
        _ => return false,
    };
    let Ok(result) = source.sibling_above(levels, RESULT) else { return false };
    let Ok(bytes) = result.read_all(RESULT_BYTES_MAX) else { return false };
    Probe::of(RESULT, bytes, true).values.first().is_some_and(is_trial)
}

/// One trajectory of a trial: that of the trial, or of one of its steps.
struct Attempt<'a> {
    id: Option<String>,
    path: String,
    number: u64,
    trial: Object<'a>,
    verdict: Object<'a>,
    exception: Object<'a>,
}

fn read(source: &Source, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut trial: Object<'_> = record.parse()?;
    let id = ["id", "trial_name"].into_iter().find_map(|key| trial.clone().text(key));
    let mut losses = BTreeSet::new();
    let steps = trial.list("step_results").unwrap_or_default();
    let verdict = trial.object("verifier_result");
    let exception = trial.object("exception_info");
    let whole = Attempt { id, path: TRAJECTORY.to_owned(), number: 0, trial, verdict, exception };
    if steps.is_empty() {
        emit(source, record, whole, &mut losses, sink)?;
    } else {
        for (number, raw) in (0..).zip(steps) {
            let mut step = Object::parse(raw, "step_results[]")?;
            let name = step.text("step_name").ok_or_else(|| missing("step_name"))?;
            let mut exception = step.object("exception_info");
            exception.absorb(whole.exception.clone());
            let attempt = Attempt {
                id: whole.id.as_ref().map(|id| format!("{id}/{name}")),
                path: format!("steps/{name}/{TRAJECTORY}"),
                number,
                verdict: step.object("verifier_result"),
                exception,
                trial: whole.trial.clone(),
            };
            emit(source, record, attempt, &mut losses, sink)?;
        }
    }
    emit_losses(losses, sink)?;
    Ok(())
}

/// The runs of a trajectory's file.
fn trajectories(
    file: &Source,
    sha256: &str,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<Vec<(Trajectory, Option<String>)>, RecordError> {
    let bytes = file.read_all(file.options().record_bytes_max);
    let bytes = bytes.map_err(|error| RecordError::new("unreadable", error.to_string()))?;
    atif::documents(RawRecord::whole(file, bytes).parse::<&RawValue>()?, sha256, scoring, losses)
}

/// Reads an attempt's trajectory and hands it on with what the trial says; an empty run where there is
/// none that can be read.
fn emit(
    source: &Source,
    record: &RawRecord,
    attempt: Attempt<'_>,
    losses: &mut BTreeSet<Loss>,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let Attempt { id, path, number, mut trial, verdict, exception } = attempt;
    let scoring = &source.options().scoring;
    let mut runs = Vec::new();
    if let Ok(file) = source.sibling(&path) {
        match trajectories(&file, &record.sha256, scoring, losses) {
            Ok(read) => runs = read,
            Err(RecordError { code, reason }) => sink.event(Event::Quarantine(Quarantine {
                uri: file.uri().to_owned(),
                line: None,
                span: None,
                code: code.to_owned(),
                reason,
            }))?,
        }
    } else {
        let reason = "the trial has no ATIF trajectory; only its task and outcome are known";
        losses.insert(Loss::new(FORMAT, TRAJECTORY, reason));
    }
    if runs.is_empty() {
        runs.push((Trajectory::new(FORMAT, Task::from_goal("")), None));
    }
    let task = trial.text("task_name").ok_or_else(|| missing("task_name"))?;
    let outcome = outcome(verdict.clone(), exception.clone(), scoring);
    let agent = trial.object("agent_info");
    let judged = [("verifier_result", verdict), ("exception_info", exception)];
    let judged = judged.into_iter().filter_map(|(key, object)| Some((key, json_object(object.rest())?)));
    let judged = json_object(judged);
    let rest = json_object(trial.filled_rest());
    for (index, (mut run, native)) in (0..).zip(runs) {
        FORMAT.clone_into(&mut run.source.format);
        let goal = run.task.goal.clone();
        run.task = Task::named(task.clone(), goal);
        let native = match (&id, index) {
            (Some(id), 0) => Some(id.clone()),
            (Some(id), _) => Some(format!("{id}/{}", native.unwrap_or_else(|| index.to_string()))),
            (None, _) => native,
        };
        if index == 0 {
            if run.harness.is_none() {
                describe(agent.clone(), &mut run);
            }
            run.verifier = Some(VerifierRef { name: FORMAT.to_owned(), version: None });
            run.hidden.verifier_output.clone_from(&judged);
            run.extra.extend(rest.clone().map(|trial| ("trial".to_owned(), trial)));
            let end = run.nodes.len().checked_sub(1);
            run.finish_tree(end, outcome.clone());
        }
        record.emit(sink, run, native, Vec::new(), number << 10 | index)?;
    }
    Ok(())
}

/// The agent that a trial names, for a run without a trajectory.
fn describe(mut agent: Object<'_>, run: &mut Trajectory) {
    let Some(name) = agent.text("name") else { return };
    let mut model = agent.object("model_info");
    let model = model.text("name");
    run.harness = Some(Harness { name: name.clone(), version: agent.text("version") });
    run.agents.push(Agent { name, model, system_prompt: None });
}

/// The verdict is of the only reward, or of the one chosen; an exception says how the trial ended.
fn outcome(mut verdict: Object<'_>, mut exception: Object<'_>, scoring: &Scoring) -> Outcome {
    let rewards = verdict.take_if("rewards", is_object).and_then(Object::of).unwrap_or_default();
    let rewards: Vec<(String, f64)> = rewards
        .rest()
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_str().parse().ok()?)))
        .collect();
    let outcome = scoring.outcome(&rewards, 1.0);
    match exception.text("exception_type") {
        Some(kind) => {
            let ended = ended(&kind);
            let said = exception.text("exception_message").unwrap_or_default();
            outcome.ended(ended, format!("{kind}: {said}"))
        }
        None => outcome,
    }
}

fn ended(exception: &str) -> TerminationKind {
    match exception {
        "AgentTimeoutError" => TerminationKind::Timeout,
        "ContextLengthExceededError" => TerminationKind::ContextOverflow,
        "OutputLengthExceededError" => TerminationKind::BudgetExceeded,
        "NonZeroAgentExitCodeError" => TerminationKind::AgentError,
        "CancelledError" | "KeyboardInterrupt" => TerminationKind::Cancelled,
        _ => TerminationKind::InfrastructureError,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::Arc;

    use super::{Harbor, TRAJECTORY};
    use crate::importers::{Event, Importer as _, Source};
    use crate::trajectory::Status;

    #[test]
    fn a_trajectory_that_was_cut_off_leaves_the_outcome() {
        let folder = tempfile::tempdir().unwrap();
        let result = r#"{"task_name":"t","trial_name":"t__1","task_checksum":"c","agent_info":{"name":"a"},
            "verifier_result":{"rewards":{"reward":1.0}}}"#;
        fs::create_dir(folder.path().join("agent")).unwrap();
        fs::write(folder.path().join("result.json"), result).unwrap();
        fs::write(folder.path().join(TRAJECTORY), r#"{"schema_version":"ATIF-v1.4","steps":["#).unwrap();
        let path = folder.path().join("result.json");
        let root = Some(folder.path().to_path_buf());
        let source = Source::from_path("t__1/result.json".to_owned(), path, root, Arc::default());
        let mut events: Vec<Event> = Vec::new();
        Harbor.import(&source, &mut events).unwrap();
        let (mut outcomes, mut broken) = (Vec::new(), Vec::new());
        for event in events {
            match event {
                Event::Trajectory(run) => outcomes.push(run.head.outcome().status),
                Event::Quarantine(entry) => broken.push((entry.uri, entry.code)),
                _ => {}
            }
        }
        assert_eq!(outcomes, [Status::Success]);
        assert_eq!(broken, [(format!("t__1/{TRAJECTORY}"), "truncated".to_owned())]);
    }
}
