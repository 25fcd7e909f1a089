//! Canonical JSON: one spelling for one value, so that equal content has equal bytes.
//!
//! The rules of `canonical-1`, which ids and stored bytes depend on:
//!
//! * object keys are sorted by their UTF-8 bytes; a duplicate key is refused;
//! * an integer (no `.`, no exponent) keeps its exact decimal digits, of any length; `-0` is `0`;
//! * any other number is a double, printed as the shortest digits that read back to it and always
//!   with `.` or `e`, so `1` and `1.0` differ; `-0.0` is kept; overflow to infinity is refused;
//! * strings escape `"`, `\` and the controls below U+0020 only (`\b \t \n \f \r`, else `\u00xx`);
//!   a lone surrogate is refused;
//! * no white space; nesting deeper than [`DEPTH_MAX`] is refused.
//!
//! The same rules in Python stand in `tests/golden/canonical.py`; both are checked against one
//! golden file.

mod reader;
mod writing;

use std::borrow::Cow;

use self::reader::Reader;
pub use self::writing::{write_float, write_string};

/// Nesting beyond which [`canonicalize`] refuses a value: far above real traces, far below the stack.
pub const DEPTH_MAX: usize = 128;

/// Why a text has no canonical form. Offsets are bytes from the start of the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CanonicalError {
    /// The text is not JSON.
    #[error("not JSON at byte {at}: expected {expected}")]
    Syntax {
        /// Offset of the first byte that does not fit.
        at: usize,
        /// What would have fit.
        expected: &'static str,
    },
    /// An object holds a key twice.
    #[error("duplicate key `{key}` at byte {at}")]
    DuplicateKey {
        /// Offset of the second occurrence.
        at: usize,
        /// The key, decoded.
        key: String,
    },
    /// A number is not finite as a double.
    #[error("number at byte {at} is not finite")]
    NonFinite {
        /// Offset of the number.
        at: usize,
    },
    /// A string holds half of a surrogate pair.
    #[error("lone surrogate at byte {at}")]
    LoneSurrogate {
        /// Offset of the escape.
        at: usize,
    },
    /// Nesting exceeds [`DEPTH_MAX`].
    #[error("nesting deeper than {DEPTH_MAX} at byte {at}")]
    TooDeep {
        /// Offset of the bracket that is one too many.
        at: usize,
    },
}

/// Rewrites a JSON text in its canonical form.
///
/// # Errors
/// When the text is not JSON, or is JSON that has no single meaning (see the module's rules).
pub fn canonicalize(text: &str) -> Result<String, CanonicalError> {
    let mut out = String::with_capacity(text.len());
    canonicalize_at(text, 0, &mut out)?;
    Ok(out)
}

/// Appends the canonical form of a text that stands `depth` levels deep in another.
pub(crate) fn canonicalize_at(text: &str, depth: usize, out: &mut String) -> Result<(), CanonicalError> {
    let mut reader = Reader::new(text);
    reader.skip_space();
    reader.value(out, depth)?;
    reader.skip_space();
    if reader.is_at_end() { Ok(()) } else { Err(reader.syntax("end of text")) }
}

/// The text that a JSON string stands for; `None` where it is none.
pub(crate) fn decode_string(literal: &str) -> Option<Cow<'_, str>> {
    let mut reader = Reader::new(literal);
    let decoded = literal.starts_with('"').then(|| reader.string())?.ok()?;
    reader.is_at_end().then_some(decoded)
}

/// How many levels below a canonical value its deepest value stands: none for a scalar or `[]`, one
/// for `[1]`.
pub(crate) fn deepest_value(canonical: &str) -> usize {
    let bytes = canonical.as_bytes();
    let (mut at, mut open, mut deepest) = (0, 0usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'"' => {
                while let Some(found) = memchr::memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
                    at += found + 1;
                    if bytes.get(at - 1) == Some(&b'"') {
                        break;
                    }
                    at += 1;
                }
            }
            b'[' | b'{' => {
                open += 1;
                let is_empty = matches!(bytes.get(at), Some(b']' | b'}'));
                deepest = deepest.max(open - usize::from(is_empty));
            }
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::{CanonicalError, canonicalize};

    #[test]
    fn equal_values_have_equal_bytes() {
        assert_eq!(
            canonicalize(r#" { "b" : [1, 1.0, -0.0, 1E2], "a" : "\u00e9\/\u000b" } "#).as_deref(),
            Ok("{\"a\":\"é/\\u000b\",\"b\":[1,1.0,-0.0,100.0]}")
        );
        assert_eq!(
            canonicalize("123456789012345678901234567890").as_deref(),
            Ok("123456789012345678901234567890")
        );
    }

    #[test]
    fn escapes_are_found_wherever_they_stand() {
        for (byte, escape) in [('"', "\\\""), ('\\', "\\\\"), ('\u{1f}', "\\u001f"), ('\0', "\\u0000")] {
            for before in 0..20 {
                let clean = "é\u{7f}~ !#[]".chars().cycle().take(before).collect::<String>();
                let mut out = String::new();
                super::write_string(&mut out, &format!("{clean}{byte}{byte}{clean}"));
                assert_eq!(out, format!("\"{clean}{escape}{escape}{clean}\""));
            }
        }
    }

    #[test]
    fn values_without_one_meaning_are_refused() {
        assert!(matches!(canonicalize(r#"{"a":1,"\u0061":2}"#), Err(CanonicalError::DuplicateKey { .. })));
        assert!(matches!(canonicalize(r#""\ud800""#), Err(CanonicalError::LoneSurrogate { .. })));
        assert!(matches!(canonicalize("1e999"), Err(CanonicalError::NonFinite { .. })));
        assert!(matches!(canonicalize("NaN"), Err(CanonicalError::Syntax { .. })));
        assert!(matches!(canonicalize(&"[".repeat(100_000)), Err(CanonicalError::TooDeep { .. })));
    }
}
