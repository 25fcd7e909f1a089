//! Words of a run: which names and numbers have been seen, and where first.
//!
//! A name is a run of letters, digits and `_`, in lower case; a number is its value, so `1,234.50`
//! and `1234.5` are one. Looking up a value costs a hash a word; only a miss searches the text.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::Range;

/// A word of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    /// Its bytes.
    pub(crate) range: Range<usize>,
    /// Hash of its lower-case form.
    pub(crate) hash: u64,
    /// Whether it holds a letter.
    pub(crate) has_letter: bool,
    /// Whether it holds a digit.
    pub(crate) has_digit: bool,
}

/// Splits a text into words.
pub(crate) fn words(text: &str) -> Words<'_> {
    Words { text, at: 0 }
}

/// See [`words`].
pub(crate) struct Words<'a> {
    text: &'a str,
    at: usize,
}

impl Iterator for Words<'_> {
    type Item = Word;

    fn next(&mut self) -> Option<Word> {
        let mut word: Option<Word> = None;
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            let start = self.at;
            let (is_word, digit, len) = if byte.is_ascii() {
                (byte.is_ascii_alphanumeric() || *byte == b'_', byte.is_ascii_digit(), 1)
            } else {
                let c = self.text[start..].chars().next().unwrap_or('\0');
                (c.is_alphanumeric(), false, c.len_utf8())
            };
            self.at += len;
            if !is_word {
                if word.is_some() {
                    return word;
                }
                continue;
            }
            let word = word.get_or_insert(Word {
                range: start..start,
                hash: SEED,
                has_letter: false,
                has_digit: false,
            });
            word.range.end = start + len;
            word.has_digit |= digit;
            word.has_letter |= !digit && *byte != b'_';
            for byte in &bytes[start..start + len] {
                word.hash = mix(word.hash, byte.to_ascii_lowercase());
            }
        }
        word
    }
}

const SEED: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a: short keys, no attacker gains anything from a collision but a finding left out.
fn mix(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
}

/// A number in a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Number {
    /// Its bytes, without sign and currency.
    pub(crate) range: Range<usize>,
    /// Its value in hundredths, rounded.
    pub(crate) hundredths: i64,
    /// Digits in it.
    pub(crate) digit_count: usize,
    /// Whether it has a decimal point.
    pub(crate) is_decimal: bool,
}

/// Numbers that stand by themselves: digits with thousands commas and one decimal point, not part of a
/// word, a date, a time, a version or a path.
pub(crate) fn numbers(text: &str) -> Vec<Number> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_digit() {
            at += 1;
            continue;
        }
        let start = at;
        let mut points = 0;
        while at < bytes.len() {
            let next_is_digit = bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
            match bytes[at] {
                byte if byte.is_ascii_digit() => at += 1,
                b',' if next_is_digit && thousands(bytes, at) => at += 1,
                b'.' if next_is_digit => {
                    points += 1;
                    at += 1;
                }
                _ => break,
            }
        }
        let joins = |byte: u8| byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"_-:/#@.".contains(&byte);
        let before = start.checked_sub(1).map(|before| bytes[before]);
        let after = bytes.get(at).copied();
        let sentence_end = after == Some(b'.') || after == Some(b':');
        // `"price":120` is compact JSON, `10:30` a time.
        let is_member = before == Some(b':') && start >= 2 && matches!(bytes[start - 2], b'"' | b'\'');
        if points > 1
            || (before.is_some_and(|byte| joins(byte) || byte == b'\\') && !is_member)
            || (after.is_some_and(joins) && !sentence_end && after != Some(b'%'))
            || (after == Some(b':') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit))
        {
            continue;
        }
        let digits: String = text[start..at].chars().filter(|c| *c != ',').collect();
        let digit_count = digits.bytes().filter(u8::is_ascii_digit).count();
        if digit_count <= 15
            && let Ok(value) = digits.parse::<f64>()
        {
            let hundredths = (value * 100.0).round() as i64;
            found.push(Number { range: start..at, hundredths, digit_count, is_decimal: points == 1 });
        }
    }
    found
}

/// A comma between groups of three digits.
fn thousands(bytes: &[u8], comma: usize) -> bool {
    let group = bytes[comma + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    group == 3
}

/// Branch indices of the first message that holds a word: any, and any not by an agent.
#[derive(Clone, Copy, Debug)]
struct First {
    any: u32,
    observed: u32,
}

impl First {
    fn at(index: u32, by_agent: bool) -> Self {
        Self { any: index, observed: if by_agent { u32::MAX } else { index } }
    }

    fn take(&mut self, index: u32, by_agent: bool) {
        if !by_agent {
            self.observed = self.observed.min(index);
        }
    }
}

/// The words and numbers of a run's messages, each with the branch index of its first message.
#[derive(Debug)]
pub(crate) struct Seen {
    first: HashMap<u64, First>,
    /// Distinct numbers with the message of their first occurrence.
    numbers: Vec<(i64, u32)>,
    /// All text in lower case with where each message begins in it.
    text: String,
    starts: Vec<(usize, u32)>,
    /// Bytes that may still be searched for misses.
    search_budget: Cell<usize>,
}

/// Bytes searched a run at most. A run that is all misses is then taken as seen: silence, not hours.
const SEARCHED_MAX: usize = 256 << 20;

/// Numbers kept a run; a longer run is not searched for sums beyond them.
const NUMBERS_MAX: usize = 4_096;

impl Default for Seen {
    fn default() -> Self {
        Self {
            first: HashMap::new(),
            numbers: Vec::new(),
            text: String::new(),
            starts: Vec::new(),
            search_budget: Cell::new(SEARCHED_MAX),
        }
    }
}

impl Seen {
    /// Takes in a text of the message at a branch index; indices never fall.
    pub(crate) fn add(&mut self, text: &str, index: usize, by_agent: bool) {
        let index = u32::try_from(index).unwrap_or(u32::MAX);
        for word in words(text) {
            let first = self.first.entry(word.hash).or_insert(First::at(index, by_agent));
            first.take(index, by_agent);
        }
        for number in numbers(text) {
            let key = number_key(number.hundredths);
            if let std::collections::hash_map::Entry::Vacant(entry) = self.first.entry(key) {
                entry.insert(First::at(index, by_agent));
                if self.numbers.len() < NUMBERS_MAX {
                    self.numbers.push((number.hundredths, index));
                }
            }
        }
        self.starts.push((self.text.len(), index));
        self.text.push_str(text);
        let start = self.text.len() - text.len();
        self.text[start..].make_ascii_lowercase();
        self.text.push('\n');
    }

    /// Whether every word of a value stands in a message before `index`, or the value itself does.
    pub(crate) fn has_before(&self, value: &str, index: usize) -> bool {
        let known = |word: Word| self.first.get(&word.hash).is_some_and(|first| (first.any as usize) < index);
        words(value).all(known) || self.text_before(value, index)
    }

    /// Whether a word, by its hash, stands in a message before `index` that no agent wrote.
    pub(crate) fn is_observed_before(&self, word: &Word, index: usize) -> bool {
        self.first.get(&word.hash).is_some_and(|first| (first.observed as usize) < index)
    }

    /// Whether a number stands in a message before `index`.
    pub(crate) fn has_number_before(&self, hundredths: i64, index: usize) -> bool {
        self.first.get(&number_key(hundredths)).is_some_and(|first| (first.any as usize) < index)
    }

    /// Whether a number can be reckoned from numbers before `index`: the sum or difference of two, or
    /// one of them times a whole number up to 12.
    pub(crate) fn is_reckoned(&self, hundredths: i64, index: usize) -> bool {
        if !self.spend(self.numbers.len() * 64) {
            return true;
        }
        let mut known: Vec<i64> = self
            .numbers
            .iter()
            .filter(|(_, first)| (*first as usize) < index)
            .map(|(number, _)| *number)
            .filter(|number| *number != 0)
            .collect();
        known.sort_unstable();
        let has = |number: i64| known.binary_search(&number).is_ok();
        (2..=12).any(|factor| hundredths % factor == 0 && has(hundredths / factor))
            || known.iter().any(|number| has(hundredths - number) || has(hundredths + number))
    }

    /// Takes from the search budget; `false` once it is used up.
    fn spend(&self, bytes: usize) -> bool {
        let left = self.search_budget.get().checked_sub(bytes);
        self.search_budget.set(left.unwrap_or(0));
        left.is_some()
    }

    fn text_before(&self, value: &str, index: usize) -> bool {
        let end = self
            .starts
            .get(self.starts.partition_point(|(_, first)| (*first as usize) < index))
            .map_or(self.text.len(), |(start, _)| *start);
        if !self.spend(end) {
            return true;
        }
        let value = value.trim().to_ascii_lowercase();
        !value.is_empty() && memchr::memmem::find(&self.text.as_bytes()[..end], value.as_bytes()).is_some()
    }
}

fn number_key(hundredths: i64) -> u64 {
    hundredths.to_le_bytes().iter().fold(SEED ^ 0x6e75_6d62, |hash, byte| mix(hash, *byte))
}

#[cfg(test)]
mod tests {
    use super::{Seen, numbers, words};

    #[test]
    fn words_and_numbers() {
        let text = "Reservation ABC_12 costs $1,234.50 on 2024-05-20 at 10:30.";
        let found: Vec<&str> = words(text).map(|word| &text[word.range]).collect();
        assert_eq!(found[..3], ["Reservation", "ABC_12", "costs"]);
        let found: Vec<&str> = numbers(text).into_iter().map(|number| &text[number.range]).collect();
        assert_eq!(found, ["1,234.50"]);
        assert_eq!(numbers("v1.2.3 is 7%, 10, 20")[0].hundredths, 700);
    }

    #[test]
    fn seen_knows_order_spelling_and_sums() {
        let mut seen = Seen::default();
        seen.add("Pay 1,200 and 55.5 to ABC-12", 0, false);
        seen.add("then XYZ99", 3, true);
        let word = words("xyz99").next().unwrap();
        assert!(!seen.is_observed_before(&word, 9));
        assert!(seen.has_before("abc-12", 1) && !seen.has_before("XYZ99", 3) && seen.has_before("xyz99", 4));
        assert!(seen.has_number_before(120_000, 1) && !seen.has_number_before(125_550, 1));
        assert!(seen.is_reckoned(125_550, 1) && seen.is_reckoned(360_000, 1) && !seen.is_reckoned(99_999, 1));
    }
}
