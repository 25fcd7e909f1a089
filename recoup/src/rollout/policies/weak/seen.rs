//! What the policy has been shown, and which values in it are of the kind of a given one.

use crate::environments::Action;
use crate::rollout::Situation;

/// Values of one kind that are looked for at most.
const VALUES_MAX: usize = 32;

/// Words that open a phrase and are no part of a name.
const FUNCTION_WORDS: &[&str] = &[
    "a", "an", "the", "of", "in", "on", "at", "to", "from", "and", "or", "with", "your", "my", "this",
    "that", "no", "is", "are", "its", "it", "you", "for", "by", "as",
];

/// All text that was shown, the latest first.
fn texts<'a>(situation: &Situation<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let observations = situation.transcript.iter().rev().map(|seen| seen.step.observation.as_str());
    observations.chain([situation.first_observation, situation.goal])
}

/// Whether a text was shown, in any case.
pub(super) fn is_shown(situation: &Situation<'_>, text: &str) -> bool {
    let text = text.to_lowercase();
    texts(situation).any(|shown| shown.to_lowercase().contains(&text))
}

/// Other values like this one: ids of the same shape, names with the same last word, or, for a single
/// word, values that the same argument had before.
pub(super) fn like(situation: &Situation<'_>, key: &str, value: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut take = |candidate: &str| {
        if candidate != value && found.len() < VALUES_MAX && !found.iter().any(|known| known == candidate) {
            found.push(candidate.to_owned());
        }
    };
    for exchange in situation.transcript.iter().rev().filter(|exchange| !exchange.step.is_error) {
        if let Action::Call { arguments, .. } = &exchange.action
            && let Some(earlier) = arguments.to_value().get(key).and_then(|earlier| earlier.as_str())
        {
            take(earlier);
        }
    }
    let words: Vec<&str> = value.split(' ').collect();
    let is_id = words.len() == 1 && value.contains(|c: char| c.is_ascii_digit());
    let wanted = shape(value);
    for text in texts(situation) {
        let shown: Vec<&str> = text.split_whitespace().map(bare).filter(|word| !word.is_empty()).collect();
        if is_id {
            let inner = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '#')));
            inner.filter(|word| shape(word) == wanted).for_each(&mut take);
        } else if words.len() > 1 {
            for window in shown.windows(words.len()) {
                let is_name =
                    !window.iter().any(|word| FUNCTION_WORDS.contains(&word.to_lowercase().as_str()));
                if is_name && window.last() == words.last() {
                    take(&window.join(" "));
                }
            }
        }
    }
    found
}

/// A word without the marks around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !(c.is_alphanumeric() || c == '#'))
}

/// What kind of id a word is: runs of capitals, small letters and digits, and the marks between.
fn shape(word: &str) -> String {
    let mut shape = String::new();
    for c in word.chars() {
        let kind = match c {
            _ if c.is_ascii_digit() => '9',
            _ if c.is_uppercase() => 'A',
            _ if c.is_alphabetic() => 'a',
            other => other,
        };
        if !(shape.ends_with(kind) && kind.is_alphanumeric()) {
            shape.push(kind);
        }
    }
    shape
}

#[cfg(test)]
mod tests {
    use super::{like, shape};
    use crate::rollout::Situation;

    fn situation(goal: &str) -> Situation<'_> {
        Situation {
            goal,
            rules: None,
            tools: &[],
            first_observation: "",
            transcript: &[],
            turns: &[],
            turn: 0,
            turns_left: 1,
            seed: 1,
            advice: None,
        }
    }

    #[test]
    fn shapes_tell_ids_apart() {
        assert_eq!(shape("W1234"), shape("X9"));
        assert_ne!(shape("W1234"), shape("w1234"));
        assert_ne!(shape("#W1"), shape("W1"));
    }

    #[test]
    fn values_of_a_kind_are_found() {
        let situation = situation(r#"Orders W12, "W34"; a red book and the blue book on the book shelf."#);
        assert_eq!(like(&situation, "order", "W99"), ["W12", "W34"]);
        assert_eq!(like(&situation, "item", "red book"), ["blue book"]);
        assert_eq!(like(&situation, "item", "carrot"), Vec::<String>::new());
    }
}
