//! Placeholders: `<EMAIL_1>` stands for the same address all through one trajectory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::edit::Edit;
use super::kind::Kind;
use super::known::Known;
use crate::id::Hash;

/// The numbers given out in one trajectory, and the values that have them. It is never stored.
#[derive(Clone, Debug, Default)]
pub struct Placeholders {
    numbers: BTreeMap<(Kind, Hash), usize>,
    last: BTreeMap<Kind, usize>,
    known: Known,
}

static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
    Regex::new(&format!("<({})_([0-9]{{1,6}})>", words.join("|"))).expect("words are a pattern")
});

impl Placeholders {
    /// Keeps the numbers of placeholders that a text already holds from being given out, so that a
    /// run which was redacted before it came here does not mix two people.
    pub fn reserve(&mut self, text: &str) {
        for found in WRITTEN.captures_iter(text) {
            let (_, [word, number]) = found.extract();
            let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word);
            if let (Some(kind), Ok(number)) = (kind, number.parse::<usize>()) {
                let last = self.last.entry(kind).or_default();
                *last = number.max(*last);
            }
        }
    }

    /// The placeholder of a value; spellings of one value share it (`+1 415…` and `+1415…`).
    pub(super) fn of(&mut self, kind: Kind, value: &str) -> String {
        let spelled = match kind {
            Kind::Email => value.to_lowercase(),
            Kind::Phone | Kind::Card | Kind::NationalId | Kind::Iban => {
                value.chars().filter(char::is_ascii_alphanumeric).collect()
            }
            _ => value.to_owned(),
        };
        let last = self.last.entry(kind).or_default();
        let number = self.numbers.entry((kind, Hash::of(spelled.as_bytes()))).or_insert_with(|| {
            self.known.insert(kind, value);
            *last += 1;
            *last
        });
        format!("<{}_{number}>", kind.word())
    }

    /// Where a text repeats a value that showed by its name before.
    pub(super) fn repeated_in(&self, text: &str) -> Vec<Edit> {
        self.known.repeated_in(text)
    }

    /// Where a text tells a value that has a placeholder.
    pub(super) fn known_in(&self, text: &str) -> Vec<Edit> {
        self.known.edits(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Placeholders};

    #[test]
    fn one_value_has_one_number() {
        let mut placeholders = Placeholders::default();
        placeholders.reserve("seen before: <EMAIL_3>");
        assert_eq!(placeholders.of(Kind::Email, "mia@example.com"), "<EMAIL_4>");
        assert_eq!(placeholders.of(Kind::Email, "leo@example.com"), "<EMAIL_5>");
        assert_eq!(placeholders.of(Kind::Email, "MIA@example.com"), "<EMAIL_4>");
        assert_eq!(placeholders.of(Kind::Card, "4111-1111-1111-1111"), "<CARD_1>");
        assert_eq!(placeholders.of(Kind::Card, "4111111111111111"), "<CARD_1>");
    }
}
