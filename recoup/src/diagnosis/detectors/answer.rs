//! A final answer whose numbers or names occur in no earlier message.

use std::ops::Range;

use super::{Detector, Run, finding, quoted};
use crate::diagnosis::effects::Effect;
use crate::diagnosis::words::{numbers, words};
use crate::trajectory::Citation;
use crate::verdict::Finding;

/// See the module.
pub(super) struct UnsupportedAnswer;

/// Unsupported words cited at most.
const CITED_MAX: usize = 4;

/// Longest answer looked at: past it, it is a document, and not every word of a document is a fact.
const ANSWER_MAX: usize = 4_000;

impl Detector for UnsupportedAnswer {
    fn name(&self) -> &'static str {
        "unsupported-answer"
    }

    fn capability(&self) -> &'static str {
        "answer_grounding"
    }

    fn describe(&self) -> &'static str {
        "numbers or names in the final answer occur in no observation"
    }

    fn detect(&self, run: &Run<'_>, findings: &mut Vec<Finding>) {
        // An answer rests on observations only where there are any.
        if !run.actions.iter().any(|action| action.observation.is_some()) {
            return;
        }
        for answer in answers(run) {
            if answer.text.len() > ANSWER_MAX {
                continue;
            }
            let (strength, ranges) = if answer.is_submitted && is_short(answer.text) {
                unobserved(run, &answer)
            } else {
                unsupported(run, &answer)
            };
            let Some(first) = ranges.first() else { continue };
            let message = format!(
                "The answer states {}, which no observation holds and none implies.",
                quoted(&answer.text[first.clone()])
            );
            let citations = ranges.iter().take(CITED_MAX).map(|range| Citation {
                node: answer.node,
                part_path: vec![answer.part],
                start: answer.offset + range.start,
                end: answer.offset + range.end,
            });
            findings.push(finding(self, answer.node, strength, message, citations));
        }
    }
}

/// A text that hands something over.
struct Answer<'a> {
    node: usize,
    index: usize,
    part: usize,
    offset: usize,
    text: &'a str,
    /// Handed in by an action, not said in a message.
    is_submitted: bool,
}

/// What a submission holds, else what the agent says after its last action.
fn answers<'a>(run: &Run<'a>) -> Vec<Answer<'a>> {
    let last = run.actions.last();
    if let Some(submission) = last.filter(|action| action.effect == Effect::Submit) {
        let part = submission.citation();
        return part
            .map(|at| Answer {
                node: submission.node,
                index: submission.index,
                part: at.part_path[0],
                offset: at.start,
                text: submission.raw,
                is_submitted: true,
            })
            .into_iter()
            .collect();
    }
    let after = last.map_or(0, |action| action.index);
    run.messages
        .iter()
        .filter(|message| message.index > after)
        .map(|message| Answer {
            node: message.node,
            index: message.index,
            part: message.part,
            offset: 0,
            text: message.text,
            is_submitted: false,
        })
        .collect()
}

/// A word or a name handed in by itself, as answers to questions are.
fn is_short(text: &str) -> bool {
    text.len() <= 80 && !text.trim_start().starts_with(['{', '[', '"']) && words(text).count() <= 8
}

/// Words of a short answer that stand in no question and no observation. The agent's own thoughts do not
/// count: an answer must rest on what was seen.
fn unobserved(run: &Run<'_>, answer: &Answer<'_>) -> (f64, Vec<Range<usize>>) {
    let content: Vec<_> = words(answer.text)
        .filter(|word| {
            word.has_digit || (word.range.len() >= 4 && starts_upper(&answer.text[word.range.clone()]))
        })
        .collect();
    let missing: Vec<Range<usize>> = content
        .iter()
        .filter(|word| !run.is_observed_before(word, answer.index))
        .map(|word| word.range.clone())
        .collect();
    // Wholly from memory it may still be right; a name half seen is half made up.
    (if missing.len() == content.len() { 0.3 } else { 0.5 }, missing)
}

fn starts_upper(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

/// Numbers of three digits or more, or with a fraction, and names with digits, none of them seen or
/// reckoned before; with how sure that is.
fn unsupported(run: &Run<'_>, answer: &Answer<'_>) -> (f64, Vec<Range<usize>>) {
    let code = fenced(answer.text);
    let in_code = |at: usize| code.iter().any(|range| range.contains(&at));
    let mut strength: f64 = 0.0;
    let mut ranges = Vec::new();
    for number in numbers(answer.text) {
        let written = &answer.text[number.range.clone()];
        let is_bare =
            !number.is_decimal && !written.contains(',') && !priced(answer.text, number.range.start);
        let is_year = is_bare && (190_000..=210_000).contains(&number.hundredths);
        let is_share = answer.text[number.range.end..].trim_start().starts_with('%');
        if number.digit_count < 3
            || is_year
            || is_share
            || in_code(number.range.start)
            || run.is_seen_before(written, answer.index)
            || run.is_number_grounded(number.hundredths, answer.index)
        {
            continue;
        }
        strength = strength.max(if number.digit_count >= 4 { 0.55 } else { 0.45 });
        ranges.push(number.range);
    }
    for word in words(answer.text) {
        let written = &answer.text[word.range.clone()];
        if !word.has_digit
            || !word.has_letter
            || written.len() < 4
            || is_quantity(written)
            || in_code(word.range.start)
            || run.is_seen_before(written, answer.index)
        {
            continue;
        }
        strength = strength.max(0.65);
        ranges.push(word.range);
    }
    ranges.sort_by_key(|range| range.start);
    (strength, ranges)
}

/// A currency sign stands before it.
fn priced(text: &str, at: usize) -> bool {
    text[..at].trim_end().ends_with(['$', '€', '£', '¥'])
}

/// `25kg`, `2nd`, `10am`.
fn is_quantity(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < word.len() && unit.len() <= 3 && unit.chars().all(char::is_alphabetic)
}

/// Fenced blocks: code that the agent wrote is not a claim.
fn fenced(text: &str) -> Vec<Range<usize>> {
    let marks: Vec<usize> = memchr::memmem::find_iter(text.as_bytes(), "```").collect();
    marks.chunks(2).map(|pair| pair[0]..pair.get(1).copied().unwrap_or(text.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::UnsupportedAnswer;
    use crate::diagnosis::fixture::{call, chat, detect, result, say, user};

    fn answered(text: &str) -> crate::trajectory::Trajectory {
        let order = result(r#"{"price": 1520, "fee": 60.5, "flight": "HAT012"}"#);
        chat(vec![user("what is it?"), call("get_order", r#"{"id":7}"#), order, say(text)])
    }

    #[test]
    fn a_number_or_a_code_from_nowhere_is_cited() {
        let run = answered("It costs $1,987 on flight HAT777.");
        let found = detect(&UnsupportedAnswer, &run, &[]);
        assert_eq!(found.len(), 1);
        let quotes: Vec<_> = found[0].citations.iter().map(|at| at.quote(&run).unwrap()).collect();
        assert_eq!(quotes, ["1,987", "HAT777"]);
    }

    #[test]
    fn what_was_observed_or_reckoned_is_supported() {
        for text in [
            "It costs $1,520.00 on HAT012, 1,580.50 with the fee.",
            "Two of them cost 3040, about 12 % more, in 2024, with 25kg, at 10:30.",
            "```\nx = 98765\n```",
        ] {
            assert!(detect(&UnsupportedAnswer, &answered(text), &[]).is_empty(), "{text}");
        }
        let unobserved = chat(vec![user("how many?"), say("There are 4711.")]);
        assert!(detect(&UnsupportedAnswer, &unobserved, &[]).is_empty());
    }

    #[test]
    fn a_short_answer_rests_on_observations_not_on_thoughts() {
        let run = |answer: &str| {
            let thought = call("Search", "Creed");
            chat(vec![user("who?"), thought, result("Scott sang."), call("Finish", answer)])
        };
        assert_eq!(detect(&UnsupportedAnswer, &run("Creed"), &[])[0].strength.to_bits(), 0.3_f64.to_bits());
        assert_eq!(detect(&UnsupportedAnswer, &run("Scott Stapp"), &[])[0].citations.len(), 1);
        assert!(detect(&UnsupportedAnswer, &run("Scott"), &[]).is_empty());
        assert!(detect(&UnsupportedAnswer, &run("yes"), &[]).is_empty());
    }

    #[test]
    fn a_submission_is_the_answer() {
        let run = chat(vec![
            user("how many?"),
            call("get_count", r#"{"of":"x"}"#),
            result("about 40"),
            call("submit", r#"{"answer": "4711"}"#),
        ]);
        assert_eq!(detect(&UnsupportedAnswer, &run, &[])[0].citations[0].quote(&run), Ok("4711"));
    }
}
