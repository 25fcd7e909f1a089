//! tau-bench results: an array of runs, each with the chat messages between an agent and a simulated
//! user, the task with its gold actions, and the reward.
//!
//! The file names no run (`trial` and `task_id` repeat over files), so a run is known by its record.
//! Call ids repeat within a run; calls and results stay in their order and nothing is keyed by id.

use std::collections::BTreeSet;

use super::dialect::push_messages;
use super::object::{Object, missing};
use super::openai_chat::{emit_losses, is_conversation};
use super::slice::{self, RawRecord, Stop};
use super::value::json_object;
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source, row};
use crate::json::Json;
use crate::task::{EnvironmentRef, Task, VerifierRef};
use crate::trajectory::{Harness, Outcome, Role, TerminationKind, Trajectory};

const FORMAT: &str = "tau-bench";
/// What the simulated user says to end the conversation.
const STOP_WORD: &str = "###STOP###";
/// The tool that hands the user to a person and ends the episode.
const TRANSFER: &str = "transfer_to_human_agents";

/// Result files of tau-bench.
pub(super) struct TauBench;

impl Importer for TauBench {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "runs with `task_id`, `reward`, `info` and chat messages under `traj`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            let traj = record.get("traj");
            record.has_all(&["task_id", "reward"])
                && record.get("info").is_some_and(Outline::is_object)
                && traj.is_some_and(|traj| traj == &Outline::Array(Vec::new()) || is_conversation(traj))
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
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut losses = BTreeSet::new();
    push_messages(row.required("traj")?, &mut run, &mut losses)?;
    let task_id = row.id("task_id").ok_or_else(|| missing("task_id"))?;
    let reward = row.required("reward")?;
    let mut info: Object<'_> = row.required("info")?;
    let reward_info = info.take("reward_info");
    run.hidden.verifier_output = reward_info.map(Json::from);
    take_task(&mut info, &mut run);
    let domain =
        run.nodes.first().filter(|node| node.role == Role::System).and_then(|node| domain(&node.text()));
    run.environment =
        domain.as_ref().map(|name| EnvironmentRef { name: name.clone(), version: None, reset: None });
    let key =
        domain.map_or_else(|| format!("{FORMAT}/{task_id}"), |domain| format!("{FORMAT}/{domain}/{task_id}"));
    run.task = Task::named(key, row::goal(&run));
    run.trial = row.read("trial");
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
    run.verifier = Some(VerifierRef { name: "tau-bench reward".to_owned(), version: None });
    let outcome = outcome(&run, reward, reward_info.is_some(), info.text("error").as_deref(), scoring);
    run.extra.extend(row.rest());
    run.extra.extend(info.rest());
    run.finish(outcome);
    emit_losses(losses, sink)?;
    record.emit(sink, run, None, Vec::new(), 0)?;
    Ok(())
}

/// Gold actions and outputs are hidden; what the user simulator was told is kept beside the run.
fn take_task(info: &mut Object<'_>, run: &mut Trajectory) {
    let mut task = info.object("task");
    let gold: Vec<(&str, Json)> =
        ["actions", "outputs"].into_iter().filter_map(|key| Some((key, task.take(key)?.into()))).collect();
    run.hidden.gold = json_object(gold);
    run.extra.extend(task.rest().into_iter().map(|(key, value)| (format!("task.{key}"), value)));
}

/// The domain, from the heading of the policy that opens the system prompt: `# Airline Agent Policy`.
fn domain(prompt: &str) -> Option<String> {
    let heading = prompt.lines().next()?.strip_prefix('#')?.trim().to_lowercase();
    let name = heading.strip_suffix("agent policy")?.trim();
    let plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase());
    plain.then(|| name.to_owned())
}

/// The reward decides, unless the harness itself failed: then nothing was scored.
fn outcome(run: &Trajectory, reward: f64, verified: bool, error: Option<&str>, scoring: &Scoring) -> Outcome {
    if let Some(error) = error {
        let evidence = "info.error: the harness failed, reward is a placeholder".to_owned();
        return Outcome { evidence, ..Outcome::unknown() }.ended(TerminationKind::InfrastructureError, error);
    }
    let outcome = scoring.outcome(&[("reward".to_owned(), reward)], 1.0);
    let last_user = run.nodes.last().filter(|node| node.role == Role::User);
    if last_user.is_some_and(|node| node.text().contains(STOP_WORD)) {
        outcome.ended(TerminationKind::UserStop, STOP_WORD)
    } else if run.nodes.last().is_some_and(|node| node.agent == TRANSFER) {
        outcome.ended(TerminationKind::Completed, TRANSFER)
    } else if verified {
        outcome
    } else {
        outcome.ended(TerminationKind::StepLimit, "reward_info: null")
    }
}

#[cfg(test)]
mod tests {
    use super::domain;

    #[test]
    fn the_policy_names_its_domain() {
        assert_eq!(domain("# Airline Agent Policy\n\nThe time").as_deref(), Some("airline"));
        assert_eq!(domain("# Retail agent policy\n").as_deref(), Some("retail"));
        assert_eq!(domain("You are an agent.\n# Retail agent policy"), None);
        assert_eq!(domain("# ../etc agent policy"), None);
    }
}
