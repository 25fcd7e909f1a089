//! Labelled chat: rows of messages beside the step and agent that people blamed, as data sets for
//! failure attribution are unified (`TrajErrBench`, `TracerTraj` written as JSONL).
//!
//! The messages stand under `messages`, `trajectory` or `history`; the label beside them or in a member
//! `label`. Steps count messages from 0, prompts included, and may be numbers or strings. A label may
//! stand on a prompt: it keeps its place and is no agent's turn.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::dialect::push_messages;
use super::object::{Object, missing};
use super::openai_chat::{emit_losses, take_tools};
use super::slice::{self, RawRecord, Stop};
use super::value::{json_object, value};
use super::{ImportError, Importer, Outline, Probe, RecordError, Scoring, Sink, Source, row, who_and_when};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::Trajectory;
use crate::verdict::ReferenceLabel;

const FORMAT: &str = "labelled-chat";

/// Names of the messages.
const MESSAGES: [&str; 3] = ["messages", "trajectory", "history"];
/// Names of the label's step, agent and reason.
const STEPS: [&str; 4] = ["mistake_step", "error_step", "failure_step", "root_cause_step"];
const AGENTS: [&str; 4] = ["mistake_agent", "error_agent", "failure_agent", "root_cause_agent"];
const REASONS: [&str; 4] = ["mistake_reason", "error_reason", "failure_reason", "root_cause_reason"];
/// The member that may hold the label.
const LABEL: &str = "label";

/// Rows of messages with a label.
pub(super) struct LabelledChat;

impl Importer for LabelledChat {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "rows with `messages` and a label such as `mistake_step` or `error_step`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            let labelled = |record: &Outline| STEPS.iter().any(|key| record.get(key).is_some());
            let speaks = |messages: &Outline| {
                messages.first().is_some_and(|message| message.has_all(&["role", "content"]))
            };
            (labelled(record) || record.get(LABEL).is_some_and(labelled))
                && MESSAGES.iter().any(|key| record.get(key).is_some_and(speaks))
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
    let name = MESSAGES.into_iter().find(|key| row.has(key)).ok_or_else(|| missing(MESSAGES[0]))?;
    let messages: Vec<&RawValue> = row.required(name)?;
    if messages.first().is_some_and(|first| has_chat_role(first)) {
        let messages = messages.into_iter().map(|raw| Object::parse(raw, name));
        push_messages(messages.collect::<Result<_, _>>()?, &mut run, &mut losses)?;
    } else {
        for (index, raw) in messages.into_iter().enumerate() {
            let node = who_and_when::message(raw, index == 0)
                .map_err(|error| RecordError::new(error.code, format!("{name}[{index}]: {error}")))?;
            run.push(node);
        }
    }
    take_tools(&mut row, "tools", &mut run, &mut losses);
    let label = label(&mut row, run.nodes.len());
    let native = row::settle(&mut run, row, scoring);
    emit_losses(losses, sink)?;
    record.emit(sink, run, native, label.into_iter().collect(), 0)?;
    Ok(())
}

/// Whether a message names one of the roles of chats, and not an agent, in `role`.
fn has_chat_role(raw: &RawValue) -> bool {
    let role = value::<Object<'_>>(raw).and_then(|mut message| message.text("role"));
    role.is_some_and(|role| {
        ["system", "developer", "user", "assistant", "tool", "function"].contains(&role.as_str())
    })
}

/// Takes the label out of a row: people's answer, which no judge may see.
fn label(row: &mut Object<'_>, nodes: usize) -> Option<ReferenceLabel> {
    let mut nested = row.object(LABEL);
    let mut native: Vec<(&str, Json)> = Vec::new();
    let mut take = |keys: [&'static str; 4]| {
        let (key, raw) =
            keys.into_iter().find_map(|key| Some((key, row.take(key).or_else(|| nested.take(key))?)))?;
        native.push((key, raw.into()));
        Some(super::value::text_or_source(raw))
    };
    // Without a step there is no label, and what stands beside it is still an answer.
    let (step, agent, reason) = (take(STEPS), take(AGENTS), take(REASONS));
    let step = step?;
    Some(ReferenceLabel {
        source: FORMAT.to_owned(),
        index_base: 0,
        native: json_object(native)?,
        node: step.trim().parse().ok().filter(|step| *step < nodes),
        agent,
        reason,
    })
}
