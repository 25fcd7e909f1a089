//! Raw rows of the SWE-agent trajectories that nebius published: `{instance_id, model_name, target,
//! trajectory[{role, text, system_prompt, mask, cutoff_date}], exit_status, generated_patch, eval_logs}`.
//!
//! `target` says whether the patch passed the tests and is the outcome; `eval_logs` is what the tests
//! printed, so it is hidden. The policy's turns have the role `ai`; the system turn keeps its text in
//! `system_prompt`. Several rows try one instance, so a row is identified by its bytes.

use serde_json::value::RawValue;

use super::object::Object;
use super::slice::{self, Stop};
use super::value::json_object;
use super::{ImportError, Importer, Outline, Probe, RawRecord, Sink, Source};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Agent, Call, Node, Outcome, Part, Role, TerminationKind, Trajectory};
use crate::warning::Loss;

/// Raw rows of the nebius SWE-agent trajectories.
pub(super) struct Nebius;

impl Importer for Nebius {
    fn format(&self) -> &'static str {
        "nebius"
    }

    fn recognizes(&self) -> &'static str {
        "rows with `instance_id`, `target` and a `trajectory` of turns that have `role`, `text` and `mask`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|row| {
            let turn = row.get("trajectory").and_then(Outline::first);
            row.has_all(&["instance_id", "target"])
                && turn.is_some_and(|turn| turn.has_all(&["role", "text", "mask"]))
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        slice::each(source, layout, sink, |record, sink| row(self.format(), record, sink))
    }
}

fn row(format: &str, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut fields: Object<'_> = record.parse()?;
    let instance: String = fields.required("instance_id")?;
    let model: Option<String> = fields.optional("model_name")?;
    let turns: Vec<&RawValue> = fields.required("trajectory")?;
    let mut task = Task::named(format!("nebius/{instance}"), "");
    task.group_keys.extend(repository(&instance));
    let mut run = Trajectory::new(format, task);
    run.agents.push(Agent { name: "assistant".to_owned(), model: model.clone(), system_prompt: None });
    for raw in turns {
        let mut turn = Object::parse(raw, "trajectory[]")?;
        let role: String = turn.required("role")?;
        let mask: Option<bool> = turn.optional("mask")?;
        let texts: [Option<String>; 2] = [turn.optional("system_prompt")?, turn.optional("text")?];
        let parts: Vec<Part> = texts.into_iter().flatten().map(Part::text).collect();
        let mut node = match role.as_str() {
            "system" => Node::new(Role::System, "system", parts),
            "user" => {
                if run.task.goal.is_empty() {
                    run.task.goal = parts.iter().filter_map(Part::as_text).collect();
                }
                Node::new(Role::User, "user", parts)
            }
            "ai" => {
                if mask == Some(false) {
                    let reason = "the source leaves this turn out of its own training";
                    sink.loss(Loss::new(format, "trajectory.mask", reason))?;
                }
                let mut node = Node::new(Role::Assistant, "assistant", parts).sampled();
                node.occurrence.call = Some(Box::new(Call { model: model.clone(), ..Call::default() }));
                node
            }
            other => {
                let reason = format!("`role` is `{other}`, not system, user or ai");
                return Err(super::RecordError::new("wrong-type", reason).into());
            }
        };
        node.occurrence.extra = json_object(turn.rest());
        run.push(node);
    }
    let mut outcome = match fields.optional("target")? {
        Some(passed) => Outcome::from_flag(passed, "target"),
        None => Outcome::unknown(),
    };
    if let Some(status) = fields.optional::<String>("exit_status")? {
        outcome = outcome.ended(termination(&status), status);
    }
    run.finish(outcome);
    run.hidden.verifier_output = fields.take("eval_logs").map(Json::from);
    run.extra.extend(fields.rest());
    Ok(record.emit(sink, run, None, Vec::new(), 0)?)
}

/// The repository in an instance's name: `owner__name-number`.
fn repository(instance: &str) -> Option<String> {
    let (owner, rest) = instance.split_once("__")?;
    let (name, _) = rest.rsplit_once('-')?;
    Some(format!("repository/{owner}/{name}"))
}

/// Exit words of SWE-agent 0.x: what follows `submitted` in parentheses is the limit that made it submit.
fn termination(status: &str) -> TerminationKind {
    if status.contains("exit_context") {
        TerminationKind::ContextOverflow
    } else if status.contains("exit_cost") {
        TerminationKind::BudgetExceeded
    } else if status.contains("exit_format") {
        TerminationKind::TooManyErrors
    } else if status.contains("exit_environment") || status.contains("exit_api") {
        TerminationKind::InfrastructureError
    } else if status.starts_with("submitted") {
        TerminationKind::Completed
    } else {
        TerminationKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::{repository, termination};
    use crate::trajectory::TerminationKind;

    #[test]
    fn a_forced_submission_is_told_from_a_free_one() {
        assert_eq!(termination("submitted"), TerminationKind::Completed);
        assert_eq!(termination("submitted (exit_context)"), TerminationKind::ContextOverflow);
        assert_eq!(termination("early_exit"), TerminationKind::Other);
    }

    #[test]
    fn an_instance_names_its_repository() {
        assert_eq!(repository("a__b-c-12_3").as_deref(), Some("repository/a/b-c"));
        assert_eq!(repository("plain"), None);
    }
}
