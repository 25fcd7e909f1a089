//! NeMo Gym: rows of rollouts, each with what was asked (`responses_create_params`), the response in
//! OpenAI's Responses form, and the reward; and the `ng_trajectory` 1.0 that newer ones hold, with every
//! invocation's conversation, model call and tool attempt, and the gaps that its producer admits.
//!
//! Each invocation is a run; those of subagents name their parent. A row without a trajectory is one run.

mod invocation;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use self::invocation::Evidence;
use super::dialect::{Aside, Dialect, messages, usage};
use super::object::{Object, missing};
use super::openai_chat::{emit_losses, take_tools};
use super::slice::{self, RawRecord, Stop};
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source, row};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Call, Role, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "nemo-gym";
/// Members that repeat what stands elsewhere in a row.
const REPEATED: [&str; 3] = ["ng_model_call_capture", "ng_agent_observations", "ng_perf"];

/// Rollouts of NeMo Gym.
pub(super) struct NemoGym;

impl Importer for NemoGym {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "rows with `responses_create_params` and its `response`, or an `ng_trajectory`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| is_rollout(record) || is_trajectory(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

fn is_rollout(record: &Outline) -> bool {
    let asked = record.get("responses_create_params").is_some_and(|params| params.get("input").is_some());
    asked && (record.get("response").is_some() || record.get("ng_trajectory").is_some())
}

fn is_trajectory(record: &Outline) -> bool {
    record.has_all(&["schema_version", "rollout_id", "invocations", "gaps"])
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let mut losses = BTreeSet::new();
    for key in REPEATED {
        row.take(key);
    }
    let alone = row.has("invocations");
    let trajectory =
        if alone { Some(std::mem::take(&mut row)) } else { row.take("ng_trajectory").and_then(Object::of) };
    let params = row.object("responses_create_params");
    let response = row.take("response");
    let mut evidence = trajectory.map(|trajectory| Evidence::read(trajectory, &mut losses)).transpose()?;
    let runs = match evidence.as_mut().map(|evidence| evidence.runs(&mut losses)).transpose()? {
        Some(runs) if !runs.is_empty() => runs,
        _ => vec![(plain(&params, response, &mut losses)?, None)],
    };
    let rollout = evidence.as_ref().map(|evidence| evidence.rollout.clone());
    for (part, (mut run, native)) in (0..).zip(runs) {
        let mut params = params.clone();
        params.take("input");
        take_tools(&mut params, "tools", &mut run, &mut losses);
        let mut row = row.clone();
        if part > 0 {
            // The reward is of the whole rollout; a subagent's part in it is not known.
            row = Object::default();
        }
        let task = task(&mut row, evidence.as_ref(), &run);
        let agent = row.take("agent_ref").map(Json::from);
        row::settle(&mut run, row, scoring);
        run.task = task;
        run.extra.extend(agent.map(|agent| ("agent_ref".to_owned(), agent)));
        let rest = super::value::json_object(params.rest());
        run.extra.extend(rest.map(|params| ("responses_create_params".to_owned(), params)));
        let id = match (&rollout, &native) {
            (Some(rollout), Some(native)) if part > 0 => Some(format!("{rollout}/{native}")),
            _ => rollout.clone(),
        };
        record.emit(sink, run, id, Vec::new(), part)?;
    }
    emit_losses(losses, sink)?;
    Ok(())
}

/// Rows name their task by index; runs of one task share it.
fn task(row: &mut Object<'_>, evidence: Option<&Evidence<'_>>, run: &Trajectory) -> Task {
    let named = ["task_id", "uuid", "id", "_ng_task_index"].into_iter().find_map(|key| row.id(key));
    match named.or_else(|| evidence.map(|evidence| evidence.task.clone())) {
        Some(id) => Task::named(format!("{FORMAT}/{id}"), row::goal(run)),
        None => row::derived_task(run),
    }
}

/// The run of a row without a trajectory: what was asked, then what was answered.
fn plain(
    params: &Object<'_>,
    response: Option<&RawValue>,
    losses: &mut BTreeSet<Loss>,
) -> Result<Trajectory, Stop> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut aside = Aside::default();
    let input = params.get("input").ok_or_else(|| missing("responses_create_params.input"))?;
    for mut node in messages(input, Some(Dialect::Responses), Role::User, &mut aside)? {
        node.occurrence.sampled = false;
        run.push(node);
    }
    let mut response = response.and_then(Object::of).unwrap_or_default();
    if let Some(output) = response.take("output") {
        for node in messages(output, Some(Dialect::Responses), Role::Assistant, &mut aside)? {
            run.push(node);
        }
    }
    let model = response.text("model");
    for agent in &mut run.agents {
        agent.model.clone_from(&model);
    }
    // The figures are of all calls together.
    let total = usage(&mut response.object("usage"));
    let mut turns: Vec<_> = run.nodes.iter_mut().filter(|node| node.occurrence.sampled).collect();
    if let [only] = turns.as_mut_slice() {
        only.occurrence.call = Some(Box::new(Call { model, usage: total, ..Call::default() }));
    } else if total.is_some() {
        aside.lose("response.usage", "the tokens of several calls together have no place");
    }
    aside.settle(&mut run, losses);
    Ok(run)
}
