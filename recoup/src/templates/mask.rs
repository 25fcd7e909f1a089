//! A masked row: token ids, the weight of each, and the spans that the weights come from.

use std::ops::Range;

use super::format::ChatFormat;
use super::proof::prove;
use super::refused::Refused;
use super::spans::{Method, Traced, by_corpus, by_generation, by_prefix, trace};
use super::tokenizer::Encoded;
use super::{Conversation, RenderOptions};

/// A message that is learned from, whole.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target<'a> {
    /// Index into the conversation's messages.
    pub message: usize,
    /// Factor of the loss of its tokens.
    pub weight: f32,
    /// The tokens that the model sampled, where the run recorded them.
    pub completion_ids: Option<&'a [u32]>,
}

/// A row of training, proved.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedRow {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Factor of the loss of each token; 0 for what is only shown.
    pub weights: Vec<f32>,
    /// What is learned, in order.
    pub spans: Vec<MaskedSpan>,
    /// The text that the tokens stand for.
    pub text: String,
    /// Tokens that reach over the edge of a span.
    pub straddling: usize,
    /// Spans whose recorded tokens are not what tokenizing the text again gives; the recorded ones stand
    /// in the row.
    pub recorded_otherwise: usize,
}

/// What is learned from one message.
#[derive(Clone, Debug, PartialEq)]
pub struct MaskedSpan {
    /// Index into the conversation's messages.
    pub message: usize,
    /// Bytes of the row's text, in order; several where the template writes something of its own between.
    pub ranges: Vec<Range<usize>>,
    /// Tokens of the row, one range for each of `ranges`.
    pub tokens: Vec<Range<usize>>,
    /// The two methods that agree on it.
    pub methods: [Method; 2],
}

/// Renders, tokenizes and masks a conversation, and proves the mask.
///
/// # Errors
/// The first obligation that does not hold.
pub fn mask(
    conversation: &Conversation<'_>,
    targets: &[Target<'_>],
    format: &ChatFormat,
) -> Result<MaskedRow, Refused> {
    if targets.is_empty() {
        return Err(Refused::NothingToLearn);
    }
    let rendering = format.render(conversation, RenderOptions::default())?;
    let encoded = format.tokenizer().encode(&rendering.text).map_err(|_| Refused::NotTokenized)?;
    require_room(encoded.ids.len(), format)?;
    let traced = trace(format, conversation, &rendering.text)?;
    let mut row = MaskedRow {
        weights: vec![0.0; encoded.ids.len()],
        ids: encoded.ids.clone(),
        spans: Vec::with_capacity(targets.len()),
        text: rendering.text,
        straddling: 0,
        recorded_otherwise: 0,
    };
    for target in targets {
        let found =
            find(format, conversation, &row.text, &rendering.generated, traced.as_ref(), target.message)?;
        let (ranges, methods) = found;
        let tokens = ranges.iter().map(|range| tokens_of(&encoded, range)).collect();
        let span = MaskedSpan { message: target.message, ranges, tokens, methods };
        row.weigh(&encoded, &span, target.weight);
        row.spans.push(span);
    }
    prove(&row, &encoded, conversation, targets, traced.as_ref(), format)?;
    for (index, target) in targets.iter().enumerate().rev() {
        if let Some(recorded) = target.completion_ids {
            row.take_recorded(index, recorded, target.weight, format)?;
        }
    }
    // Recorded tokens may be more than those that the text is cut into.
    require_room(row.ids.len(), format)?;
    Ok(row)
}

fn require_room(tokens: usize, format: &ChatFormat) -> Result<(), Refused> {
    match format.tokens_max() {
        Some(limit) if tokens > limit => Err(Refused::TooLong { tokens, limit }),
        _ => Ok(()),
    }
}

/// The byte ranges of a message, and the methods that agree on them.
fn find(
    format: &ChatFormat,
    conversation: &Conversation<'_>,
    text: &str,
    generated: &[Range<usize>],
    traced: Option<&Traced>,
    message: usize,
) -> Result<(Vec<Range<usize>>, [Method; 2]), Refused> {
    let written = traced.map(|traced| traced.of(message)).unwrap_or_default();
    if traced.is_some() && written.is_empty() {
        return Err(Refused::NothingToLearn);
    }
    match by_two_methods(format, conversation, text, generated, traced, &written, message) {
        Err(refused @ (Refused::OneMethodOnly | Refused::MethodsDisagree)) if format.is_proved() => {
            let ranges = by_corpus(generated, &written).ok_or(refused)?;
            Ok((ranges, [Method::Generation, Method::Corpus]))
        }
        found => found,
    }
}

fn by_two_methods(
    format: &ChatFormat,
    conversation: &Conversation<'_>,
    text: &str,
    generated: &[Range<usize>],
    traced: Option<&Traced>,
    written: &[usize],
    message: usize,
) -> Result<(Vec<Range<usize>>, [Method; 2]), Refused> {
    let by_sentinels = traced.and_then(|traced| traced.extent(format, text, message));
    if format.marks_generation()
        && let Some(extent) = &by_sentinels
    {
        let ranges = by_generation(generated, extent, written).ok_or(Refused::MethodsDisagree)?;
        return Ok((ranges, [Method::Generation, Method::Sentinels]));
    }
    let by_prefix = by_prefix(format, conversation, text, message)?.ok_or(Refused::OneMethodOnly)?;
    if format.marks_generation() {
        let ranges = by_generation(generated, &by_prefix, written).ok_or(Refused::MethodsDisagree)?;
        return Ok((ranges, [Method::Generation, Method::Prefix]));
    }
    let by_sentinels = by_sentinels.ok_or(Refused::OneMethodOnly)?;
    if by_sentinels.core != by_prefix.core {
        return Err(Refused::MethodsDisagree);
    }
    Ok((vec![by_sentinels.core], [Method::Sentinels, Method::Prefix]))
}

/// The tokens that overlap a byte range.
fn tokens_of(encoded: &Encoded, range: &Range<usize>) -> Range<usize> {
    let start = encoded.ranges.partition_point(|token| token.end <= range.start);
    let rest = encoded.ranges.get(start..).unwrap_or_default();
    start..start + rest.partition_point(|token| token.start < range.end)
}

impl MaskedRow {
    fn weigh(&mut self, encoded: &Encoded, span: &MaskedSpan, weight: f32) {
        for (range, tokens) in span.ranges.iter().zip(&span.tokens) {
            for token in tokens.clone() {
                let (Some(slot), Some(bytes)) = (self.weights.get_mut(token), encoded.ranges.get(token))
                else {
                    continue;
                };
                *slot = weight;
                self.straddling += usize::from(bytes.start < range.start || bytes.end > range.end);
            }
        }
    }

    /// Puts the recorded tokens of a span in the place of those that its text was cut into.
    fn take_recorded(
        &mut self,
        span: usize,
        recorded: &[u32],
        weight: f32,
        format: &ChatFormat,
    ) -> Result<(), Refused> {
        let Some(MaskedSpan { tokens, .. }) = self.spans.get(span) else { return Ok(()) };
        let [tokens] = tokens.as_slice() else { return Err(Refused::RecordedOtherwise) };
        let tokens = tokens.clone();
        let cut = self.ids.get(tokens.clone()).unwrap_or_default();
        // The record may lack the end of the turn, and what the template writes around the message.
        if cut.windows(recorded.len().max(1)).any(|window| window == recorded) {
            return Ok(());
        }
        let decoded = format.tokenizer().decode(recorded).ok_or(Refused::RecordedOtherwise)?;
        let all = cut.len();
        let (start, end) = (1..=all)
            .map(|end| (0, end))
            .chain((1..all).map(|start| (start, all)))
            .find(|(start, end)| format.tokenizer().decode(&cut[*start..*end]).as_ref() == Some(&decoded))
            .ok_or(Refused::RecordedOtherwise)?;
        let (start, end) = (tokens.start + start, tokens.start + end);
        let grown = recorded.len() as isize - (end - start) as isize;
        self.ids.splice(start..end, recorded.iter().copied());
        self.weights.splice(start..end, recorded.iter().map(|_| weight));
        let moved = |at: usize| at.saturating_add_signed(grown);
        for (index, other) in self.spans.iter_mut().enumerate() {
            for range in other.tokens.iter_mut().filter(|range| index == span || range.start >= end) {
                let range_start = if index == span { range.start } else { moved(range.start) };
                *range = range_start..moved(range.end);
            }
        }
        self.recorded_otherwise += 1;
        Ok(())
    }

    /// Tokens that are learned.
    pub fn trained(&self) -> usize {
        self.weights.iter().filter(|weight| **weight != 0.0).count()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{MaskedRow, Target, mask};
    use crate::templates::fixture::{FORGETFUL, MARKED, format, plain_chatml};
    use crate::templates::{Conversation, FormatError, FormatOptions, Method, Refused, TemplateError};

    fn messages() -> Vec<Value> {
        vec![
            json!({"role": "user", "content": "hi"}),
            json!({"role": "assistant", "content": "é hi", "tool_calls": [
                {"type": "function", "function": {"name": "get", "arguments": {"n": 1.0, "s": "hi"}}}]}),
            json!({"role": "tool", "content": "<b>hi</b>"}),
            json!({"role": "assistant", "content": " bye\n"}),
        ]
    }

    fn target(message: usize) -> Target<'static> {
        Target { message, weight: 1.0, completion_ids: None }
    }

    fn masked(template: &str, messages: &[Value], targets: &[Target<'_>]) -> Result<MaskedRow, Refused> {
        let conversation = Conversation { messages, tools: None };
        mask(&conversation, targets, &format(template, &FormatOptions::default()).unwrap())
    }

    /// The learned bytes, span by span.
    fn learned(row: &MaskedRow) -> Vec<String> {
        let format = format(MARKED, &FormatOptions::default()).unwrap();
        let tokens: Vec<(u32, bool)> =
            row.ids.iter().zip(&row.weights).map(|(id, weight)| (*id, *weight != 0.0)).collect();
        let runs = tokens.chunk_by(|left, right| left.1 == right.1).filter(|run| run[0].1);
        let decode = |run: &[(u32, bool)]| {
            let ids: Vec<u32> = run.iter().map(|(id, _)| *id).collect();
            String::from_utf8(format.tokenizer().decode(&ids).unwrap()).unwrap()
        };
        runs.map(decode).collect()
    }

    #[test]
    fn exactly_the_targets_are_learned() {
        let call = "é hi<call>get{\"n\": 1.0, \"s\": \"hi\"}<|im_end|>";
        let row = masked(MARKED, &messages(), &[target(1), target(3)]).unwrap();
        assert_eq!(learned(&row), [format!("{call}\n"), " bye\n<|im_end|>\n".to_owned()]);
        assert_eq!(row.spans[0].methods, [Method::Generation, Method::Sentinels]);
        let row = masked(MARKED, &messages(), &[target(1)]).unwrap();
        assert_eq!(learned(&row), [format!("{call}\n")]);
        let row = masked(&plain_chatml(), &messages(), &[target(1), target(3)]).unwrap();
        assert_eq!(learned(&row), [call, " bye\n<|im_end|>"]);
        assert_eq!(row.spans[1].methods, [Method::Sentinels, Method::Prefix]);
        assert_eq!((row.straddling, row.trained()), (0, learned_len(&row)));
    }

    fn learned_len(row: &MaskedRow) -> usize {
        row.spans.iter().flat_map(|span| &span.tokens).map(std::iter::ExactSizeIterator::len).sum()
    }

    #[test]
    fn of_a_forgetful_template_only_the_last_turn_is_learned() {
        let messages = [
            json!({"role": "user", "content": "1"}),
            json!({"role": "assistant", "content": "2", "reasoning_content": "x"}),
            json!({"role": "user", "content": "3"}),
            json!({"role": "assistant", "content": "4", "reasoning_content": "y"}),
        ];
        let row = masked(FORGETFUL, &messages, &[target(3)]).unwrap();
        assert_eq!(learned(&row), ["<think>y</think>4<|im_end|>"]);
        assert_eq!(masked(FORGETFUL, &messages, &[target(1), target(3)]), Err(Refused::OneMethodOnly));
    }

    #[test]
    fn a_template_that_lies_about_what_is_generated_is_refused() {
        let others = MARKED.replace("m.role == 'assistant'", "m.role != 'tool'");
        let row = masked(&others, &messages(), &[target(3)]).unwrap();
        assert_eq!(learned(&row), [" bye\n<|im_end|>\n"]);
        for (from, to) in [
            // The end of the turn is left out, the header of the message or of the next is taken in.
            ("{{- '<|im_end|>\\n' }}{% endgeneration %}", "{% endgeneration %}{{- '<|im_end|>\\n' }}"),
            ("{{- m.content }}{% for", "{{- 'Sure: ' + m.content }}{% for"),
            ("{{- m.content }}{% for", "{% endgeneration %}{{ m.content }}{% generation %}{% for"),
        ] {
            let lying = MARKED.replace(from, to);
            assert_ne!(lying, MARKED);
            let refused = masked(&lying, &messages(), &[target(3)]);
            if from.starts_with("{{- m") && to.contains("Sure") {
                // The model would have to write it, so it is learned.
                assert_eq!(learned(&refused.unwrap()), ["Sure:  bye\n<|im_end|>\n"]);
            } else {
                assert_eq!(refused, Err(Refused::MethodsDisagree), "{to}");
            }
        }
    }

    #[test]
    fn what_cannot_be_proved_is_refused() {
        assert_eq!(masked(MARKED, &messages(), &[]), Err(Refused::NothingToLearn));
        let silent = [json!({"role": "user", "content": "hi"}), json!({"role": "assistant", "content": ""})];
        assert_eq!(masked(MARKED, &silent, &[target(1)]), Err(Refused::NothingToLearn));
        let thinking = [
            json!({"role": "user", "content": "hi"}),
            json!({"role": "assistant", "content": "ho", "reasoning_content": "hm"}),
        ];
        assert_eq!(masked(MARKED, &thinking, &[target(1)]), Err(Refused::NotWhole));
        let options = FormatOptions { tokens_max: Some(20), ..FormatOptions::default() };
        let conversation = Conversation { messages: &messages(), tools: None };
        let refused = mask(&conversation, &[target(3)], &format(MARKED, &options).unwrap());
        assert!(matches!(refused, Err(Refused::TooLong { limit: 20, .. })));
    }

    #[test]
    fn a_token_over_an_edge_is_counted_or_refused() {
        // The header ends with the `h` of the pair `hi`.
        let template = MARKED.replace("m.role + '\\n' }}", "m.role + '\\nh' }}");
        let template = template.replace("assistant\\n' }}", "assistant\\nh' }}");
        let messages =
            [json!({"role": "user", "content": "x"}), json!({"role": "assistant", "content": "i"})];
        let conversation = Conversation { messages: &messages, tools: None };
        let is_strict = |is_strict| FormatOptions { is_strict, ..FormatOptions::default() };
        let masked = |options| mask(&conversation, &[target(1)], &format(&template, &options).unwrap());
        assert_eq!(masked(is_strict(false)).map(|row| row.straddling), Ok(1));
        assert_eq!(masked(is_strict(true)), Err(Refused::Straddling));
    }

    #[test]
    fn recorded_tokens_win() {
        let messages =
            [json!({"role": "user", "content": "x"}), json!({"role": "assistant", "content": "hi!"})];
        let id =
            |byte: char| format(MARKED, &FormatOptions::default()).unwrap().tokenizer().id(&byte.to_string());
        let (h, i, mark) = (id('h').unwrap(), id('i').unwrap(), id('!').unwrap());
        let pair = id('i').map(|_| 256).unwrap();
        let with = |ids: &[u32]| {
            masked(MARKED, &messages, &[Target { message: 1, weight: 1.0, completion_ids: Some(ids) }])
        };
        let same = with(&[pair, mark]).unwrap();
        assert_eq!(same.recorded_otherwise, 0);
        let other = with(&[h, i, mark, 258]).unwrap();
        assert_eq!((other.recorded_otherwise, other.ids.len()), (1, same.ids.len() + 1));
        assert_eq!(learned(&other), learned(&same));
        assert_eq!(learned_len(&other), other.trained());
        assert_eq!(with(&[mark]), Ok(same.clone()));
        // They must fit too.
        let recorded = [h, i, mark];
        let target = Target { message: 1, weight: 1.0, completion_ids: Some(&recorded) };
        let limited = |limit| {
            let options = FormatOptions { tokens_max: Some(limit), ..FormatOptions::default() };
            let conversation = Conversation { messages: &messages, tools: None };
            mask(&conversation, &[target], &format(MARKED, &options).unwrap()).map(|row| row.ids.len())
        };
        let (limit, tokens) = (same.ids.len(), same.ids.len() + 1);
        assert_eq!((limited(limit), limited(tokens)), (Err(Refused::TooLong { tokens, limit }), Ok(tokens)));
        assert_eq!(with(&[h, h]), Err(Refused::RecordedOtherwise));
    }

    #[test]
    fn a_tokenizer_of_another_model_is_no_format() {
        let llama = MARKED.replace("<|im_end|>", "<|eot_id|>");
        let unknown = FormatError::UnknownToken { token: "<|eot_id|>".to_owned() };
        assert_eq!(format(&llama, &FormatOptions::default()).err(), Some(unknown));
        let endless = MARKED.replace("<|im_end|>", "");
        assert_eq!(format(&endless, &FormatOptions::default()).err(), Some(FormatError::NoEndOfTurn));
        let refusing = format("{{ raise_exception('no') }}", &FormatOptions::default());
        let raised = FormatError::Template(TemplateError::Raised("no".to_owned()));
        assert_eq!(refusing.err(), Some(raised));
    }
}
