//! Reads JSON and writes it in its canonical form on the way.

use std::borrow::Cow;
use std::ops::Range;

use super::writing::next_escaped;
use super::{CanonicalError, DEPTH_MAX, write_float, write_string};

/// Room made at once for a string that must be decoded.
const DECODED_BYTES: usize = 4 << 10;

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

/// A JSON text that is read and written in canonical form at once.
pub(super) struct Reader<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { bytes: text.as_bytes(), text, at: 0 }
    }

    /// Whether the whole text is read.
    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(super) fn syntax(&self, expected: &'static str) -> CanonicalError {
        CanonicalError::Syntax { at: self.at, expected }
    }

    pub(super) fn skip_space(&mut self) {
        while matches!(self.bytes.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn value(&mut self, out: &mut String, depth: usize) -> Result<(), CanonicalError> {
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
    pub(super) fn string(&mut self) -> Result<Cow<'t, str>, CanonicalError> {
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
