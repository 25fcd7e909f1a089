//! S8 and S9: what a diagnosis may tell in words, and what it may not know.

use serde_json::Value;

use super::candidate::said;
use super::{Word, abstain, admit, reject};
use crate::diagnosis::Run;
use crate::diagnosis::text_actions::text_action;
use crate::diagnosis::words::words;
use crate::trajectory::folded;
use crate::verdict::Diagnosis;

/// Words of a gold answer from which on it is compared by pieces.
const LONG_ANSWER: usize = 8;

/// No gold answer, nor eight of its words in a row, that the visible trace does not hold.
pub(super) fn s8_no_leak(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let hidden = &run.trajectory.hidden;
    let mut answers = Vec::new();
    for gold in [&hidden.gold, &hidden.reference, &hidden.verifier_output].into_iter().flatten() {
        collect_answers(&gold.to_value(), &mut answers);
    }
    if answers.is_empty() {
        return abstain("no gold answer is known");
    }
    let said = format!(" {} ", normalized(&told(diagnosis)).join(" "));
    for answer in answers {
        let tokens = normalized(&answer);
        let pieces: Vec<String> = if tokens.len() < LONG_ANSWER {
            vec![tokens.join(" ")]
        } else {
            tokens.windows(LONG_ANSWER).map(|window| window.join(" ")).collect()
        };
        let leaked = pieces
            .iter()
            .any(|piece| !piece.is_empty() && said.contains(&format!(" {piece} ")) && !run.is_visible(piece));
        if leaked {
            return reject("the text holds a gold answer that the trace does not");
        }
    }
    admit()
}

fn collect_answers(value: &Value, answers: &mut Vec<String>) {
    match value {
        // Bounded: a gold record of thousands of values is a state, not an answer.
        _ if answers.len() >= 256 => {}
        Value::String(text) => answers.push(text.clone()),
        Value::Number(number) => answers.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect_answers(item, answers)),
        Value::Object(members) => members.values().for_each(|member| collect_answers(member, answers)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Words in lower case after NFKC.
fn normalized(text: &str) -> Vec<String> {
    let folded = folded(text);
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Words by which a text would speak of what the agent could not know.
const OUTSIDE: &[&str] = &[
    "sibling",
    "other run",
    "other runs",
    "successful run",
    "successful runs",
    "reference solution",
    "gold answer",
    "ground truth",
    "replay",
    "verifier",
];

/// Words after which a number counts nodes, and those that may stand between two such numbers.
const COUNTED: &[&str] = &["node", "nodes", "step", "steps", "turn", "turns", "message", "messages"];
const JOINING: &[&str] = &["and", "or", "to", "through"];

/// Explanation and candidate hold no identifier, number or quote that the trace and the tools do not,
/// and name no other run.
pub(super) fn s9_grounded_words(run: &Run<'_>, diagnosis: &Diagnosis) -> Word {
    let text = told(diagnosis);
    let lower = text.to_lowercase();
    if let Some(word) = OUTSIDE.iter().find(|word| lower.contains(*word) && !run.is_visible(word)) {
        return reject(format!("the text speaks of `{word}`"));
    }
    let mut counts_nodes = false;
    let names = words(&text).filter(|word| {
        let written = &text[word.range.clone()];
        counts_nodes = counts_nodes && (word.has_digit || JOINING.contains(&written))
            || COUNTED.contains(&written.to_lowercase().as_str());
        // A node's number is where to look, not something that the run holds.
        let is_place = counts_nodes && written.parse::<usize>().is_ok_and(|number| number < run.branch.len());
        !is_place && (word.has_digit || written.contains('_') || is_camel(written))
    });
    let strange =
        names.map(|word| text[word.range].to_owned()).chain(quotes(&text)).find(|name| !run.is_visible(name));
    strange.map_or_else(admit, |name| reject(format!("`{name}` does not stand in the trace")))
}

/// What a diagnosis tells in words or proposes.
fn told(diagnosis: &Diagnosis) -> String {
    let mut text = diagnosis.explanation.clone();
    if let Some(candidate) = &diagnosis.candidate {
        text.push('\n');
        text.push_str(&candidate.rationale);
        let mut values = Vec::new();
        if let Some(arguments) = candidate.action.to_value().get("arguments") {
            collect_answers(arguments, &mut values);
        }
        // The fence around code quotes nothing.
        values.extend(said(&candidate.action).map(|text| match text_action(&text) {
            Some(action) => text[action.body].to_owned(),
            None => text,
        }));
        text.push('\n');
        text.push_str(&values.join("\n"));
    }
    text
}

fn is_camel(word: &str) -> bool {
    word.chars().zip(word.chars().skip(1)).any(|(left, right)| left.is_lowercase() && right.is_uppercase())
}

/// What stands between quotation marks or backticks.
fn quotes(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for mark in ['"', '`'] {
        found.extend(text.split(mark).skip(1).step_by(2).map(str::to_owned));
    }
    found.retain(|quote| !quote.trim().is_empty());
    found
}
