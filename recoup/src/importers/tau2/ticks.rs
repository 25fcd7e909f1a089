//! Ticks of a voice run: slices of a fifth of a second in which both sides may speak at once.
//!
//! Slices in which one side goes on speaking join to one message. Published runs have no words in
//! their ticks; they give a run without messages.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::message::{called, requested_by_user, result};
use crate::importers::RecordError;
use crate::importers::object::{Object, elements, is_array, is_object};
use crate::json::Json;
use crate::trajectory::{Node, Part, Role, TextPart, Trajectory};
use crate::warning::Loss;

/// Reads a run's ticks. Where the run has messages too, they say all that the ticks do.
pub(super) fn read(
    raw: &RawValue,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    let ticks = elements(raw, "ticks")?;
    run.extra.insert("tick_count".to_owned(), Json::from_foreign(&ticks.len().to_string()));
    if !ticks.is_empty() {
        losses.insert(Loss::new(super::FORMAT, "ticks[]", "timing and effects of speech are not carried"));
    }
    if !run.nodes.is_empty() {
        return Ok(());
    }
    for raw in ticks {
        let mut tick = Object::parse(raw, "ticks[]")?;
        let at = tick.take_text("timestamp").map(Cow::into_owned);
        for (role, chunk, calls, results) in [
            (Role::Assistant, "agent_chunk", "agent_tool_calls", "agent_tool_results"),
            (Role::User, "user_chunk", "user_tool_calls", "user_tool_results"),
        ] {
            if let Some(raw) = tick.take_if(chunk, is_object) {
                speak(&mut Object::parse(raw, chunk)?, role, at.as_deref(), run);
            }
            let parts = list(&mut tick, calls)?.into_iter().map(|raw| Ok(called(raw)?.0));
            let parts = parts.collect::<Result<Vec<Part>, RecordError>>()?;
            append(Node::new(role, role.as_str(), parts), at.as_deref(), run);
            let answers = list(&mut tick, results)?.into_iter();
            let answers = answers.map(|raw| Ok(result(&mut Object::parse(raw, results)?)));
            let answers = answers.collect::<Result<Vec<Part>, RecordError>>()?;
            let mut node = Node::new(Role::Tool, Role::Tool.as_str(), answers);
            node.occurrence.extra = (role == Role::User).then(requested_by_user);
            append(node, at.as_deref(), run);
        }
    }
    Ok(())
}

fn list<'a>(tick: &mut Object<'a>, key: &str) -> Result<Vec<&'a RawValue>, RecordError> {
    tick.take_if(key, is_array).map_or_else(|| Ok(Vec::new()), |raw| elements(raw, key))
}

/// Adds what one side says in this slice to what it was saying.
fn speak(chunk: &mut Object<'_>, role: Role, at: Option<&str>, run: &mut Trajectory) {
    let Some(words) = chunk.take_text("content").filter(|words| !words.is_empty()) else { return };
    if let Some(last) = run.nodes.last_mut()
        && last.role == role
        && let [Part::Text(TextPart { text })] = last.parts.as_mut_slice()
    {
        text.push_str(&words);
        return;
    }
    append(Node::new(role, role.as_str(), vec![Part::text(words)]), at, run);
}

fn append(mut node: Node, at: Option<&str>, run: &mut Trajectory) {
    if !node.parts.is_empty() {
        node.occurrence.at = at.map(str::to_owned);
        node.occurrence.sampled = node.role == Role::Assistant;
        run.push(node);
    }
}
