//! Where a token begins and whether it looks random: the small judgments that all finders share.

/// Whether a token may begin at `at`: at the start, after anything but a word character, or after
/// an escape sequence (`\n`, `\u003c`, `%20`, a terminal color), whose last letter is no word.
pub(super) fn starts_token(bytes: &[u8], at: usize) -> bool {
    match bytes[..at].last() {
        None => true,
        Some(previous) if !is_word(*previous) => true,
        Some(_) => ends_escape(&bytes[..at]),
    }
}

/// Whether no word character follows at `end`.
pub(super) fn ends_token(bytes: &[u8], end: usize) -> bool {
    !bytes.get(end).is_some_and(|next| is_word(*next))
}

/// ASCII letters, digits and `_`.
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn ends_escape(before: &[u8]) -> bool {
    let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
    match before {
        [.., b'\\', b'n' | b't' | b'r' | b'b' | b'f'] => true,
        [.., b'%', a, b] if hex(&[*a, *b]) => true,
        [.., b'\\', b'x', a, b] if hex(&[*a, *b]) => true,
        [.., b'\\', b'u', a, b, c, d] if hex(&[*a, *b, *c, *d]) => true,
        [sequence @ .., b'm'] => {
            let parameters =
                sequence.iter().rev().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
            sequence[..sequence.len() - parameters].ends_with(b"\x1b[")
        }
        _ => false,
    }
}

/// Length of the escape's letters that `bytes` begins with when a backslash or `%` stands before:
/// 1 for the `n` of `\n`, 5 for the `u003c` of `\u003c`.
pub(super) fn escape_tail(before: Option<u8>, bytes: &[u8]) -> usize {
    match (before, bytes) {
        (Some(b'\\'), [b'u', a, b, c, d, ..]) if [a, b, c, d].iter().all(|byte| byte.is_ascii_hexdigit()) => {
            5
        }
        (Some(b'\\'), [b'x', a, b, ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => 3,
        (Some(b'\\'), [b'n' | b't' | b'r' | b'b' | b'f', ..]) => 1,
        (Some(b'%'), [a, b, ..]) if a.is_ascii_hexdigit() && b.is_ascii_hexdigit() => 2,
        _ => 0,
    }
}

/// Whether a value looks drawn at random: at least 16 characters with letters and digits, no words
/// joined by punctuation, and at least 3.2 bits of Shannon entropy a character (16 random base-62
/// characters have 3.2 or more in all but one case of a thousand; English identifiers of that
/// length rarely do with digits inside).
pub(super) fn looks_random(value: &[u8]) -> bool {
    value.len() >= 16
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && !is_slug(value)
        && entropy(value) >= 3.2
}

/// [`looks_random`], or letters alone that do ([`scattered`]), or a digest: where the place says that a
/// secret stands there, digests are meant to be one.
pub(super) fn looks_drawn(value: &[u8]) -> bool {
    looks_random(value)
        || scattered(value)
        || value.len() >= 32 && is_identifier(value) && entropy(value) >= 2.5
}

/// Whether letters look drawn at random: their case changes at three of ten places or more, and they
/// hardly repeat. One random value of fifty with 24 letters and digits has no digit.
pub(super) fn scattered(value: &[u8]) -> bool {
    let changes =
        value.windows(2).filter(|pair| pair[0].is_ascii_uppercase() != pair[1].is_ascii_uppercase());
    value.len() >= 16
        && value.iter().filter(|byte| byte.is_ascii_alphabetic()).count() * 10 >= value.len() * 9
        && changes.count() * 10 >= (value.len() - 1) * 3
        && entropy(value) >= 0.85 * (value.len() as f64).log2()
}

/// Whether letters of both cases differ from each other as drawn ones do: a name repeats its vowels. For
/// what stands behind a key's prefix, where `scattered` would miss one of ten.
pub(super) fn many_letters(value: &[u8]) -> bool {
    value.iter().any(u8::is_ascii_uppercase)
        && value.iter().any(u8::is_ascii_lowercase)
        && entropy(value) >= 0.8 * (value.len() as f64).log2()
}

/// Whether a value is a UUID or a digest: identifies content, opens nothing.
pub(super) fn is_identifier(value: &[u8]) -> bool {
    let hex = value.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'-');
    hex && (value.len() == 36 && memchr::memchr_iter(b'-', value).count() == 4 || !value.contains(&b'-'))
}

/// Words, numbers and words with a short number, joined by punctuation (`gpt-4o-mini-2024-07-18`).
fn is_slug(value: &[u8]) -> bool {
    value.split(|byte| !byte.is_ascii_alphanumeric()).all(|segment| {
        let letters = segment.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let digits = segment[letters..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let rest = segment.len() - letters - digits;
        let word = &segment[..letters];
        let one_case = word.iter().all(u8::is_ascii_lowercase)
            || word.iter().all(u8::is_ascii_uppercase)
            || word.iter().skip(1).all(u8::is_ascii_lowercase);
        rest <= 1 && one_case && (letters == 0 || digits <= 4)
    })
}

/// Bits a character, from the value's own byte frequencies.
fn entropy(value: &[u8]) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value {
        counts[usize::from(*byte)] += 1;
    }
    let total = value.len() as f64;
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| {
            let share = f64::from(*count) / total;
            -share * share.log2()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::{is_identifier, looks_random, starts_token};

    #[test]
    fn an_escape_ends_before_the_token() {
        for text in ["sk", " sk", "\\nsk", "\\u003csk", "%3Dsk", "\u{1b}[31msk"] {
            assert!(starts_token(text.as_bytes(), text.len() - 2), "{text:?}");
        }
        for text in ["task", "_sk", "0sk", "msk"] {
            assert!(!starts_token(text.as_bytes(), text.len() - 2), "{text:?}");
        }
    }

    #[test]
    fn names_are_not_random() {
        for text in [
            "gpt-4o-mini-2024-07-18",
            "user_profile_page_v2",
            "src/components/Button1.js",
            "12345678901234567890",
        ] {
            assert!(!looks_random(text.as_bytes()), "{text}");
        }
        for text in ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "q8Zr2LmX0vTn5KdW"] {
            assert!(looks_random(text.as_bytes()), "{text}");
        }
        assert!(is_identifier(b"2f1c1e0a-9f70-4b8e-a9a1-0c2d3e4f5a6b"));
    }
}
