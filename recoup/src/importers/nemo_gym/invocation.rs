//! The evidence of a rollout: invocations with their conversations, model calls, tool attempts, and what
//! the producer says that it could not see.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::FORMAT;
use crate::importers::RecordError;
use crate::importers::dialect::{Aside, Dialect, messages};
use crate::importers::object::{Object, missing};
use crate::importers::value::{json_object, value};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Agent, Call, Harness, Outcome, Part, Role, TerminationKind, Trajectory, Usage};
use crate::warning::Loss;

/// What a trajectory holds.
pub(super) struct Evidence<'a> {
    pub(super) task: String,
    pub(super) rollout: String,
    invocations: Vec<Object<'a>>,
    model_calls: BTreeMap<String, Object<'a>>,
    tool_calls: BTreeMap<(String, String), Object<'a>>,
}

impl<'a> Evidence<'a> {
    /// Reads a trajectory; each gap that it admits is a loss.
    pub(super) fn read(mut trajectory: Object<'a>, losses: &mut BTreeSet<Loss>) -> Result<Self, RecordError> {
        let task = trajectory.id("task_id").ok_or_else(|| missing("ng_trajectory.task_id"))?;
        let rollout = trajectory.id("rollout_id").ok_or_else(|| missing("ng_trajectory.rollout_id"))?;
        for raw in trajectory.list("gaps").unwrap_or_default() {
            let code = Object::of(raw).and_then(|mut gap| gap.text("code"));
            let code: String = code.unwrap_or_else(|| "unnamed".to_owned()).chars().take(80).collect();
            losses.insert(Loss::new(
                FORMAT,
                format!("gaps.{code}"),
                "the producer says that it could not see this",
            ));
        }
        if !trajectory.list("turns").unwrap_or_default().is_empty() {
            losses.insert(Loss::new(FORMAT, "turns", "the conversation says what the turns repeat"));
        }
        let objects = |list: Vec<&'a RawValue>| list.into_iter().filter_map(Object::of).collect::<Vec<_>>();
        let invocations = objects(trajectory.required("invocations")?);
        let mut model_calls = BTreeMap::new();
        for mut call in objects(trajectory.list("model_calls").unwrap_or_default()) {
            model_calls.extend(call.text("model_call_id").map(|id| (id, call)));
        }
        let mut tool_calls = BTreeMap::new();
        for mut call in objects(trajectory.list("tool_calls").unwrap_or_default()) {
            let key = call.text("invocation_id").zip(call.text("tool_call_id"));
            tool_calls.extend(key.map(|key| (key, call)));
        }
        Ok(Self { task, rollout, invocations, model_calls, tool_calls })
    }

    /// A run for each invocation that has a conversation, the roots first, with the invocation's id.
    pub(super) fn runs(
        &mut self,
        losses: &mut BTreeSet<Loss>,
    ) -> Result<Vec<(Trajectory, Option<String>)>, RecordError> {
        let invocations = std::mem::take(&mut self.invocations);
        let (roots, children): (Vec<_>, Vec<_>) =
            invocations.into_iter().partition(|invocation| invocation.get("parent_invocation_id").is_none());
        let mut runs = Vec::new();
        for invocation in roots.into_iter().chain(children) {
            let (run, id) = self.run(invocation, losses)?;
            if run.nodes.is_empty() {
                losses.insert(Loss::new(FORMAT, "invocations", "an invocation without a conversation"));
            } else {
                runs.push((run, id));
            }
        }
        Ok(runs)
    }

    fn run(
        &self,
        mut invocation: Object<'a>,
        losses: &mut BTreeSet<Loss>,
    ) -> Result<(Trajectory, Option<String>), RecordError> {
        let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
        run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
        run.agents.push(Agent { name: "assistant".to_owned(), model: None, system_prompt: None });
        let id = invocation.text("invocation_id");
        let mut aside = Aside::default();
        if let Some(raw) = invocation.take("conversation") {
            for node in messages(raw, Some(Dialect::Responses), Role::User, &mut aside)? {
                run.push(node);
            }
        }
        self.add_tools(id.as_deref().unwrap_or_default(), &mut run);
        self.add_calls(&invocation.list("model_calls").unwrap_or_default(), &mut run, &mut aside);
        aside.settle(&mut run, losses);
        let status = invocation.text("status").unwrap_or_default();
        let error = invocation.text("error_type");
        let kind = match (&*status, &error) {
            ("completed", _) => Some(TerminationKind::Completed),
            ("failed", Some(error)) if error.to_ascii_lowercase().contains("timeout") => {
                Some(TerminationKind::Timeout)
            }
            ("failed", _) => Some(TerminationKind::AgentError),
            ("incomplete", _) => Some(TerminationKind::Other),
            _ => None,
        };
        let outcome = Outcome::unknown();
        let said = error.map_or(status.clone(), |error| format!("{status}: {error}"));
        run.finish(kind.map_or(outcome.clone(), |kind| outcome.ended(kind, said)));
        for (key, name) in
            [("parent_invocation_id", "parent_trajectory"), ("spawned_by_tool_call_id", "spawned_by")]
        {
            run.extra.extend(invocation.text(key).map(|id| (name.to_owned(), Json::string(&id))));
        }
        invocation.take("kind");
        run.extra.extend(json_object(invocation.filled_rest()).map(|rest| ("invocation".to_owned(), rest)));
        Ok((run, id))
    }

    /// Says of each result whether its call failed, and keeps the attempt's times beside it.
    fn add_tools(&self, invocation: &str, run: &mut Trajectory) {
        for node in &mut run.nodes {
            let Some(Part::ToolResult(result)) = node.parts.first_mut() else { continue };
            let key = (invocation.to_owned(), result.call_id.clone().unwrap_or_default());
            let Some(mut attempt) = self.tool_calls.get(&key).cloned() else { continue };
            result.is_error = match attempt.text("status").as_deref() {
                Some("completed") => Some(false),
                Some("failed" | "timeout" | "cancelled") => Some(true),
                _ => result.is_error,
            };
            if let Some(name) = attempt.text("tool_name") {
                node.agent = name;
            }
            for known in ["kind", "output"] {
                attempt.take(known);
            }
            node.occurrence.extra = json_object(attempt.filled_rest());
        }
    }

    /// Gives the invocation's model calls to its turns, where there are as many.
    fn add_calls(&self, refs: &[&RawValue], run: &mut Trajectory, aside: &mut Aside) {
        let calls: Vec<Call> = refs
            .iter()
            .filter_map(|raw| self.model_calls.get(&Object::of(raw)?.text("model_call_id")?))
            .map(|call| figures(call.clone()))
            .collect();
        let turns: Vec<_> = run.nodes.iter_mut().filter(|node| node.occurrence.sampled).collect();
        if turns.len() != calls.len() {
            if !calls.is_empty() {
                aside.lose("model_calls", "as many calls as turns would be needed to tell whose is whose");
            }
            return;
        }
        let model = calls.iter().rev().find_map(|call| call.model.clone());
        for (node, call) in turns.into_iter().zip(calls) {
            node.occurrence.call = Some(Box::new(call));
        }
        for agent in &mut run.agents {
            agent.model.clone_from(&model);
        }
    }
}

fn figures(mut call: Object<'_>) -> Call {
    let mut metadata = call.object("response_metadata");
    let mut stats = call.object("token_stats");
    let mut count = |key: &str| stats.take(key).and_then(value::<u64>);
    let usage = count("prompt_tokens").zip(count("completion_tokens")).map(|(input, output)| Usage {
        input,
        output,
        cached: count("cached_tokens").unwrap_or(0),
        reasoning: count("reasoning_tokens").unwrap_or(0),
    });
    Call {
        model: metadata.text("model"),
        finish_reason: metadata.text("finish_reason"),
        error: metadata.text("error_category"),
        usage,
        ..Call::default()
    }
}
