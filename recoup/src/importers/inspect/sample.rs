//! A sample of an evaluation: one run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use super::attachments::Attachments;
use super::log::Log;
use super::message::message;
use super::model_event::{self, ModelEvents};
use super::{FORMAT, score};
use crate::importers::object::Object;
use crate::importers::prompts::{Prompts, finish};
use crate::importers::slice::Stop;
use crate::importers::value::{json_object, text};
use crate::importers::{ImportOptions, RawRecord, RecordError, Sink};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Agent, Call, Harness, Node, Outcome, Role, TerminationKind, Trajectory};
use crate::warning::Loss;

/// Reads a sample and hands its run on.
pub(super) fn read(
    record: &RawRecord,
    log: &Log,
    options: &ImportOptions,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut sample: Object<'_> = record.parse()?;
    let id = sample.id("id").ok_or_else(|| RecordError::new("missing-field", "a sample without id"))?;
    let texts: BTreeMap<String, &RawValue> = sample.object("attachments").members();
    let attachments = Attachments::new(texts, options.record_bytes_max as usize);
    // Early logs hold the events one level deeper.
    let events = sample.list("events").or_else(|| sample.object("transcript").list("events"));
    let events = events.unwrap_or_default();
    let pool = sample.list("message_pool").or_else(|| sample.object("events_data").list("messages"));
    let model_events = model_event::read(&events, &pool.unwrap_or_default(), &attachments);
    let mut messages = sample.list("messages").unwrap_or_default();
    if messages.is_empty() {
        messages.clone_from(&model_events.last_conversation);
    }
    if messages.is_empty() {
        // A sample that failed before its first call was asked all the same.
        messages = sample.list("input").unwrap_or_default();
    }
    let mut run = Trajectory::new(FORMAT, Task::named(format!("{FORMAT}/{}/{id}", log.task), ""));
    run.agents.push(Agent { name: "assistant".to_owned(), model: log.model.clone(), system_prompt: None });
    let mut prompts = Prompts::default();
    let last = push_messages(&mut run, &mut prompts, &messages, &attachments, &model_events)?;
    // Filled in again, with room of their own.
    let again = attachments.again();
    for prompt in &model_events.prompts {
        push_prompt(&mut run, &mut prompts, prompt, &again);
    }
    if !events.is_empty() {
        let reason = "of a sample's events the model calls' figures, tools and differing prompts are kept";
        sink.loss(Loss::new(FORMAT, "events", reason))?;
    }
    run.tools = model_events.tools;
    run.harness = Some(Harness { name: "inspect_ai".to_owned(), version: log.version.clone() });
    run.trial = sample.read("epoch");
    (run.seed, run.budget) = (log.seed, log.budget.clone());
    let input = sample.take("input").and_then(text).map(|input| attachments.resolve(&input).into_owned());
    let asked = run.nodes.iter().find(|node| node.role == Role::User).map(Node::text);
    run.task.goal = input.or(asked).unwrap_or_default();
    let outcome = outcome(&mut sample, &mut run, log, options, &attachments);
    finish(&mut run, last, outcome);
    let hidden = |raw: &RawValue| Json::from_foreign(&attachments.resolve_json(raw.get()));
    run.hidden.gold = sample.take("target").filter(|raw| !matches!(raw.get(), "\"\"" | "[]")).map(hidden);
    run.hidden.reference = sample.take("metadata").filter(|raw| raw.get() != "{}").map(hidden);
    let store = sample.take("store").filter(|raw| raw.get() != "{}");
    run.extra.extend(store.map(|raw| ("store".to_owned(), hidden(raw))));
    let native = sample.text("uuid");
    run.extra.extend(attachments.filled_rest(sample));
    if attachments.left_some() {
        sink.loss(Loss::new(FORMAT, "attachments", "a reference leads nowhere or to too much and stays"))?;
    }
    run.extra.extend(json_object(&log.extra).map(|eval| ("eval".to_owned(), eval)));
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

/// Adds the messages, each turn with the model call that gave it: by the message's id, or in order in
/// logs without ids. Returns the last one's position.
pub(super) fn push_messages(
    run: &mut Trajectory,
    prompts: &mut Prompts,
    messages: &[&RawValue],
    attachments: &Attachments,
    events: &ModelEvents,
) -> Result<Option<usize>, RecordError> {
    let ids: BTreeSet<&str> = events.calls.iter().filter_map(|(id, _)| id.as_deref()).collect();
    let mut read = Vec::with_capacity(messages.len());
    for raw in messages {
        let mut message = message(raw, attachments, run)?;
        let is_known = message.id.as_deref().is_some_and(|id| ids.contains(id));
        let occurrence = &mut message.node.occurrence;
        if message.node.role == Role::Assistant {
            occurrence.copied_context = message.source.as_deref() == Some("input");
            occurrence.sampled = match message.source.as_deref() {
                Some(source) => source == "generate",
                None => is_known || ids.is_empty(),
            };
        }
        read.push(message);
    }
    let mut by_id: BTreeMap<&str, &Call> = BTreeMap::new();
    for (id, call) in &events.calls {
        by_id.extend(id.as_deref().map(|id| (id, call)));
    }
    let sampled = read.iter().filter(|message| message.node.occurrence.sampled).count();
    let in_order = ids.is_empty() && sampled == events.calls.len();
    let mut next = 0;
    let mut place = None;
    for message in read {
        let mut node = message.node;
        if node.occurrence.sampled {
            let in_place = events.calls.get(next).filter(|_| in_order).map(|(_, call)| call);
            next += 1;
            let found = in_place.or_else(|| by_id.get(message.id.as_deref()?).copied());
            node.occurrence.call = found.map(|call| Box::new(call.clone()));
        }
        place = Some(prompts.follow(run, place, node, false));
    }
    Ok(place.map(|place| place.position))
}

/// Adds what a model was shown where it is not the conversation: before a history was cut or summed up,
/// say. It is a branch of its own: context, sampled by nobody. A prompt that does not begin as the
/// conversation does is another agent's or a judge's, and no part of this run.
pub(super) fn push_prompt(
    run: &mut Trajectory,
    prompts: &mut Prompts,
    prompt: &[&RawValue],
    attachments: &Attachments,
) {
    let mut place = None;
    for raw in prompt {
        // The call was made all the same; its figures stand with its turn.
        let Ok(mut message) = message(raw, attachments, run) else { return };
        if place.is_none() && !prompts.knows(place, &message.node) {
            return;
        }
        message.node.occurrence.copied_context = true;
        place = Some(prompts.follow(run, place, message.node, false));
    }
}

/// Takes scores, error, limit and the last response; the scores' words are hidden from judges.
fn outcome(
    sample: &mut Object,
    run: &mut Trajectory,
    log: &Log,
    options: &ImportOptions,
    attachments: &Attachments,
) -> Outcome {
    let scores = sample.take("scores").or_else(|| sample.take("score"));
    let scores = scores.filter(|raw| raw.get() != "{}");
    run.hidden.verifier_output = scores.map(|raw| Json::from_foreign(&attachments.resolve_json(raw.get())));
    let named = scores.and_then(Object::of).map(score::named).unwrap_or_default();
    let scorer = match (named.as_slice(), &options.scoring.score) {
        (_, Some(chosen)) => Some(chosen.clone()),
        ([(only, _)], None) => Some(only.clone()),
        _ => None,
    };
    let listed = || Some(log.scorers.join(", ")).filter(|names| !names.is_empty());
    run.verifier = scorer.or_else(listed).map(|name| VerifierRef { name, version: None });
    let outcome = options.scoring.outcome(&named, 1.0);
    let mut output = sample.object("output");
    let stop_reason =
        output.list("choices").and_then(|choices| Object::of(choices.first()?)?.text("stop_reason"));
    let said = |raw| Object::of(raw)?.text("message");
    let error = sample.get("error").and_then(|raw| text(raw).map(Cow::into_owned).or_else(|| said(raw)));
    let error = error.map(|error| attachments.resolve(&error).into_owned());
    let limit = sample.get("limit").and_then(|raw| Object::of(raw)?.text("type"));
    match (error, limit, stop_reason) {
        // What a sample's error reports is an exception of the harness, a sandbox or a provider.
        (Some(error), _, _) => outcome.ended(TerminationKind::InfrastructureError, error),
        (None, Some(limit), _) => outcome.ended(score::limit(&limit), limit),
        (None, None, Some(reason)) => outcome.ended(score::stop(&reason), reason),
        (None, None, None) => outcome,
    }
}
