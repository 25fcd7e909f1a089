//! Keys by their middle: a few providers put the mark that tells a key behind its first characters.

use memchr::memmem;

use super::find::Hit;
use super::kind::Kind;
use super::token::{ends_token, is_word, starts_token};

/// A mark, and how many characters stand before and behind it, in the order of the search.
type Key = (&'static [u8], fn(&[u8], &[u8]) -> Option<(usize, usize)>);

const KEYS: &[Key] = &[
    // Azure: three characters, a digit, the mark, 31 to 34 characters.
    (b"Q~", |before, behind| {
        let length = run(behind, 40, |byte| is_word(byte) || b"-.~".contains(&byte));
        let length = length - usize::from(behind[..length].ends_with(b"."));
        let digit = before.last().is_some_and(u8::is_ascii_digit);
        (digit && (31..=34).contains(&length)).then_some((4, length))
    }),
    // Telegram: the bot's number, a colon, `AA`, 33 characters.
    (b":AA", |before, behind| {
        let number = before.iter().rev().take(11).take_while(|byte| byte.is_ascii_digit()).count();
        let length = run(behind, 40, is_dashed);
        (number >= 8 && length == 33).then_some((number.min(10), length))
    }),
    // HCP Terraform: fourteen characters, the mark, sixty or more.
    (b".atlasv1.", |_, behind| {
        let length = run(behind, 128, is_dashed);
        (length >= 60).then_some((14, length))
    }),
    // Mailchimp: a digest, the mark, the number of a data center.
    (b"-us", |before, behind| {
        let hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let digest = before.len() >= 32 && before[before.len() - 32..].iter().all(hex);
        let length = run(behind, 3, |byte| byte.is_ascii_digit());
        (digest && (1..=2).contains(&length)).then_some((32, length))
    }),
];

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    for (mark, lengths) in KEYS {
        for at in memmem::find_iter(bytes, mark) {
            let after = at + mark.len();
            let whole = lengths(&bytes[..at], &bytes[after..]);
            hits.extend(
                whole.and_then(|(before, behind)| key(bytes, at.checked_sub(before)?, at, after + behind)),
            );
        }
    }
}

fn run(bytes: &[u8], most: usize, goes_on: fn(u8) -> bool) -> usize {
    bytes.iter().take(most).take_while(|byte| goes_on(**byte)).count()
}

fn is_dashed(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

fn key(bytes: &[u8], start: usize, mark: usize, end: usize) -> Option<Hit> {
    let in_key = |byte: &u8| is_word(*byte) || b"-.~".contains(byte);
    let whole = bytes[start..mark].iter().all(in_key);
    (whole && starts_token(bytes, start) && ends_token(bytes, end)).then_some(Hit {
        start,
        end,
        kind: Kind::ApiKey,
    })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn a_key_is_known_by_its_middle() {
        let tail = "AbCdEfGhIjKlMnOpQrStUvWxYz0123456";
        for (key, other) in [
            (format!("abc8Q~{tail}"), format!("abcdQ~{tail}")),
            (format!("123456789:AA{tail}"), format!("12:34:AA{tail}")),
            (format!("AbCdEfGhIjKlM1.atlasv1.{tail}{tail}"), "x.atlasv1.schema".to_owned()),
            (format!("{}-us12", "0123456789abcdef".repeat(2)), format!("{}-us12", "z".repeat(32))),
        ] {
            let mut hits = Vec::new();
            let text = format!("at {key}, not {other}.");
            find(&text, &mut hits);
            assert_eq!(hits.iter().map(|hit| &text[hit.start..hit.end]).collect::<Vec<_>>(), [key]);
        }
    }
}
