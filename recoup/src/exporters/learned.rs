//! Learned: what an example learns of each of its chat messages.

use serde_json::Value;

use super::Refusal;
use crate::trajectory::Role;
use crate::views::Example;

/// What is learned of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// Nothing.
    Nothing,
    /// All that the policy wrote in it, with weight 1.
    All,
    /// A part of it.
    Part,
}

/// What is learned of each chat message, with the position in the example's context of the message that it is;
/// `None` where it is not the assistant's. Chat messages of the assistant are as many and in the same order as the
/// example's.
pub(super) fn learned(example: &Example, messages: &[Value]) -> Vec<Option<(usize, Learned)>> {
    let mut shown = example.context.iter().enumerate().filter(|(_, shown)| shown.role == Role::Assistant);
    let learned = |message: &Value| {
        if message["role"] != "assistant" {
            return None;
        }
        let index = shown.next()?.0;
        let learned = if example.segments_of(index).next().is_none() {
            Learned::Nothing
        } else if example.learns_all_of(index) {
            Learned::All
        } else {
            Learned::Part
        };
        Some((index, learned))
    };
    messages.iter().map(learned).collect()
}

/// The same for formats that know no parts: whether each assistant message is learned.
///
/// # Errors
/// Where one is learned in part.
pub(super) fn learned_whole(
    example: &Example,
    messages: &[Value],
) -> Result<Vec<Option<(usize, bool)>>, Refusal> {
    let whole = |learned: Option<(usize, Learned)>| match learned {
        None => Ok(None),
        Some((index, Learned::Nothing)) => Ok(Some((index, false))),
        Some((index, Learned::All)) => Ok(Some((index, true))),
        Some((_, Learned::Part)) => Err(Refusal::because("a-part-of-a-message-is-learned")),
    };
    learned(example, messages).into_iter().map(whole).collect()
}

/// # Errors
/// Where an assistant message is not learned as a whole.
pub(super) fn require_all(example: &Example) -> Result<(), Refusal> {
    let mut messages = example.context.iter().enumerate();
    let all =
        messages.all(|(index, message)| message.role != Role::Assistant || example.learns_all_of(index));
    if all { Ok(()) } else { Err(Refusal::MASK) }
}

/// # Errors
/// Unless the last message, the assistant's, is all that is learned.
pub(super) fn require_last(example: &Example) -> Result<(), Refusal> {
    let last = example.context.len().checked_sub(1).ok_or(Refusal::because("no-message"))?;
    let is_the_assistants = example.context.get(last).is_some_and(|message| message.role == Role::Assistant);
    if !is_the_assistants || !example.learns_all_of(last) {
        return Err(Refusal::because("last-message-is-not-learned"));
    }
    if example.segments.iter().any(|segment| segment.message != last) {
        return Err(Refusal::because("several-learned-messages"));
    }
    Ok(())
}
