//! The proof of a mask: every obligation, checked on the finished row, not on how it was made.

use std::ops::Range;

use serde_json::Value as Json;

use super::Conversation;
use super::format::ChatFormat;
use super::mask::{MaskedRow, MaskedSpan, Target};
use super::python::text::is_space;
use super::refused::Refused;
use super::spans::Traced;
use super::tokenizer::Encoded;

/// Checks a row against what was rendered and encoded.
///
/// # Errors
/// The first obligation that does not hold.
pub(super) fn prove(
    row: &MaskedRow,
    encoded: &Encoded,
    conversation: &Conversation<'_>,
    targets: &[Target<'_>],
    traced: Option<&Traced>,
    format: &ChatFormat,
) -> Result<(), Refused> {
    if row.ids != encoded.ids || row.weights.len() != encoded.ranges.len() {
        return Err(Refused::OutsideOfSpans);
    }
    weighted_tokens_lie_in_spans(row, encoded, targets)?;
    if format.is_strict() && row.straddling > 0 {
        return Err(Refused::Straddling);
    }
    for span in &row.spans {
        if let Some(traced) = traced
            && span.ranges.iter().any(|range| traced.is_foreign(range, span.message))
        {
            return Err(Refused::ForeignText);
        }
        ends_its_turn(row, span, format)?;
        let decoded = decodes_to_its_text(row, encoded, span, format)?;
        let message = conversation.messages.get(span.message).ok_or(Refused::NothingToLearn)?;
        if !is_whole(message, &decoded) {
            return Err(Refused::NotWhole);
        }
    }
    Ok(())
}

/// Each token's weight is that of the target whose span it overlaps, or 0 where it overlaps none.
fn weighted_tokens_lie_in_spans(
    row: &MaskedRow,
    encoded: &Encoded,
    targets: &[Target<'_>],
) -> Result<(), Refused> {
    let weights = row.spans.iter().zip(targets).flat_map(|(span, target)| {
        span.ranges
            .iter()
            .map(move |range| (range, if span.message == target.message { target.weight } else { f32::NAN }))
    });
    let mut expected: Vec<(&Range<usize>, f32)> = weights.collect();
    expected.sort_by_key(|(range, _)| range.start);
    let mut spans = expected.iter().peekable();
    for (token, weight) in encoded.ranges.iter().zip(&row.weights) {
        while spans.next_if(|(range, _)| range.end <= token.start).is_some() {}
        let wanted =
            spans.peek().filter(|(range, _)| token.end > range.start).map_or(0.0, |(_, weight)| *weight);
        if wanted.to_bits() != weight.to_bits() {
            return Err(Refused::OutsideOfSpans);
        }
    }
    Ok(())
}

/// The last special token of a span ends the turn, and is learned.
fn ends_its_turn(row: &MaskedRow, span: &MaskedSpan, format: &ChatFormat) -> Result<(), Refused> {
    let last = span.tokens.last().cloned().unwrap_or_default();
    let tokens =
        row.ids.get(last.clone()).unwrap_or_default().iter().zip(row.weights.get(last).unwrap_or_default());
    let is_learned = tokens.rev().any(|(id, weight)| format.ends_turn(*id) && *weight != 0.0);
    is_learned.then_some(()).ok_or(Refused::EndOfTurn)
}

/// The learned tokens stand for the span's text, byte for byte, or for what the tokenizer's own
/// normalization makes of it. Tokens over an edge bring the text they stand for.
fn decodes_to_its_text(
    row: &MaskedRow,
    encoded: &Encoded,
    span: &MaskedSpan,
    format: &ChatFormat,
) -> Result<String, Refused> {
    let mut whole = String::new();
    for (range, tokens) in span.ranges.iter().zip(&span.tokens) {
        let bytes = encoded.ranges.get(tokens.clone()).unwrap_or_default();
        let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
            return Err(Refused::NothingToLearn);
        };
        let stands_for = range.start.min(first.start)..range.end.max(last.end);
        let text = row.text.get(stands_for).ok_or(Refused::DecodesOtherwise)?;
        let decoded = row.ids.get(tokens.clone()).and_then(|ids| format.tokenizer().decode(ids));
        let decoded = decoded.ok_or(Refused::DecodesOtherwise)?;
        let is_same = decoded == text.as_bytes()
            || format.tokenizer().normalized(text).is_some_and(|normal| decoded == normal.as_bytes());
        if !is_same {
            return Err(Refused::DecodesOtherwise);
        }
        whole.push_str(text);
    }
    Ok(whole)
}

/// Whether every string of a message stands in its text: plainly, or as JSON writes it. Reasoning that
/// stands inside the content may have been moved.
fn is_whole(message: &Json, text: &str) -> bool {
    let mut strings = Vec::new();
    for key in ["content", "reasoning_content", "thinking", "reasoning"] {
        strings_of(message.get(key), &mut strings);
    }
    for call in message.get("tool_calls").and_then(Json::as_array).into_iter().flatten() {
        let function = call.get("function").unwrap_or(call);
        strings_of(function.get("name"), &mut strings);
        strings_of(function.get("arguments"), &mut strings);
    }
    strings.into_iter().all(|string| {
        stands_in(string, text)
            || string
                .split("<think>")
                .flat_map(|piece| piece.split("</think>"))
                .all(|piece| stands_in(piece, text))
    })
}

fn stands_in(string: &str, text: &str) -> bool {
    let string = string.trim_matches(is_space);
    let escaped = || serde_json::to_string(string).unwrap_or_default();
    string.is_empty() || text.contains(string) || text.contains(escaped().trim_matches('"'))
}

fn strings_of<'a>(value: Option<&'a Json>, out: &mut Vec<&'a str>) {
    match value {
        Some(Json::String(text)) => out.push(text),
        Some(Json::Array(items)) => items.iter().for_each(|item| strings_of(Some(item), out)),
        Some(Json::Object(members)) => {
            let written = members.iter().filter(|(key, _)| *key != "type");
            written.for_each(|(_, value)| strings_of(Some(value), out));
        }
        _ => {}
    }
}
