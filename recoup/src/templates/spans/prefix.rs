//! Spans as what a rendering gains by a message: only for templates that render the start of a
//! conversation as the start of its rendering.

use super::Extent;
use crate::templates::format::ChatFormat;
use crate::templates::{Conversation, RenderOptions, TemplateError};

/// The extent of a message, or `None` where the template renders it otherwise than as the continuation
/// of what came before.
///
/// # Errors
/// When the template does not end.
pub(crate) fn by_prefix(
    format: &ChatFormat,
    conversation: &Conversation<'_>,
    text: &str,
    message: usize,
) -> Result<Option<Extent>, TemplateError> {
    let render = |count: usize, add_generation_prompt: bool| {
        let Some(messages) = conversation.messages.get(..count) else { return Ok(None) };
        let start = Conversation { messages, ..*conversation };
        match format.render(&start, RenderOptions { add_generation_prompt }) {
            Ok(rendering) => Ok(text.starts_with(&rendering.text).then_some(rendering.text.len())),
            Err(TemplateError::Endless) => Err(TemplateError::Endless),
            // A template may refuse a conversation that ends here and take the whole one.
            Err(_) => Ok(None),
        }
    };
    // Only generation spans are compared with where a message's own prompt begins.
    let bare = if format.marks_generation() { render(message, false)? } else { None };
    let (Some(start), Some(end)) = (render(message, true)?, render(message + 1, false)?) else {
        return Ok(None);
    };
    if start >= end {
        return Ok(None);
    }
    let mut core_end = start;
    let mut last_end_of_turn = None;
    while let Some((range, id)) = format.tokenizer().next_special(text, core_end..end) {
        core_end = range.end;
        if format.ends_turn(id) {
            last_end_of_turn = Some(range.end);
        }
    }
    let Some(core_end) = last_end_of_turn else { return Ok(None) };
    let outer_start = bare.filter(|bare| *bare <= start).unwrap_or(start);
    Ok(Some(Extent { core: start..core_end, outer: outer_start..end }))
}
