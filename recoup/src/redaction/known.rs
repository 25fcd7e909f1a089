//! Known values: what was redacted in a run, so that a text about the run does not tell it after all.
//!
//! A message quotes a password without the name that it was assigned to, or the middle of a key. What
//! equals a known value goes, and so does every piece of one that has [`PIECE`] bytes. In memory only:
//! values are never written.

use std::collections::HashMap;

use super::edit::Edit;
use super::kind::Kind;
use super::token::{ends_token, is_word, starts_token};

/// Length of the shortest piece that tells a value, in bytes.
const PIECE: usize = 8;
/// Values of a run that are looked for in its later messages; a bound keeps hostile runs from costing
/// their square.
const REPEATED_MAX: usize = 64;
/// A shorter value than this is a word that means other things elsewhere.
const VALUE_MIN: usize = 4;

/// Values of one run.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    values: Vec<(Kind, String)>,
    /// Where a piece stands: value and offset. Only looked up, never walked, so its order is no matter.
    pieces: HashMap<[u8; PIECE], (usize, usize)>,
    /// Values too short to have pieces.
    short: Vec<usize>,
    /// Values that only show beside their name, yet are unlike any word.
    repeated: Vec<usize>,
}

impl Known {
    /// Keeps a value; returns its place.
    pub(super) fn insert(&mut self, kind: Kind, value: &str) -> usize {
        let index = self.values.len();
        let bytes = value.as_bytes();
        if bytes.len() < PIECE {
            if bytes.len() >= VALUE_MIN {
                self.short.push(index);
            }
        } else {
            for (offset, piece) in bytes.windows(PIECE).enumerate() {
                let whole = bytes.len() == PIECE;
                if let (true, Ok(piece)) = (whole || tells(kind, piece), piece.try_into()) {
                    self.pieces.entry(piece).or_insert((index, offset));
                }
            }
        }
        let named = matches!(kind, Kind::Password | Kind::Secret | Kind::Token);
        if named && bytes.len() >= PIECE && self.repeated.len() < REPEATED_MAX && is_mixed(bytes) {
            self.repeated.push(index);
        }
        self.values.push((kind, value.to_owned()));
        index
    }

    /// The value at a place.
    pub(super) fn value(&self, index: usize) -> Option<&str> {
        self.values.get(index).map(|(_, value)| value.as_str())
    }

    /// Where a later message repeats a value without its name, in order and disjoint.
    pub(super) fn repeated_in(&self, text: &str) -> Vec<Edit> {
        let mut found = Vec::new();
        for index in &self.repeated {
            let (kind, value) = &self.values[*index];
            for start in memchr::memmem::find_iter(text.as_bytes(), value.as_bytes()) {
                let end = start + value.len();
                if starts_token(text.as_bytes(), start) && ends_token(text.as_bytes(), end) {
                    found.push(Edit { start, end, kind: *kind, value: value.clone(), quoted: false });
                }
            }
        }
        disjoint(found)
    }

    /// Where a text tells a value, in order and disjoint.
    pub(super) fn edits(&self, text: &str) -> Vec<Edit> {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        let edit = |start: usize, end: usize, index: usize| {
            let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let end = (end..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
            let (kind, value) = &self.values[index];
            Edit { start, end, kind: *kind, value: value.clone(), quoted: false }
        };
        let mut at = 0;
        while at + PIECE <= bytes.len() {
            let known =
                bytes[at..at + PIECE].try_into().ok().and_then(|piece: [u8; PIECE]| self.pieces.get(&piece));
            let Some((index, offset)) = known else {
                at += 1;
                continue;
            };
            let same = |(a, b): &(&u8, &u8)| a == b;
            let value = self.values[*index].1.as_bytes();
            let before = bytes[..at].iter().rev().zip(value[..*offset].iter().rev()).take_while(same).count();
            let length = bytes[at..].iter().zip(&value[*offset..]).take_while(same).count();
            found.push(edit(at - before, at + length, *index));
            at += length;
        }
        for index in &self.short {
            let value = self.values[*index].1.as_bytes();
            for start in memchr::memmem::find_iter(bytes, value) {
                if starts_token(bytes, start) && ends_token(bytes, start + value.len()) {
                    found.push(edit(start, start + value.len(), *index));
                }
            }
        }
        disjoint(found)
    }
}

fn is_mixed(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a piece of a longer value tells it: no plain word of it (`customer@…`, `BEGIN RSA`).
fn tells(kind: Kind, piece: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| piece.iter().any(class);
    match kind {
        // Drawn at random: no piece is a word.
        Kind::ApiKey | Kind::Jwt | Kind::Token => true,
        Kind::Email => has(|byte| *byte == b'@'),
        // `192.168.` or `+44 20 7` is the beginning of many.
        Kind::IpAddress | Kind::Phone => piece.iter().filter(|byte| byte.is_ascii_digit()).count() >= 6,
        _ => {
            piece.iter().filter(|byte| is_word(**byte)).count() >= 6
                && (has(u8::is_ascii_digit) || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase))
        }
    }
}

/// Edits in order; of those that overlap, one over the range of all, with the value of the first.
pub(super) fn disjoint(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
    let mut merged: Vec<Edit> = Vec::with_capacity(edits.len());
    for edit in edits {
        match merged.last_mut() {
            Some(last) if edit.start < last.end => last.end = last.end.max(edit.end),
            _ => merged.push(edit),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::{Kind, Known};

    #[test]
    fn values_and_their_pieces_are_found_and_their_words_are_not() {
        let mut known = Known::default();
        known.insert(Kind::Password, "s3cr3t");
        known.insert(
            Kind::PrivateKey,
            "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\n-----END PRIVATE KEY-----",
        );
        known.insert(Kind::Email, "customer@example.com");
        let found = |text: &'static str| -> Vec<&str> {
            known.edits(text).iter().map(|edit| &text[edit.start..edit.end]).collect()
        };
        assert_eq!(found("gave s3cr3t, not s3cr3ts"), ["s3cr3t"]);
        assert_eq!(found("the body ANBgkqhkiG9w… is wrong"), ["ANBgkqhkiG9w"]);
        assert_eq!(found("wrote to customer@exam…"), ["customer@exam"]);
        assert_eq!(found("the customer has a PRIVATE KEY at example.com"), [""; 0]);
    }
}
