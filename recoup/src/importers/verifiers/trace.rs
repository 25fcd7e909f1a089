//! A trace: one agent's messages as a graph, its model calls, rewards and errors.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::FORMAT;
use crate::importers::dialect::{Aside, Dialect, message};
use crate::importers::object::{Object, missing, wrong_type};
use crate::importers::openai_chat::tools;
use crate::importers::value::{is_object, json_object};
use crate::importers::{RecordError, Scoring, row};
use crate::json::Json;
use crate::task::{EnvironmentRef, Task, VerifierRef};
use crate::trajectory::{Call, Harness, Node, Outcome, Role, TerminationKind, Trajectory, Usage};
use crate::warning::Loss;

/// Token ids that the prompts of one trace may hold together: they repeat what came before them.
const PROMPT_IDS_MAX: usize = 4 << 20;
/// Members of a message's node that training annotates it with; a record has no place for them.
const ANNOTATIONS: [&str; 6] =
    ["is_content", "advantages", "reference_logprobs", "trainer_logprobs", "entropies", "loss_weights"];

/// The run of a trace and its id.
pub(super) fn run(
    mut trace: Object<'_>,
    environment: Option<&str>,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Result<(Trajectory, Option<String>), RecordError> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut agent = trace.object("agent");
    let name = agent.text("name").unwrap_or_else(|| "assistant".to_owned());
    let mut aside = Aside::default();
    push_nodes(&trace.required::<Vec<&RawValue>>("nodes")?, &name, &mut run, &mut aside)?;
    aside.settle(&mut run, losses);
    add_calls(trace.list("calls").unwrap_or_default(), &mut run)?;
    if let Some(found) = trace.take("tools").and_then(|raw| tools(raw, FORMAT, losses)) {
        run.tools = found;
    }
    let model = run.nodes.iter().rev().find_map(|node| node.occurrence.call.as_ref()?.model.clone());
    for known in &mut run.agents {
        known.model.clone_from(&model);
    }
    run.harness =
        Some(Harness { name: FORMAT.to_owned(), version: trace.object("verifiers").text("version") });
    let mut task = trace.object("task");
    let mut data = task.object("data");
    run.hidden.gold = data.take("answer").map(Json::from);
    let key = ["key", "hash"].into_iter().find_map(|key| task.text(key));
    run.task = match key {
        Some(key) => {
            Task::named(format!("{FORMAT}/{}/{key}", environment.unwrap_or("task")), row::goal(&run))
        }
        None => row::derived_task(&run),
    };
    // The question stands among the messages; what else a row holds may be what the verifier needs.
    data.take("prompt");
    run.hidden.reference = json_object(data.rest());
    run.environment =
        environment.map(|name| EnvironmentRef { name: name.to_owned(), version: None, reset: None });
    let outcome = outcome(&mut trace, &mut run, scoring);
    let native = trace.text("id");
    run.extra.extend(json_object(agent.rest()).map(|agent| ("agent".to_owned(), agent)));
    trace.take("version");
    run.extra.extend(trace.filled_rest());
    let last = run.nodes.len().checked_sub(1);
    run.finish_tree(last, outcome);
    Ok((run, native))
}

/// Appends the messages, each under its parent and with the tokens that it adds.
fn push_nodes(
    nodes: &[&RawValue],
    agent: &str,
    run: &mut Trajectory,
    aside: &mut Aside,
) -> Result<(), RecordError> {
    // The ids of the whole path to each message, while they are few enough.
    let mut paths: Vec<Vec<u32>> = Vec::with_capacity(nodes.len());
    let mut held = 0;
    for (index, raw) in nodes.iter().enumerate() {
        let place = format!("nodes[{index}]");
        let mut entry = Object::parse(raw, &place)?;
        let raw: &RawValue = entry.take("message").ok_or_else(|| missing(&format!("{place}.message")))?;
        let read = message(raw, Some(Dialect::Chat), Role::User, aside)
            .map_err(|error| RecordError::new(error.code, format!("{place}: {error}")))?;
        let Some(mut node) = read.into_iter().next() else { return Err(missing(&place)) };
        node.parent = entry.optional::<usize>("parent")?;
        if node.parent.is_some_and(|parent| parent >= index) {
            return Err(wrong_type(&format!("{place}.parent"), "a message before it"));
        }
        node.occurrence.sampled = entry.read("sampled").unwrap_or(false);
        if node.role == Role::Assistant {
            agent.clone_into(&mut node.agent);
        }
        node.occurrence.at = entry.id("timestamp");
        let ids: Vec<u32> = entry.read("token_ids").unwrap_or_default();
        let mask: Vec<bool> = entry.read("mask").unwrap_or_default();
        let before = node.parent.and_then(|parent| paths.get(parent)).cloned().unwrap_or_default();
        held += before.len() + ids.len();
        if node.occurrence.sampled && !ids.is_empty() {
            let logprobs: Option<Vec<f64>> = entry.read("logprobs");
            let kept = held <= PROMPT_IDS_MAX;
            if !kept {
                aside.lose("nodes[].token_ids", "of a very long trace the prompts' tokens are not repeated");
            }
            tokens(&mut node, &before, &ids, &mask, logprobs, kept);
        }
        let mut path = before;
        path.extend(ids);
        paths.push(if held <= PROMPT_IDS_MAX { path } else { Vec::new() });
        for key in ANNOTATIONS {
            if entry.take(key).is_some_and(|raw| raw.get() != "[]") {
                aside.lose(format!("nodes[].{key}"), "what training adds to a token has no place");
            }
        }
        entry.take("logprobs");
        entry.take("tools");
        let rest = entry.filled_rest();
        node.occurrence.extra = match (node.occurrence.extra.take(), rest.is_empty()) {
            (extra, true) => extra,
            (extra, false) => {
                json_object(rest.into_iter().chain(extra.map(|extra| ("message".to_owned(), extra))))
            }
        };
        run.push_under(node);
    }
    Ok(())
}

/// The tokens of a sampled message: what is masked as its own was generated, all before it was the prompt.
fn tokens(
    node: &mut Node,
    before: &[u32],
    ids: &[u32],
    mask: &[bool],
    logprobs: Option<Vec<f64>>,
    keep: bool,
) {
    let own = if mask.len() == ids.len() { mask.iter().position(|own| *own) } else { Some(0) };
    let (scaffold, generated) = ids.split_at(own.unwrap_or(ids.len()));
    let call = node.occurrence.call.get_or_insert_default();
    call.completion_ids = Some(generated.to_vec());
    call.logprobs = logprobs.filter(|logprobs| !logprobs.is_empty());
    call.prompt_ids = keep.then(|| before.iter().chain(scaffold).copied().collect());
}

/// Gives each model call to the message it committed; one that failed committed none.
fn add_calls(calls: Vec<&RawValue>, run: &mut Trajectory) -> Result<(), RecordError> {
    let mut failed = Vec::new();
    for raw in calls {
        let mut entry = Object::parse(raw, "calls[]")?;
        let node = entry.optional::<usize>("node")?.and_then(|node| run.nodes.get_mut(node));
        let Some(node) = node else {
            failed.push(raw);
            continue;
        };
        let call: &mut Call = node.occurrence.call.get_or_insert_default();
        call.model = entry.text("model");
        call.finish_reason = entry.text("finish_reason");
        call.parameters = entry.take_if("sampling", is_object).map(Json::from);
        let mut usage = entry.object("usage");
        call.cost = usage.read("cost");
        let counts = usage.read::<u64>("prompt_tokens").zip(usage.read::<u64>("completion_tokens"));
        call.usage = counts.map(|(input, output)| {
            // What the provider's cache held is counted apart.
            let cached = usage.read("cached_input_tokens").unwrap_or(0);
            let reasoning = usage.read("reasoning_tokens").unwrap_or(0);
            Usage { input: input.saturating_add(cached), output, cached, reasoning }
        });
        call.error = entry.object("error").text("message");
    }
    if !failed.is_empty()
        && let Ok(failed) = Json::from_serialize(&failed)
    {
        run.extra.insert("failed_calls".to_owned(), failed);
    }
    Ok(())
}

/// The weighted sum of the rewards, which passes where each of them has its most; or the one chosen.
fn outcome(trace: &mut Object<'_>, run: &mut Trajectory, scoring: &Scoring) -> Outcome {
    let rewards = trace.take("rewards").filter(|raw| raw.get() != "{}");
    let metrics = trace.take("metrics").filter(|raw| raw.get() != "{}");
    let judged = [("rewards", rewards), ("metrics", metrics)];
    run.hidden.verifier_output =
        json_object(judged.into_iter().filter_map(|(key, raw)| Some((key, Json::from(raw?)))));
    let mut named = Vec::new();
    let (mut sum, mut most) = (0.0, 0.0);
    for (name, raw) in rewards.and_then(Object::of).unwrap_or_default().members() {
        let Some(mut reward) = Object::of(raw) else { continue };
        let (score, weight) = (reward.read::<f64>("score"), reward.read::<f64>("weight").unwrap_or(1.0));
        if let Some(score) = score {
            named.push((name, score));
            sum += score * weight;
            most += weight.max(0.0);
        }
    }
    let outcome = match (&scoring.score, named.len()) {
        (_, 0) => Outcome::unknown(),
        (None, 2..) => Outcome::from_score(sum, scoring.success_at.unwrap_or(most), "reward"),
        _ => scoring.outcome(&named, 1.0),
    };
    if let [(name, _)] = named.as_slice() {
        run.verifier = Some(VerifierRef { name: name.clone(), version: None });
    }
    let errors = trace.list("errors").unwrap_or_default();
    let error = errors.last().and_then(|raw| Object::of(raw));
    let stopped = trace.text("stop_condition");
    let timed_out: bool = trace.read("is_timeout").unwrap_or(false);
    let is_ok: bool = trace.read("ok").unwrap_or(true);
    trace.take("is_completed");
    match (error.filter(|_| !is_ok), stopped) {
        (Some(mut error), _) => {
            let kind = error.text("type").unwrap_or_default();
            let said = format!("{kind}: {}", error.text("message").unwrap_or_default());
            outcome.ended(if timed_out { TerminationKind::Timeout } else { failed(&kind) }, said)
        }
        (None, Some(reason)) => {
            outcome.ended(if timed_out { TerminationKind::Timeout } else { ended(&reason) }, reason)
        }
        (None, None) if timed_out => outcome.ended(TerminationKind::Timeout, "is_timeout"),
        (None, None) => outcome,
    }
}

fn failed(kind: &str) -> TerminationKind {
    let kind = kind.to_ascii_lowercase();
    if kind.contains("overlong") || kind.contains("context") {
        TerminationKind::ContextOverflow
    } else if kind.contains("timeout") {
        TerminationKind::Timeout
    } else if kind.contains("harness") || kind.contains("program") {
        TerminationKind::AgentError
    } else {
        TerminationKind::InfrastructureError
    }
}

fn ended(reason: &str) -> TerminationKind {
    if reason.contains("turns") || reason.contains("steps") {
        TerminationKind::StepLimit
    } else if reason.contains("context") {
        TerminationKind::ContextOverflow
    } else if reason.contains("token") {
        TerminationKind::BudgetExceeded
    } else if reason.contains("timeout") {
        TerminationKind::Timeout
    } else if reason.contains("completed") || reason.contains("stop") {
        TerminationKind::Completed
    } else {
        TerminationKind::Other
    }
}
