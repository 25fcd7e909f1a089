//! Spans from sentinels: who wrote which bytes of a rendering.

use std::ops::Range;

use super::Extent;
use crate::templates::conversation::Anchors;
use crate::templates::format::ChatFormat;
use crate::templates::template::{find_private, free_characters};
use crate::templates::{Conversation, TemplateError};

/// Where the strings of each message begin and end in a rendering.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traced {
    /// Byte of the rendering and the message whose string begins or ends there, in order.
    places: Vec<(usize, usize)>,
}

/// Renders the conversation with sentinels and takes them out again; `None` where the template writes
/// something else because of them.
///
/// # Errors
/// When the template does not end.
pub(crate) fn trace(
    format: &ChatFormat,
    conversation: &Conversation<'_>,
    text: &str,
) -> Result<Option<Traced>, TemplateError> {
    let count = conversation.messages.len();
    let first = free_characters(conversation, count).ok_or(TemplateError::NoMark)?;
    let anchors = Anchors { first };
    let anchored = match format.render_anchored(conversation, anchors) {
        Ok(anchored) => anchored,
        Err(TemplateError::Endless) => return Err(TemplateError::Endless),
        Err(_) => return Ok(None),
    };
    let mut traced = Traced::default();
    let mut matched = 0;
    let mut rest = anchored.as_str();
    while let Some(at) = find_private(rest, |c| anchors.message(c, count).is_some()) {
        let (before, after) = rest.split_at(at);
        if !text.get(matched..).is_some_and(|text| text.starts_with(before)) {
            return Ok(None);
        }
        matched += before.len();
        let mut chars = after.chars();
        let message = chars.next().and_then(|c| anchors.message(c, count));
        traced.places.extend(message.map(|message| (matched, message)));
        rest = chars.as_str();
    }
    Ok((text.get(matched..) == Some(rest)).then_some(traced))
}

impl Traced {
    /// The places of a message.
    pub(crate) fn of(&self, message: usize) -> Vec<usize> {
        self.places.iter().filter(|(_, owner)| *owner == message).map(|(at, _)| *at).collect()
    }

    /// The first place behind a byte.
    pub(crate) fn after(&self, byte: usize) -> Option<usize> {
        self.places.iter().map(|(at, _)| *at).find(|at| *at > byte)
    }

    /// Whether a string of another message begins or ends inside the range.
    pub(crate) fn is_foreign(&self, range: &Range<usize>, message: usize) -> bool {
        let from = self.places.partition_point(|(at, _)| *at <= range.start);
        let inside = self.places.iter().skip(from).take_while(|(at, _)| *at < range.end);
        inside.into_iter().any(|(_, owner)| *owner != message)
    }

    /// The extent of a message, or `None` where nothing of it is rendered, strings of others stand
    /// between its own, or no token ends it.
    pub(crate) fn extent(&self, format: &ChatFormat, text: &str, message: usize) -> Option<Extent> {
        let is_own = |(_, owner): &(usize, usize)| *owner == message;
        let first = self.places.iter().position(is_own)?;
        let last = self.places.iter().rposition(is_own)?;
        if !self.places.get(first..=last)?.iter().all(is_own) {
            return None;
        }
        let place = |index: usize| self.places.get(index).map(|(at, _)| *at);
        let (written_start, written_end) = (place(first)?, place(last)?);
        let gap_start = first.checked_sub(1).and_then(place).unwrap_or(0);
        let gap_end = place(last + 1).unwrap_or(text.len());
        let prompt = format.prompt_in(text.get(gap_start..written_start)?);
        let (outer_start, start) = match prompt {
            Some(range) => (gap_start + range.start, gap_start + range.end),
            None => return None,
        };
        let mut specials = format.tokenizer().specials(text, written_end..gap_end);
        let end = specials.find(|(_, id)| format.ends_turn(*id))?.0.end;
        let after = text.get(end..gap_end)?;
        let outer_end = end + (after.len() - after.trim_start().len());
        Some(Extent { core: start..end, outer: outer_start..outer_end })
    }
}
