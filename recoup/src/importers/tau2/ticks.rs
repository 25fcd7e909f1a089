//! Ticks of a voice run: slices of a fifth of a second in which both sides may speak at once.
//!
//! Slices in which one side goes on speaking join to one message. Published runs have no words in
//! their ticks; they give a run without messages.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::message::{called, requested_by_user, result};
use crate::importers::RecordError;
use crate::importers::object::Object;
use crate::json::Json;
use crate::trajectory::{Node, Part, Role, TextPart, Trajectory};
use crate::warning::Loss;

/// Reads a run's ticks. Where the run has messages too, they say all that the ticks do.
pub(super) fn read(
    ticks: &[&RawValue],
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    run.extra.insert("tick_count".to_owned(), Json::from_foreign(&ticks.len().to_string()));
    if !ticks.is_empty() {
        losses.insert(Loss::new(super::FORMAT, "ticks[]", "timing and effects of speech are not carried"));
    }
    if !run.nodes.is_empty() {
        return Ok(());
    }
    for raw in ticks {
        let mut tick = Object::parse(raw, "ticks[]")?;
        let at = tick.text("timestamp");
        for (role, chunk, calls, results) in [
            (Role::Assistant, "agent_chunk", "agent_tool_calls", "agent_tool_results"),
            (Role::User, "user_chunk", "user_tool_calls", "user_tool_results"),
        ] {
            speak(&mut tick.object(chunk), role, at.as_deref(), run);
            let parts = tick.list(calls).unwrap_or_default().into_iter().map(|raw| Ok(called(raw)?.0));
            let parts = parts.collect::<Result<Vec<Part>, RecordError>>()?;
            append(Node::new(role, role.as_str(), parts), at.as_deref(), run);
            let answers = tick.list(results).unwrap_or_default().into_iter();
            let answers = answers.map(|raw| Ok(result(&mut Object::parse(raw, results)?)));
            let answers = answers.collect::<Result<Vec<Part>, RecordError>>()?;
            let mut node = Node::new(Role::Tool, Role::Tool.as_str(), answers);
            node.occurrence.extra = (role == Role::User).then(requested_by_user).flatten();
            append(node, at.as_deref(), run);
        }
    }
    Ok(())
}

/// Adds what one side says in this slice to what it was saying.
fn speak(chunk: &mut Object<'_>, role: Role, at: Option<&str>, run: &mut Trajectory) {
    let Some(words) = chunk.text("content").filter(|words| !words.is_empty()) else { return };
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
