//! Tokens of a goal: values, which must be exact, and words, which must be known.
//!
//! A value is whatever a reader could look up: a number, an identifier, a path, an address, a name in
//! capitals. Everything else that holds a letter is a word.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Its bytes, without punctuation around it.
    pub(super) range: Range<usize>,
    /// Whether it is a value.
    pub(super) is_value: bool,
}

/// Words that say nothing about any run: those of asking, and of grammar.
static PLAIN: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| include_str!("plain_words.txt").split_whitespace().collect());

/// The few of them that cannot turn a request into another one, however they are put together: no word of exclusion,
/// addition, comparison, number, time or condition.
static ASKING: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| include_str!("asking_words.txt").split_whitespace().collect());

/// Punctuation around a token that is no part of it.
const AROUND: &[char] = &[
    '.', ',', ';', ':', '!', '?', '(', ')', '[', ']', '{', '}', '"', '\'', '`', '$', '€', '£', '“', '”', '’',
    '‘', '<', '>', '*', '|',
];

/// The tokens of a text.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut starts_sentence = true;
    let base = text.as_ptr() as usize;
    for piece in text.split(|c: char| c.is_whitespace() || "()[]{}\"`“”".contains(c)) {
        let token = piece.trim_matches(AROUND);
        let opens = starts_sentence;
        if !token.is_empty() {
            starts_sentence = false;
        }
        if piece.ends_with(['.', '!', '?', ':', '\n']) {
            starts_sentence = true;
        }
        if !token.contains(char::is_alphanumeric) {
            continue;
        }
        let start = token.as_ptr() as usize - base;
        let is_value = is_value(token, opens);
        found.push(Token { range: start..start + token.len(), is_value });
    }
    found
}

fn is_value(token: &str, opens_sentence: bool) -> bool {
    let inner_capital = token.chars().skip(1).any(char::is_uppercase);
    let first_capital = token.chars().next().is_some_and(char::is_uppercase);
    token.contains(|c: char| c.is_ascii_digit() || "_@/#\\=+%".contains(c))
        || inner_capital
        || token.contains('.')
        || (first_capital && !(opens_sentence || is_plain(token)))
}

/// A value in the form in which values are compared: a number by its digits without grouping commas, anything
/// else as it stands.
pub(super) fn canonical(value: &str) -> String {
    let value = value.trim_matches(AROUND);
    let is_number = value.contains(|c: char| c.is_ascii_digit())
        && value.chars().all(|c| c.is_ascii_digit() || c == ',' || c == '.');
    if is_number { value.replace(',', "") } else { value.to_owned() }
}

/// The values of a text, each in its comparable form.
pub(super) fn values(text: &str) -> BTreeSet<String> {
    tokens(text)
        .iter()
        .filter(|token| token.is_value)
        .map(|token| canonical(&text[token.range.clone()]))
        .collect()
}

/// Every token of a text in the form in which values are compared: what a cited text offers.
pub(super) fn offered(text: &str) -> BTreeSet<String> {
    let mut found: BTreeSet<String> =
        tokens(text).iter().map(|token| canonical(&text[token.range.clone()])).collect();
    // `key=value`, `a>b`, `{"a":1}` without a space: their pieces stand there too.
    let pieces = text.split(|c: char| c.is_whitespace() || "=<>|,;:\"'()[]{}`$".contains(c));
    found.extend(pieces.map(canonical).filter(|piece| !piece.is_empty()));
    found
}

/// The words of a text by their stems, those left out that change nothing of what is asked.
pub(super) fn stems(text: &str) -> BTreeSet<String> {
    let said = words(text).filter(|word| !ASKING.contains(word.strip_suffix("'s").unwrap_or(word)));
    said.map(|word| stem(&word)).collect()
}

/// The words of a text in lower case: runs of letters, of two at least.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let pieces = text.split(|c: char| !(c.is_alphabetic() || c == '\''));
    pieces.map(|piece| piece.trim_matches('\'').to_lowercase()).filter(|piece| piece.chars().count() > 1)
}

/// Whether a word says nothing about any run.
pub(super) fn is_plain(word: &str) -> bool {
    let word = word.to_lowercase();
    PLAIN.contains(word.as_str()) || word.strip_suffix("'s").is_some_and(|word| PLAIN.contains(word))
}

/// A word without its commonest endings; a doubled last consonant counts once, so that `cancelled` meets `cancel` and
/// `calling` meets `call`.
pub(super) fn stem(word: &str) -> String {
    let word = word.strip_suffix("'s").unwrap_or(word);
    let endings = ["ations", "ation", "ings", "ing", "ed", "es", "s"].into_iter();
    let cut = endings.filter_map(|ending| word.strip_suffix(ending)).find(|stem| stem.len() >= 3);
    let stem = single(cut.unwrap_or(word));
    stem.strip_suffix('e').filter(|short| cut.is_some() || short.len() >= 3).unwrap_or(stem).to_owned()
}

/// A word of four letters or more without the second of two equal consonants at its end.
fn single(word: &str) -> &str {
    match word.as_bytes() {
        [.., one, last]
            if one == last && last.is_ascii_lowercase() && !b"aeiou".contains(last) && word.len() > 3 =>
        {
            &word[..word.len() - 1]
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::{offered, stem, stems, tokens, values};

    #[test]
    fn values_are_told_from_words() {
        let text = "Please cancel order #W12 of Mia Li (mia.li9@example.com) for $1,234.50, then stop.";
        let found: Vec<&str> =
            tokens(text).into_iter().filter(|token| token.is_value).map(|token| &text[token.range]).collect();
        assert_eq!(found, ["#W12", "Mia", "Li", "mia.li9@example.com", "1,234.50"]);
        assert!(values(text).contains("1234.50"));
        assert!(offered(r#"{"total":"1,234.50","n":3}"#).contains("1234.50"));
        assert!(offered(r#"{"total":12,"n":3}"#).contains("12"));
    }

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (one, other) in [
            ("cancel", "cancelled"),
            ("orders", "order"),
            ("update", "updating"),
            ("set", "sets"),
            ("call", "calling"),
            ("pass", "passes"),
            ("address", "addresses"),
            ("stop", "stopped"),
        ] {
            assert_eq!(stem(one), stem(other), "{one} {other}");
        }
        assert_eq!(stems("Please tell me the totals"), stems("total"));
        assert_ne!(stems("Is it anything but white?"), stems("Is it white?"), "it asks for another thing");
    }
}
