//! LangChain's and LangGraph's messages: dumps of conversations, states and checkpoints of graphs.
//!
//! A record is `{messages: […], …}`, a list of messages, a state (`{values: {messages}, config, …}`) or a
//! checkpoint (`{channel_values: {messages}}`), the messages in any of LangChain's serialized forms. The
//! states of one thread (`thread_id`) are one run whatever their order, a tree where the thread was
//! forked.

use serde_json::value::RawValue;

use super::dialect::{Aside, Dialect};
use super::histories::{self, Exchange};
use super::object::{Object, missing};
use super::slice::{RawRecord, RecordError};
use super::value::{is_array, is_object};
use super::{ImportError, Importer, Outline, Probe, Sink, Source};

/// Members in which a record wraps the state that holds its messages.
const STATES: [&str; 5] = ["values", "channel_values", "checkpoint", "state", "output"];
/// What LangGraph keeps of a checkpoint besides its messages.
const CHECKPOINT: [&str; 11] = [
    "next",
    "config",
    "metadata",
    "parent_config",
    "tasks",
    "interrupts",
    "pending_writes",
    "versions_seen",
    "channel_versions",
    "id",
    "v",
];
/// Words for the types of LangChain's messages that are no words of a chat's role.
const TYPES: [&str; 6] = ["human", "ai", "HumanMessage", "AIMessage", "AIMessageChunk", "remove"];

/// Dumps of LangChain's messages.
pub(super) struct LangChain;

impl Importer for LangChain {
    fn format(&self) -> &'static str {
        "langchain"
    }

    fn recognizes(&self) -> &'static str {
        "messages as LangChain dumps them, with `type` and `data`, `lc` and `kwargs`, or `type` and `content`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_messages) || probe.records().iter().any(is_record)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = probe.layout_or_list(is_messages);
        histories::import(source, layout, self.format(), sink, &read)
    }
}

fn is_record(record: &Outline) -> bool {
    let mut state = record;
    // A checkpoint in a tuple in a record.
    for _ in 0..STATES.len() {
        if state.get("messages").is_some_and(is_messages) {
            return true;
        }
        match STATES.iter().find_map(|key| state.get(key).filter(|inner| inner.is_object())) {
            Some(inner) => state = inner,
            None => break,
        }
    }
    false
}

fn is_messages(list: &Outline) -> bool {
    list.elements().iter().any(|message| {
        let word = message.get("type").and_then(Outline::as_str).unwrap_or_default();
        let constructed = word == "constructor" && message.has_all(&["lc", "id", "kwargs"]);
        let wrapped = message.get("data").and_then(|data| data.get("content")).is_some();
        let said = wrapped || (message.get("content").is_some() && message.get("role").is_none());
        constructed || (said && TYPES.contains(&word) && message.get("source").is_none())
    })
}

fn read(record: &RawRecord) -> Result<Exchange<'_>, RecordError> {
    let raw: &RawValue = record.parse()?;
    if is_array(raw) {
        return Exchange::of_messages(raw, Dialect::LangChain, Object::default());
    }
    let mut row = Object::parse(raw, "record")?;
    let mut aside = Aside::default();
    let conversation = thread(&mut row);
    let mut messages = row.take_if("messages", is_array);
    let mut states = Vec::new();
    while messages.is_none() {
        let outer = states.last_mut().unwrap_or(&mut row);
        let Some(key) = STATES.iter().find(|key| outer.get(key).is_some_and(is_object)) else { break };
        let mut inner = outer.object(key);
        messages = inner.take_if("messages", is_array);
        states.push(inner);
    }
    let is_state = !states.is_empty();
    for state in states {
        row.absorb(state);
    }
    let at = ["created_at", "ts"].into_iter().find_map(|key| row.text(key));
    if is_state {
        for key in CHECKPOINT {
            if row.take(key).is_some() {
                aside.lose(format!("checkpoint.{key}"), "LangGraph's own bookkeeping");
            }
        }
    }
    let mut read = match messages {
        Some(raw) => Exchange::of_messages(raw, Dialect::LangChain, row)?,
        // The state before the first message.
        None if is_state => Exchange { row, ..Exchange::default() },
        None => return Err(missing("messages")),
    };
    if let Some(node) = read.context.last_mut() {
        node.occurrence.at = node.occurrence.at.take().or(at);
    }
    if read.context.is_empty() && conversation.is_none() {
        return Err(missing("messages"));
    }
    read.aside.lost.extend(aside.lost);
    read.conversation = conversation;
    Ok(read)
}

/// The thread that a state belongs to.
fn thread(row: &mut Object<'_>) -> Option<String> {
    let config = row.get("config").and_then(Object::of);
    let named = config.and_then(|mut config| config.object("configurable").id("thread_id"));
    named.or_else(|| row.id("thread_id"))
}
