//! terminal-bench: `results.json` of a run, an object with a list of trials, and of a trial, that trial
//! alone. The turns lie beside the trial, each with its prompt and its response; the terminal's own
//! recording is too large to be anybody's words and stays a reference.
//!
//! A trial stands in both files, and in archives of several runs once more: its own id keeps it one.

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::slice::{self, RawRecord, Stop};
use super::value::value;
use super::{ImportError, Importer, Layout, Outline, Probe, Shape, Sink, SinkError, Source};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Call, Harness, Node, Outcome, Part, Role, TerminationKind, Trajectory, Usage};
use crate::warning::Loss;

const FORMAT: &str = "terminal-bench";
/// Turns of one trial that are looked for.
const EPISODES_MAX: usize = 10_000;

/// Results of terminal-bench.
pub(super) struct TerminalBench;

impl Importer for TerminalBench {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "trials with `task_id`, `is_resolved` and `failure_mode`, alone or under `results`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        is_run(probe) || probe.records().iter().any(is_trial)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = if is_run(&probe) { Layout::Elements(&["results"]) } else { probe.layout() };
        slice::each(source, layout, sink, |record, sink| read(source, record, sink))
    }
}

fn is_trial(record: &Outline) -> bool {
    record.has_all(&["task_id", "is_resolved", "failure_mode"])
        && ["trial_name", "parser_results", "recording_path"].iter().any(|key| record.get(key).is_some())
}

fn is_run(probe: &Probe) -> bool {
    let first = probe.values.first().and_then(|value| value.get("results")?.first());
    probe.shape == Shape::Object && first.is_some_and(is_trial)
}

fn read(source: &Source, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut trial: Object<'_> = record.parse()?;
    let task = trial.id("task_id").ok_or_else(|| missing("task_id"))?;
    let name = trial.text("trial_name");
    // The two versions of the schema name the id differently.
    let native = ["uuid", "id"].into_iter().find_map(|key| trial.text(key)).or_else(|| name.clone());
    let instruction = trial.text("instruction").unwrap_or_default();
    let mut run = Trajectory::new(FORMAT, Task::named(format!("{FORMAT}/{task}"), instruction.clone()));
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
    let folders = ["".to_owned(), format!("{task}/{}/", name.as_deref().unwrap_or_default())];
    if !folders.iter().any(|folder| push_episodes(source, folder, &mut run)) {
        if !instruction.is_empty() {
            run.push(Node::new(Role::User, "user", vec![Part::text(instruction)]));
        }
        let reason = "no `agent-logs` beside the trial; only its task and outcome are known";
        sink.loss(Loss::new(FORMAT, "agent-logs", reason))?;
    }
    refer_to_log(source, &folders, &mut run, sink)?;
    let tokens = ["total_input_tokens", "total_output_tokens"].map(|key| trial.read::<u64>(key));
    if let [Some(input), Some(output)] = tokens
        && let [only] = steps(&mut run).as_mut_slice()
    {
        let usage = Usage { input, output, cached: 0, reasoning: 0 };
        only.occurrence.call = Some(Box::new(Call { usage: Some(usage), ..Call::default() }));
    } else {
        let named = ["total_input_tokens", "total_output_tokens"].into_iter().zip(tokens);
        run.extra.extend(named.filter_map(|(key, count)| Some((key.to_owned(), number(count?)))));
    }
    let outcome = outcome(&mut trial);
    run.hidden.verifier_output = trial.take("parser_results").map(Json::from);
    run.verifier = Some(VerifierRef { name: "tests".to_owned(), version: None });
    run.extra.extend(name.map(|name| ("trial_name".to_owned(), Json::string(&name))));
    run.extra.extend(trial.rest());
    run.finish(outcome);
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

fn number(count: u64) -> Json {
    Json::from_foreign(&count.to_string())
}

fn steps(run: &mut Trajectory) -> Vec<&mut Node> {
    run.nodes.iter_mut().filter(|node| node.occurrence.sampled).collect()
}

/// Appends each turn's prompt and response; false where there are none.
fn push_episodes(source: &Source, folder: &str, run: &mut Trajectory) -> bool {
    let read = |name: &str| {
        let file = source.sibling(name).ok()?;
        let bytes = file.read_all(source.options().record_bytes_max).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    for number in 0..EPISODES_MAX {
        let episode = format!("{folder}agent-logs/episode-{number}");
        let prompt = read(&format!("{episode}/prompt.txt"));
        let response = read(&format!("{episode}/response.txt"));
        if prompt.is_none() && response.is_none() {
            return number > 0;
        }
        if let Some(prompt) = prompt {
            let (role, agent) = if number == 0 { (Role::User, "user") } else { (Role::Tool, "terminal") };
            run.push(Node::new(role, agent, vec![Part::text(prompt)]));
        }
        if let Some(response) = response {
            let mut node = Node::new(Role::Assistant, "assistant", vec![Part::text(response)]);
            node.occurrence.sampled = true;
            run.push(node);
        }
    }
    true
}

/// Notes where the recording of the terminal is.
fn refer_to_log(
    source: &Source,
    folders: &[String],
    run: &mut Trajectory,
    sink: &mut dyn Sink,
) -> Result<(), SinkError> {
    let logs = folders.iter().map(|folder| format!("{folder}sessions/agent.log"));
    if logs.into_iter().any(|name| source.has_sibling(&name)) {
        run.extra.insert("agent_log".to_owned(), Json::string("sessions/agent.log"));
        let reason = "the recording of the terminal is referred to, not read";
        sink.loss(Loss::new(FORMAT, "sessions/agent.log", reason))?;
    }
    Ok(())
}

/// Takes the flag, which is null where the tests never ran, and how the trial ended. A trial may be
/// resolved and have run out of time all the same: the tests decide.
fn outcome(trial: &mut Object<'_>) -> Outcome {
    let resolved = trial.take("is_resolved").and_then(value::<bool>);
    let outcome = resolved.map_or_else(Outcome::unknown, |passed| Outcome::from_flag(passed, "is_resolved"));
    match trial.take("failure_mode").and_then(|raw: &RawValue| value::<String>(raw)) {
        Some(mode) => {
            let kind = ended(&mode, resolved == Some(true));
            kind.map_or(outcome.clone(), |kind| outcome.ended(kind, mode))
        }
        None => outcome,
    }
}

fn ended(mode: &str, is_resolved: bool) -> Option<TerminationKind> {
    Some(match mode {
        "agent_timeout" => TerminationKind::Timeout,
        "context_length_exceeded" => TerminationKind::ContextOverflow,
        "output_length_exceeded" => TerminationKind::BudgetExceeded,
        "fatal_llm_parse_error" => TerminationKind::TooManyErrors,
        "unknown_agent_error" => TerminationKind::AgentError,
        "test_timeout" | "parse_error" | "agent_installation_failed" | "unknown" => {
            TerminationKind::InfrastructureError
        }
        "none" | "unset" => is_resolved.then_some(TerminationKind::Completed)?,
        _ => TerminationKind::Other,
    })
}

#[cfg(test)]
mod tests {
    use super::outcome;
    use crate::importers::object::Object;
    use crate::trajectory::{Status, TerminationKind};

    #[test]
    fn the_tests_decide_however_the_trial_ended() {
        for (text, status, kind) in [
            (
                r#"{"is_resolved":true,"failure_mode":"agent_timeout"}"#,
                Status::Success,
                Some(TerminationKind::Timeout),
            ),
            (
                r#"{"is_resolved":true,"failure_mode":"none"}"#,
                Status::Success,
                Some(TerminationKind::Completed),
            ),
            (r#"{"is_resolved":false,"failure_mode":"unset"}"#, Status::Failure, None),
            (
                r#"{"is_resolved":null,"failure_mode":"unknown_agent_error"}"#,
                Status::Unknown,
                Some(TerminationKind::AgentError),
            ),
            (r#"{"is_resolved":"yes"}"#, Status::Unknown, None),
        ] {
            let outcome = outcome(&mut serde_json::from_str::<Object<'_>>(text).unwrap());
            assert_eq!((outcome.status, outcome.termination_kind()), (status, kind), "{text}");
        }
    }
}
