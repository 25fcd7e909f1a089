//! AutoGen's logs: messages and events of a task, saved states of teams and agents, and chats of the
//! versions before 0.4.
//!
//! A record is a task's result (`{messages, stop_reason}`), a list of messages and events, a saved state
//! (`{type: "TeamState", …}`, `{type: "AssistantAgentState", …}`) or a chat (`{chat_history, …}`). A
//! team's state tells the thread of its manager; without one each agent's own context is a run. Lines
//! that are an event each are one run.

mod event;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use self::event::Conversation;
use super::dialect::{Aside, Dialect, messages};
use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, Joined, RawRecord, RecordError, Stop};
use super::value::{elements, is_array, is_object};
use super::{ImportError, Importer, Layout, Outline, Probe, Scoring, Shape, Sink, Source, row};
use crate::task::Task;
use crate::trajectory::{Harness, Role, TerminationKind, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "autogen";

/// Logs of AutoGen.
pub(super) struct AutoGen;

impl Importer for AutoGen {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "messages or events of AutoGen with `source` and `type`, alone, in a `task_result` or in a team's state"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_events)
            || probe.records().iter().any(|record| is_record(record) || is_event(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        if probe.shape == Shape::Lines && probe.records().iter().any(is_event) {
            return lines(source, sink);
        }
        let layout = probe.layout_or_list(is_events);
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

fn is_record(record: &Outline) -> bool {
    let kind = record.get("type").and_then(Outline::as_str).unwrap_or_default();
    let state = matches!(kind, "TeamState" | "AssistantAgentState") && record.get("version").is_some();
    let chat = record.get("chat_history").is_some_and(Outline::is_array)
        && ["summary", "cost", "human_input"].iter().any(|key| record.get(key).is_some());
    state || chat || record.get("messages").is_some_and(is_events)
}

fn is_events(list: &Outline) -> bool {
    list.elements().iter().any(is_event)
}

fn is_event(event: &Outline) -> bool {
    let kind = event.get("type").and_then(Outline::as_str).unwrap_or_default();
    (kind.ends_with("Message") || kind.ends_with("Event")) && event.has_all(&["source", "content"])
}

/// A file whose lines are the events of one run.
fn lines(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let mut conversation = Conversation::default();
    let mut joined: Option<Joined> = None;
    slice::each_in_order(source, Layout::Lines, sink, |record, _| {
        conversation.add(record.parse()?)?;
        joined.get_or_insert_with(|| Joined::new(record)).add(record);
        Ok(())
    })?;
    let Some(joined) = joined else { return Ok(()) };
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut losses = BTreeSet::new();
    conversation.finish(&mut run, &mut losses);
    row::settle(&mut run, Object::default(), &source.options().scoring);
    for loss in losses {
        sink.loss(loss)?;
    }
    Ok(joined.finish().emit(sink, run, None, Vec::new(), 0)?)
}

/// A thread of a record with the name that tells it apart from the others.
struct Thread<'a> {
    name: Option<String>,
    events: Vec<&'a RawValue>,
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let raw: &RawValue = record.parse()?;
    let mut row = if is_object(raw) { Object::parse(raw, "record")? } else { Object::default() };
    let version = row.text("version");
    if let Some(history) = row.take_if("chat_history", is_array) {
        return chat(record, history, row, scoring, sink);
    }
    let threads = if is_array(raw) { vec![whole(raw)] } else { threads(&mut row)? };
    for (part, thread) in (0..).zip(threads) {
        let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
        let mut losses = BTreeSet::new();
        let mut conversation = Conversation::default();
        for (index, event) in thread.events.iter().enumerate() {
            conversation
                .add(event)
                .map_err(|error| RecordError::new(error.code, format!("messages[{index}]: {error}")))?;
        }
        conversation.finish(&mut run, &mut losses);
        let mut row = row.clone();
        let stopped = row.text("stop_reason");
        let native = row::settle(&mut run, row, scoring);
        if let Some(reason) = stopped {
            let outcome = run.outcome().clone();
            run.finish(outcome.ended(kind_of_end(&reason), reason));
        }
        run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
        if let Some(version) = &version {
            run.extra.insert("state_version".to_owned(), crate::json::Json::string(version));
        }
        emit_losses(losses, sink)?;
        let native = match (native, thread.name) {
            (Some(native), Some(name)) => Some(format!("{native}/{name}")),
            (native, _) => native,
        };
        record.emit(sink, run, native, Vec::new(), part)?;
    }
    Ok(())
}

fn whole(raw: &RawValue) -> Thread<'_> {
    Thread { name: None, events: elements(raw).unwrap_or_default() }
}

/// The threads of a result or a saved state.
fn threads<'a>(row: &mut Object<'a>) -> Result<Vec<Thread<'a>>, RecordError> {
    if let Some(events) = row.list("messages") {
        return Ok(vec![Thread { name: None, events }]);
    }
    row.take("type");
    let mut context = row.object("llm_context");
    if let Some(events) = context.list("messages") {
        return Ok(vec![Thread { name: None, events }]);
    }
    let states = row.object("agent_states").members();
    let (mut threads, mut contexts) = (Vec::new(), Vec::new());
    for (name, raw) in states {
        let Some(mut state) = Object::of(raw) else { continue };
        if let Some(events) = state.list("message_thread") {
            threads.push(Thread { name: None, events });
        }
        let mut agent = state.object("agent_state");
        if let Some(events) = agent.object("llm_context").list("messages") {
            contexts.push(Thread { name: Some(name), events });
        }
    }
    // What an agent was shown is the thread once more.
    threads.retain(|thread| !thread.events.is_empty());
    let found = if threads.is_empty() { contexts } else { threads };
    if found.is_empty() { Err(missing("messages")) } else { Ok(found) }
}

/// How a team stopped, from the sentence that its conditions write.
fn kind_of_end(reason: &str) -> TerminationKind {
    let reason = reason.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| reason.contains(word));
    if says(&["maximum number of messages", "maximum number of turns", "max_turns"]) {
        TerminationKind::StepLimit
    } else if says(&["token usage limit"]) {
        TerminationKind::BudgetExceeded
    } else if says(&["timeout"]) {
        TerminationKind::Timeout
    } else if says(&["cancel", "external termination"]) {
        TerminationKind::Cancelled
    } else if says(&["mentioned", "received", "handoff", "function"]) {
        TerminationKind::Completed
    } else {
        TerminationKind::Other
    }
}

/// A chat, as versions before 0.4 keep it: with the eyes of the agent that began it, whose own words are
/// the assistant's there. Here it is the user, and the agents that answer are the assistants.
fn chat(
    record: &RawRecord,
    history: &RawValue,
    row: Object<'_>,
    scoring: &Scoring,
    sink: &mut dyn Sink,
) -> Result<(), Stop> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let (mut losses, mut aside) = (BTreeSet::new(), Aside::default());
    let nodes = messages(history, Some(Dialect::Chat), Role::User, &mut aside)?;
    aside.settle(&mut run, &mut losses);
    let reason = "told by the agent that began the chat; turned around";
    losses.insert(Loss::new(FORMAT, "chat_history[].role", reason));
    let first = nodes.first().map(|node| (node.agent.clone(), node.role));
    for mut node in nodes {
        if matches!(node.role, Role::User | Role::Assistant) {
            // Older versions name nobody: then the role alone tells who began.
            let began = first.as_ref().is_some_and(|(name, role)| {
                if ["user", "assistant"].contains(&name.as_str()) {
                    node.role == *role
                } else {
                    node.agent == *name
                }
            });
            node.role = if began { Role::User } else { Role::Assistant };
            node.occurrence.sampled = !began;
            if ["user", "assistant"].contains(&node.agent.as_str()) {
                node.role.as_str().clone_into(&mut node.agent);
            }
            if node.tool_calls().next().is_some() {
                // A turn that only calls has empty content; the call is all it says.
                node.parts.retain(|part| part.as_text() != Some(""));
            }
        }
        run.push(node);
    }
    let native = row::settle(&mut run, row, scoring);
    emit_losses(losses, sink)?;
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}
