//! The leftover scan: a second look, by other means, at a text that is about to be written.
//!
//! It shares no pattern with the finders: plain regular expressions of the shapes that must never
//! leave, and the check digits. It is kept narrow, since a hit blocks a row.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::checksums::{is_card, is_iban};
use super::kind::Kind;

/// Something that should have been redacted. It says where and what, never the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// What it is.
    pub kind: Kind,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

/// Shapes that need no further check, by group; all begin with letters that are searched for fast.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let key = concat!(
        r"sk-(?:ant|proj)-[\w-]{20}|gh[pousr]_[A-Za-z0-9]{30}|github_pat_[A-Za-z0-9]{20}|glpat-[\w-]{20}",
        r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|AIza[\w-]{35}|xox[abeprs]-[0-9]{6,}-[\w-]{8}|[sr]k_(?:live|test)_[A-Za-z0-9]{16}"
    );
    Regex::new(&format!(r"(?-u)({key})|(eyJ[\w-]{{10,}}\.eyJ[\w-]{{10,}})|(-----BEGIN [A-Z ]*PRIVATE KEY)"))
        .expect("the pattern is well-formed")
});
const SHAPE_KINDS: [Kind; 3] = [Kind::ApiKey, Kind::Jwt, Kind::PrivateKey];

/// An address around an `@`. The local part of a repository's remote and a call on a matrix product
/// are told apart by what is around them.
static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)\w[\w.+-]{1,62}@[A-Za-z0-9-]{2,63}\.(?:com|org|net|edu|gov|io|de|uk|fr)\b")
        .expect("the pattern is well-formed")
});

/// Shapes that check digits or ranges confirm.
static NUMBERS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?-u)\b(?:([0-9]{14,19}|[0-9]{4}(?:[ -][0-9]{4}){3})",
        r"|([A-Z]{2}[0-9]{2}[A-Z0-9]{11,27})|([0-8][0-9]{2}-[0-9]{2}-[0-9]{4}))\b"
    ))
    .expect("the pattern is well-formed")
});

/// What should have been redacted and still stands in a text, in order.
pub fn leftovers(text: &str) -> Vec<Leftover> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for captures in SHAPES.captures_iter(bytes) {
        let group =
            (1..=SHAPE_KINDS.len()).find_map(|index| Some((SHAPE_KINDS[index - 1], captures.get(index)?)));
        // `ghp_xxxxxxxx…` in a manual is no key.
        let real = |kind, text: &[u8]| kind != Kind::ApiKey || text.iter().any(u8::is_ascii_digit);
        if let Some((kind, group)) = group.filter(|(kind, group)| real(*kind, group.as_bytes())) {
            found.push(Leftover { kind, start: group.start(), end: group.end() });
        }
    }
    for at in memchr::memchr_iter(b'@', bytes) {
        let from = at.saturating_sub(64);
        let window = &bytes[from..bytes.len().min(at + 80)];
        let Some(found_at) =
            EMAIL.find_iter(window).find(|email| (email.start()..email.end()).contains(&(at - from)))
        else {
            continue;
        };
        let (start, end) = (from + found_at.start(), from + found_at.end());
        if &bytes[start..at] != b"git" && bytes.get(end) != Some(&b'(') {
            found.push(Leftover { kind: Kind::Email, start, end });
        }
    }
    for captures in NUMBERS.captures_iter(bytes) {
        let Some(whole) = captures.get(0) else { continue };
        let inside_id = bytes[..whole.start()].last().is_some_and(|before| b"-._".contains(before))
            || bytes.get(whole.end()).is_some_and(|after| b"-.".contains(after));
        let plain: Vec<u8> = whole.as_bytes().iter().copied().filter(u8::is_ascii_alphanumeric).collect();
        let kind = match (captures.get(1), captures.get(2)) {
            (Some(_), _) => is_card(&plain).then_some(Kind::Card),
            (_, Some(_)) => is_iban(&plain).then_some(Kind::Iban),
            _ => (!plain.starts_with(b"000")
                && !plain.starts_with(b"666")
                && &plain[3..5] != b"00"
                && !plain.ends_with(b"0000"))
            .then_some(Kind::NationalId),
        };
        if let Some(kind) = kind.filter(|_| !inside_id) {
            found.push(Leftover { kind, start: whole.start(), end: whole.end() });
        }
    }
    found.sort_unstable_by_key(|leftover| leftover.start);
    found
}

#[cfg(test)]
mod tests {
    use super::{Kind, leftovers};

    #[test]
    fn what_must_not_leave_is_seen() {
        let text = "a ghp_0123456789abcdefABCDEF0123456789abcd b mia@example.com c 4111 1111 1111 1111 d 078-05-1120";
        let kinds: Vec<Kind> = leftovers(text).iter().map(|leftover| leftover.kind).collect();
        assert_eq!(kinds, [Kind::ApiKey, Kind::Email, Kind::Card, Kind::NationalId]);
    }

    #[test]
    fn placeholders_and_ids_block_nothing() {
        let text = "<EMAIL_1> 2f1c1e0a-9f70-4b8e-a9a1-0c2d3e4f5a6b #W1234567 1715785200123456 sk-proj-xxxxxxxxxxxxxxxxxxxxxxxx git@github.com:a/b";
        assert_eq!(leftovers(text), []);
    }
}
