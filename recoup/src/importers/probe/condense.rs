//! The first value of a stream, condensed to what an outline shows: strings are cut short and arrays
//! after their first elements, so that the keys behind a long array are found without keeping it.

use std::io::Read as _;

use super::outline::{ELEMENTS_MAX, STRING_BYTES_MAX};
use crate::importers::{ImportError, Source};

/// Bytes read at once.
const BUFFER_BYTES: usize = 64 << 10;
/// Bytes of a condensed value; what follows is not looked at.
const CONDENSED_BYTES_MAX: usize = 1 << 20;

/// Condenses the first value of a file, of which no more is read than a record may have.
///
/// # Errors
/// When the file cannot be opened; damage further on ends what is seen.
pub(super) fn first_value(source: &Source) -> Result<Vec<u8>, ImportError> {
    let mut reader = source.open()?.take(source.options().record_bytes_max);
    let mut condenser = Condenser::default();
    let mut buffer = vec![0; BUFFER_BYTES];
    while let Ok(count @ 1..) = reader.read(&mut buffer) {
        if condenser.take(&buffer[..count]) {
            break;
        }
    }
    Ok(condenser.out)
}

#[derive(Default)]
struct Condenser {
    out: Vec<u8>,
    /// The brackets open in `out`: elements that an array still keeps, `None` for an object.
    open: Vec<Option<usize>>,
    /// Brackets open in what is left out; `None` where nothing is.
    hidden: Option<usize>,
    /// Bytes that the string at hand may still have; `None` outside of strings.
    string: Option<usize>,
    /// Whether the next byte belongs to an escape.
    escaped: bool,
}

impl Condenser {
    /// Takes the next bytes; true once the value is complete or nothing more can be learnt.
    fn take(&mut self, mut bytes: &[u8]) -> bool {
        while let Some((&byte, rest)) = bytes.split_first() {
            if self.string.is_some() {
                bytes = self.take_string(bytes);
                continue;
            }
            bytes = rest;
            match byte {
                byte if self.out.is_empty() && !b"{[".contains(&byte) => {}
                b'"' => {
                    self.string = Some(STRING_BYTES_MAX);
                    self.put(b"\"");
                }
                b'{' | b'[' => {
                    if let Some(depth) = &mut self.hidden {
                        *depth += 1;
                    } else {
                        self.open.push((byte == b'[').then_some(ELEMENTS_MAX - 1));
                        self.put(&[byte]);
                    }
                }
                b'}' | b']' => {
                    if let Some(depth @ 1..) = &mut self.hidden {
                        *depth -= 1;
                    } else {
                        self.hidden = None;
                        self.open.pop();
                        self.put(&[byte]);
                        if self.open.is_empty() {
                            return true;
                        }
                    }
                }
                b',' if self.hidden.is_none() => match self.open.last_mut() {
                    Some(Some(0)) => self.hidden = Some(0),
                    Some(Some(left)) => {
                        *left -= 1;
                        self.put(b",");
                    }
                    _ => self.put(b","),
                },
                byte if byte.is_ascii_whitespace() => {}
                byte => self.put(&[byte]),
            }
            let is_top_full = self.open.len() == 1 && self.hidden.is_some();
            if is_top_full || self.out.len() >= CONDENSED_BYTES_MAX {
                return true;
            }
        }
        false
    }

    /// Takes bytes up to and with the end of a string; returns the others.
    fn take_string<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let room = self.string.unwrap_or_default();
        if std::mem::take(&mut self.escaped) {
            let (escaped, rest) = bytes.split_at(1);
            // An escape stays whole: its backslash is written with the byte that it escapes.
            if room >= 2 {
                self.put(b"\\");
                self.put(escaped);
            }
            self.string = Some(room.saturating_sub(2));
            return rest;
        }
        let plain = memchr::memchr2(b'"', b'\\', bytes).unwrap_or(bytes.len());
        let (text, rest) = bytes.split_at(plain);
        self.put(&text[..text.len().min(room)]);
        self.string = Some(room.saturating_sub(text.len()));
        match rest.split_first() {
            Some((b'\\', rest)) => {
                self.escaped = true;
                rest
            }
            Some((_, rest)) => {
                self.string = None;
                self.put(b"\"");
                rest
            }
            None => rest,
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.hidden.is_none() {
            self.out.extend_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{STRING_BYTES_MAX, first_value};
    use crate::importers::{Importer, Source, detect};

    fn condensed(text: &str) -> String {
        let source = Source::from_bytes("x", text.as_bytes(), Arc::default());
        String::from_utf8(first_value(&source).unwrap()).unwrap()
    }

    #[test]
    fn keys_behind_long_values_are_kept() {
        let long = "x".repeat(STRING_BYTES_MAX + 10);
        let text = format!(
            "\u{feff} {{\"a\": [1, 2, [3], {{\"b\": 4}}, [5], {{\"]\": 6}}], \"{long}\": \"\\\"\\\\\", \"c\":[]}} rest"
        );
        let short = &long[..STRING_BYTES_MAX];
        assert_eq!(
            condensed(&text),
            format!("{{\"a\":[1,2,[3],{{\"b\":4}}],\"{short}\":\"\\\"\\\\\",\"c\":[]}}")
        );
        assert_eq!(condensed("[1,2,3,4,5,6]"), "[1,2,3,4", "elements enough");
        assert_eq!(condensed("[{\"a\":\"cut"), "[{\"a\":\"cut");
        assert_eq!(condensed("]}, no value"), "");
    }

    #[test]
    fn an_escape_stays_whole() {
        let text = format!("[\"{}\\n\"]", "x".repeat(STRING_BYTES_MAX - 1));
        assert_eq!(condensed(&text), format!("[\"{}\"]", "x".repeat(STRING_BYTES_MAX - 1)));
    }

    #[test]
    fn keys_behind_a_mebibyte_of_history_tell_the_format() {
        let message = format!(r#"{{"content":"{}","role":"user"}}"#, "word ".repeat(40_000));
        let history = vec![message; 8].join(",");
        let text = format!(
            r#"{{"history":[{history}],"question":"q","question_ID":"i","mistake_agent":"a","mistake_step":"0"}}"#
        );
        let source = Source::from_bytes("1.json", text.into_bytes(), Arc::default());
        assert_eq!(detect(&source).unwrap().map(Importer::format), Some("who-and-when"));
    }
}
