//! OpenAI chat messages: what most harnesses log and every fine-tuning file holds.
//!
//! A record is `{"messages": […], "tools": […], …}`, one a line, in an array, or alone in its file; or
//! a bare array of messages. The row around the messages carries what its author knew: ids, task,
//! outcome ([`super::row`]). Requests with their responses are read too: those of one conversation are
//! one run ([`super::histories`]). Messages may have the fields that providers added: reasoning under three
//! names, the deprecated `function_call`, a training `weight`. A row of two answers to one context is a
//! tree ([`preference`]).

mod preference;
mod tools;

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use self::tools::LastTools;
pub(super) use self::tools::{tool, tools};
use super::dialect::{Dialect, push_messages};
use super::histories::import_log;
use super::object::{Object, Text, missing};
use super::slice::{self, RawRecord, Stop};
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source, row};
use crate::task::Task;
use crate::trajectory::{Tool, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "openai-chat";

/// Rows of chat messages.
pub(super) struct OpenAiChat;

impl Importer for OpenAiChat {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "rows with `messages`, or an array of them, whose items have a chat `role` and `content`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_conversation)
            || probe.records().iter().any(|record| {
                is_conversation(record.get("messages").unwrap_or(record))
                    || preference::is_preference(record)
                    || is_exchange(record)
            })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        if probe.records().iter().any(is_exchange) {
            return import_log(source, &probe, probe.layout(), Dialect::Chat, FORMAT, sink);
        }
        let layout = probe.layout_or_list(is_conversation);
        let scoring = &source.options().scoring;
        let offered = LastTools::default();
        slice::each(source, layout, sink, |record, sink| read(record, &offered, scoring, sink))
    }
}

/// True for a request with its response, as proxies and batches log them.
fn is_exchange(record: &Outline) -> bool {
    let response = record.get("response").map(|response| response.get("body").unwrap_or(response));
    let choice = response.and_then(|response| response.get("choices")).and_then(Outline::first);
    let request = ["request", "body"].iter().find_map(|key| record.get(key)?.get("messages"));
    choice.is_some_and(|choice| choice.get("message").is_some()) || request.is_some_and(is_conversation)
}

/// True for an array that starts with a chat message.
pub(super) fn is_conversation(outline: &Outline) -> bool {
    outline.first().is_some_and(|message| {
        let role = message.get("role").and_then(Outline::as_str);
        let known = ["system", "developer", "user", "assistant", "tool", "function"];
        let says = ["content", "tool_calls", "function_call", "refusal"];
        role.is_some_and(|role| known.contains(&role)) && says.iter().any(|key| message.get(key).is_some())
    })
}

/// A row with its messages already apart: they are most of its bytes, and this way each is scanned
/// once less.
struct Row<'a> {
    messages: Option<Vec<Object<'a>>>,
    rest: Object<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Row<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Row<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a row of chat messages")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut messages, mut rest) = (None, Object::default());
                while let Some(Text(key)) = map.next_key()? {
                    if key == "messages" {
                        messages = map.next_value()?;
                    } else {
                        rest.push(key, map.next_value()?);
                    }
                }
                Ok(Row { messages, rest })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

fn read(record: &RawRecord, offered: &LastTools, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let mut losses = BTreeSet::new();
    let Row { messages, mut rest } = if record.bytes.starts_with(b"[") {
        Row { messages: Some(record.parse()?), rest: Object::default() }
    } else {
        record.parse()?
    };
    let native = if messages.is_none() && preference::has_answers(&rest) {
        preference::read(rest, &mut run, scoring, &mut losses)?
    } else {
        push_messages(messages.ok_or_else(|| missing("messages"))?, &mut run, &mut losses)?;
        for key in ["tools", "functions"] {
            take_tools_with(&mut rest, key, &mut run, &mut losses, |raw, format, losses| {
                offered.read(raw, format, losses)
            });
        }
        row::settle(&mut run, rest, scoring)
    };
    emit_losses(losses, sink)?;
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

/// Takes tool definitions out of a row; what is not a list of them stays there.
pub(super) fn take_tools(row: &mut Object<'_>, key: &str, run: &mut Trajectory, losses: &mut BTreeSet<Loss>) {
    take_tools_with(row, key, run, losses, tools);
}

/// The same, where the list is read otherwise.
fn take_tools_with(
    row: &mut Object<'_>,
    key: &str,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
    read: impl FnOnce(&RawValue, &str, &mut BTreeSet<Loss>) -> Option<Vec<Tool>>,
) {
    if let Some(found) = row.get(key).and_then(|raw| read(raw, &run.source.format, losses)) {
        row.take(key);
        run.tools.extend(found);
    }
}

/// Hands a run's losses on.
pub(super) fn emit_losses(losses: BTreeSet<Loss>, sink: &mut dyn Sink) -> Result<(), Stop> {
    losses.into_iter().try_for_each(|loss| sink.loss(loss))?;
    Ok(())
}
