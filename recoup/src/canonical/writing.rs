//! Strings and doubles in their canonical form.

use std::fmt::Write as _;

/// Appends `text` as a JSON string with canonical escapes.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    let mut clean_from = 0;
    while let Some(at) = next_escaped(text.as_bytes(), clean_from) {
        out.push_str(&text[clean_from..at]);
        let byte = text.as_bytes()[at];
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
        clean_from = at + 1;
    }
    out.push_str(&text[clean_from..]);
    out.push('"');
}

/// Position of the first byte from `from` on that a string must escape. Eight bytes are looked at
/// together: most text needs no escape for long stretches, and all stored text passes here.
pub(super) fn next_escaped(bytes: &[u8], from: usize) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let below = |word: u64, limit: u64| word.wrapping_sub(ONES * limit) & !word & (ONES << 7);
    let escaped = |chunk: &[u8; 8]| {
        let word = u64::from_le_bytes(*chunk);
        let quote = below(word ^ (ONES * u64::from(b'"')), 1);
        let backslash = below(word ^ (ONES * u64::from(b'\\')), 1);
        below(word, 0x20) | quote | backslash
    };
    let mut at = from;
    // Four eights need one branch where none is found, and the compiler looks at them together.
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<32>)
        && chunk.as_chunks().0.iter().fold(0, |found, eight| found | escaped(eight)) == 0
    {
        at += 32;
    }
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk) {
        let found = escaped(chunk);
        if found != 0 {
            // A borrow can only falsify bytes above the first hit, so the lowest one is true.
            return Some(at + found.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    let rest = bytes.get(at..)?.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0x00..0x20));
    rest.map(|offset| at + offset)
}

/// Appends a finite double in canonical form.
pub fn write_float(out: &mut String, value: f64) {
    // Rust's `Debug` prints the shortest digits that read back, with `.0` or an exponent.
    let _ = write!(out, "{value:?}");
}
