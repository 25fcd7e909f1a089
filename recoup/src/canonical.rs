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

use std::borrow::Cow;
use std::fmt::Write as _;
use std::ops::Range;

/// Nesting beyond which [`canonicalize`] refuses a value: far above real traces, far below the stack.
pub const DEPTH_MAX: usize = 128;

/// Room made at once for a string that must be decoded.
const DECODED_BYTES: usize = 4 << 10;

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
    let mut reader = Reader { bytes: text.as_bytes(), text, at: 0 };
    reader.skip_space();
    reader.value(out, depth)?;
    reader.skip_space();
    if reader.at < reader.bytes.len() {
        return Err(reader.syntax("end of text"));
    }
    Ok(())
}

/// The text that a JSON string stands for; `None` where it is none.
pub(crate) fn decode_string(literal: &str) -> Option<Cow<'_, str>> {
    let mut reader = Reader { bytes: literal.as_bytes(), text: literal, at: 0 };
    let decoded = literal.starts_with('"').then(|| reader.string())?.ok()?;
    (reader.at == literal.len()).then_some(decoded)
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
fn next_escaped(bytes: &[u8], from: usize) -> Option<usize> {
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

/// Appends a string as the reader decoded it, without escapes if it had none, and gives it back.
fn write_decoded<'t>(out: &mut String, decoded: Cow<'t, str>) -> Cow<'t, str> {
    match &decoded {
        Cow::Borrowed(clean) => {
            out.push('"');
            out.push_str(clean);
            out.push('"');
        }
        Cow::Owned(text) => write_string(out, text),
    }
    decoded
}

/// A member of an object, written already.
struct Member<'t> {
    key: Cow<'t, str>,
    /// Where its key stands in the text.
    key_at: usize,
    /// Where key and value stand in the output.
    written: Range<usize>,
}

struct Reader<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn syntax(&self, expected: &'static str) -> CanonicalError {
        CanonicalError::Syntax { at: self.at, expected }
    }

    fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
        if depth > DEPTH_MAX {
            return Err(CanonicalError::TooDeep { at: self.at });
        }
        match self.bytes.get(self.at) {
            Some(b'{') => self.object(out, depth),
            Some(b'[') => self.array(out, depth),
            Some(b'"') => {
                write_decoded(out, self.string()?);
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(out),
            _ => {
                for word in ["true", "false", "null"] {
                    if self.text[self.at..].starts_with(word) {
                        out.push_str(word);
                        self.at += word.len();
                        return Ok(());
                    }
                }
                Err(self.syntax("a value"))
            }
        }
    }

    /// Members are written as they come and put in order afterwards, which most need not be.
    fn object(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
        let mut members: Vec<Member<'t>> = Vec::new();
        out.push('{');
        self.at += 1;
        self.skip_space();
        if self.bytes.get(self.at) == Some(&b'}') {
            self.at += 1;
            out.push('}');
            return Ok(());
        }
        let first = out.len();
        let mut sorted = true;
        loop {
            self.skip_space();
            let key_at = self.at;
            if self.bytes.get(self.at) != Some(&b'"') {
                return Err(self.syntax("a key"));
            }
            let key = self.string()?;
            self.skip_space();
            self.expect(b':', "`:`")?;
            self.skip_space();
            let start = out.len();
            let key = write_decoded(out, key);
            out.push(':');
            self.value(out, depth + 1)?;
            sorted &= members.last().is_none_or(|last| last.key < key);
            members.push(Member { key, key_at, written: start..out.len() });
            self.skip_space();
            match self.bytes.get(self.at) {
                Some(b',') => {
                    self.at += 1;
                    out.push(',');
                }
                Some(b'}') => break,
                _ => return Err(self.syntax("`,` or `}`")),
            }
        }
        self.at += 1;
        if !sorted {
            // Equal keys keep the order of the text, so the second of a pair is the later one.
            members.sort_by(|a, b| a.key.cmp(&b.key));
            if let Some(pair) = members.windows(2).find(|pair| pair[0].key == pair[1].key) {
                let key = pair[1].key.clone().into_owned();
                return Err(CanonicalError::DuplicateKey { at: pair[1].key_at, key });
            }
            let mut ordered = String::with_capacity(out.len() - first);
            for member in members {
                ordered.push_str(if ordered.is_empty() { "" } else { "," });
                ordered.push_str(&out[member.written]);
            }
            out.replace_range(first.., &ordered);
        }
        out.push('}');
        Ok(())
    }

    fn array(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
        out.push('[');
        self.at += 1;
        self.skip_space();
        if self.bytes.get(self.at) == Some(&b']') {
            self.at += 1;
            out.push(']');
            return Ok(());
        }
        loop {
            self.skip_space();
            self.value(out, depth + 1)?;
            self.skip_space();
            match self.bytes.get(self.at) {
                Some(b',') => {
                    self.at += 1;
                    out.push(',');
                }
                Some(b']') => break,
                _ => return Err(self.syntax("`,` or `]`")),
            }
        }
        self.at += 1;
        out.push(']');
        Ok(())
    }

    fn expect(&mut self, byte: u8, name: &'static str) -> Result<(), CanonicalError> {
        if self.bytes.get(self.at) == Some(&byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.syntax(name))
        }
    }

    fn number(&mut self, out: &mut String) -> Result<(), CanonicalError> {
        let start = self.at;
        if self.bytes[self.at] == b'-' {
            self.at += 1;
        }
        match self.bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(self.syntax("a digit")),
        }
        let mut integer = true;
        if self.bytes.get(self.at) == Some(&b'.') {
            integer = false;
            self.at += 1;
            if !matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
                return Err(self.syntax("a digit"));
            }
            self.digits();
        }
        if matches!(self.bytes.get(self.at), Some(b'e' | b'E')) {
            integer = false;
            self.at += 1;
            if matches!(self.bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
                return Err(self.syntax("a digit"));
            }
            self.digits();
        }
        let literal = &self.text[start..self.at];
        if integer {
            out.push_str(if literal == "-0" { "0" } else { literal });
            return Ok(());
        }
        match literal.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                write_float(out, value);
                Ok(())
            }
            _ => Err(CanonicalError::NonFinite { at: start }),
        }
    }

    fn digits(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    /// Reads a string whose opening quote is at the cursor and decodes its escapes; one without any is
    /// the text's own.
    fn string(&mut self) -> Result<Cow<'t, str>, CanonicalError> {
        self.at += 1;
        let start = self.at;
        let clean = self.clean();
        if self.bytes.get(self.at) == Some(&b'"') {
            self.at += 1;
            return Ok(Cow::Borrowed(clean));
        }
        // Decoded, a string is no longer than what is left of the text.
        let mut decoded = String::with_capacity((self.bytes.len() - start).min(DECODED_BYTES));
        decoded.push_str(clean);
        loop {
            match self.bytes.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(Cow::Owned(decoded));
                }
                Some(b'\\') => decoded.push(self.escape()?),
                _ => return Err(self.syntax("a closing quote")),
            }
            decoded.push_str(self.clean());
        }
    }

    /// Passes what needs no escape.
    fn clean(&mut self) -> &'t str {
        let from = self.at;
        self.at = next_escaped(self.bytes, from).unwrap_or(self.bytes.len());
        &self.text[from..self.at]
    }

    fn escape(&mut self) -> Result<char, CanonicalError> {
        let start = self.at;
        self.at += 2;
        Ok(match self.bytes.get(start + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex4()?;
                let lone = CanonicalError::LoneSurrogate { at: start };
                let code = match first {
                    0xD800..0xDC00 => {
                        if self.bytes.get(self.at) != Some(&b'\\')
                            || self.bytes.get(self.at + 1) != Some(&b'u')
                        {
                            return Err(lone);
                        }
                        self.at += 2;
                        let second = self.hex4()?;
                        if !(0xDC00..0xE000).contains(&second) {
                            return Err(lone);
                        }
                        0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                    }
                    _ => first,
                };
                char::from_u32(code).ok_or(lone)?
            }
            _ => {
                self.at = start;
                return Err(self.syntax("an escape"));
            }
        })
    }

    fn hex4(&mut self) -> Result<u32, CanonicalError> {
        let mut code = 0;
        for _ in 0..4 {
            let digit = self.bytes.get(self.at).and_then(|byte| (*byte as char).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.syntax("four hexadecimal digits"))?;
            self.at += 1;
        }
        Ok(code)
    }
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
