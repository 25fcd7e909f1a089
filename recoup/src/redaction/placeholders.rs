//! Placeholders: `<EMAIL_1>` stands for the same address all through one trajectory.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::edit::Edit;
use super::kind::Kind;
use super::known::Known;
use crate::id::Hash;

/// The numbers given out in one trajectory, and the values that have them. It is never stored.
#[derive(Clone, Debug, Default)]
pub struct Placeholders {
    numbers: BTreeMap<(Kind, Hash), usize>,
    last: BTreeMap<Kind, usize>,
    /// The highest number of each kind that a text held already.
    reserved: BTreeMap<Kind, usize>,
    known: Known,
    /// Where a placeholder's value stands among those known.
    values: BTreeMap<(Kind, usize), usize>,
    numbering: Numbering,
}

/// Where numbers come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Numbering {
    /// Counted, as values turn up in a trajectory.
    #[default]
    Counted,
    /// Drawn from the value, so that it has the same in each name and another value has another.
    Drawn,
}

/// Numbers of values in names. A number tells thirteen bits of a value's digest: enough to keep a
/// project's agents apart, too few to confirm a guess of who somebody is.
const DRAWN: u64 = 9_999;

static WRITTEN: LazyLock<Regex> = LazyLock::new(|| {
    let words: Vec<&str> = Kind::ALL.iter().map(|kind| kind.word()).collect();
    Regex::new(&format!("<({})_([0-9]{{1,6}})>", words.join("|"))).expect("words are a pattern")
});

impl Placeholders {
    /// For one name that runs are grouped by.
    pub(super) fn of_name() -> Self {
        Self { numbering: Numbering::Drawn, ..Self::default() }
    }

    /// A text with the values in place of their placeholders, each as it was first spelled: for what a
    /// model said about the redacted run. It must not leave memory. Placeholders that were not given
    /// out here stay.
    pub fn restore(&self, text: &str) -> String {
        let value = |found: &Captures<'_>| {
            let (whole, [word, number]) = found.extract();
            let index = parse(word, number).and_then(|placeholder| self.values.get(&placeholder));
            index.and_then(|index| self.known.value(*index)).unwrap_or(whole).to_owned()
        };
        WRITTEN.replace_all(text, value).into_owned()
    }

    /// Keeps the numbers of placeholders that a text already holds from being given out, so that a
    /// run which was redacted before it came here does not mix two people.
    pub fn reserve(&mut self, text: &str) {
        for found in WRITTEN.captures_iter(text) {
            let (_, [word, number]) = found.extract();
            if let Some((kind, number)) = parse(word, number) {
                for highest in [&mut self.last, &mut self.reserved] {
                    let highest = highest.entry(kind).or_default();
                    *highest = number.max(*highest);
                }
            }
        }
    }

    /// The first placeholder in a text that stands for nothing: neither for a value nor for itself, as one
    /// that was reserved does. Models make them up.
    pub fn unknown_in<'t>(&self, text: &'t str) -> Option<&'t str> {
        let mut found = WRITTEN.captures_iter(text).map(|found| (found.get(0), found.extract()));
        found.find_map(|(whole, (_, [word, number]))| {
            let known = parse(word, number).is_some_and(|(kind, number)| {
                self.values.contains_key(&(kind, number))
                    || self.reserved.get(&kind).is_some_and(|highest| number <= *highest)
            });
            whole.filter(|_| !known).map(|whole| whole.as_str())
        })
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
        let digest = Hash::of(spelled.as_bytes());
        let number = *self.numbers.entry((kind, digest)).or_insert_with(|| {
            let number = match self.numbering {
                Numbering::Counted => {
                    let last = self.last.entry(kind).or_default();
                    *last += 1;
                    *last
                }
                Numbering::Drawn => (digest.to_seed() % DRAWN) as usize + 1,
            };
            self.values.insert((kind, number), self.known.insert(kind, value));
            number
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

fn parse(word: &str, number: &str) -> Option<(Kind, usize)> {
    let kind = Kind::ALL.into_iter().find(|kind| kind.word() == word)?;
    Some((kind, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{Kind, Placeholders};

    #[test]
    fn values_come_back_in_memory() {
        let mut placeholders = Placeholders::default();
        placeholders.reserve("<EMAIL_1>");
        let (email, card) = (
            placeholders.of(Kind::Email, "mia@example.com"),
            placeholders.of(Kind::Card, "4111 1111 1111 1111"),
        );
        let said = format!("{email} paid with {card}; <EMAIL_1> and <CARD_9> were there before");
        assert_eq!(
            placeholders.restore(&said),
            "mia@example.com paid with 4111 1111 1111 1111; <EMAIL_1> and <CARD_9> were there before"
        );
        assert_eq!(placeholders.unknown_in(&said), Some("<CARD_9>"));
        assert_eq!(placeholders.unknown_in("<EMAIL_1> and <EMAIL_2>"), None);
    }

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
