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
    let ends = format.tokenizer().specials(text, start..end).filter(|(_, id)| format.ends_turn(*id));
    let Some(core_end) = ends.last().map(|(range, _)| range.end) else { return Ok(None) };
    // Where the template does not say what is generated, what it writes behind the end of the turn would be left out.
    let is_end = |rest: &str| format.marks_generation() || rest.trim().is_empty();
    if !text.get(core_end..end).is_some_and(is_end) {
        return Ok(None);
    }
    let outer_start = bare.filter(|bare| *bare <= start).unwrap_or(start);
    Ok(Some(Extent { core: start..core_end, outer: outer_start..end }))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::templates::fixture::{QUOTING, format};
    use crate::templates::{Conversation, FormatOptions, Refused, Target, mask};

    /// The learned text of the model's one message.
    fn learned(template: &str, messages: &[Value]) -> Result<String, Refused> {
        let format = format(template, &FormatOptions::default()).unwrap();
        let target = Target { message: 1, weight: 1.0, completion_ids: None };
        let row = mask(&Conversation { messages, tools: None }, &[target], &format)?;
        Ok(row.text[row.spans[0].ranges[0].clone()].to_owned())
    }

    #[test]
    fn a_quote_behind_the_last_string_of_a_call_does_not_end_the_turn() {
        let call = json!({"type": "function", "function": {"name": "get", "arguments": {"a": "2"}}});
        let messages = [
            json!({"role": "user", "content": "hi"}),
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "content": "3"}),
        ];
        let whole = "<call>geta:<|\"|>2<|\"|></call><|tool|>";
        for end in [2, 3] {
            assert_eq!(learned(QUOTING, &messages[..end]).as_deref(), Ok(whole));
        }
        // Without a token that ends it, nobody knows where the turn ends.
        let open = QUOTING.replace("'<|tool|>' if m.tool_calls", "'' if m.tool_calls");
        assert_eq!(learned(&open, &messages), Err(Refused::OneMethodOnly));
        // What the message writes behind its end would not be learned.
        let trailing = QUOTING.replace("'<|tool|>'", "'<|tool|>over'");
        assert_eq!(learned(&trailing, &messages), Err(Refused::OneMethodOnly));
    }
}
