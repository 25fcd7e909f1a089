//! Redaction inside JSON text: strings lose what must go, the text stays valid JSON.
//!
//! Edits are made in the source text, so every other byte, white space and number spelling included,
//! stays as the model wrote it. Each value is searched with its key in front, because the key is what
//! tells a password from a word.

use std::borrow::Cow;

use serde::de::IgnoredAny;

use super::edit::{Edit, edits};
use super::find::find;

/// The edits of a JSON text, or of any other text as it stands.
pub(super) fn json_edits(raw: &str) -> Vec<Edit> {
    if serde_json::from_str::<IgnoredAny>(raw).is_err() {
        return edits(raw);
    }
    let bytes = raw.as_bytes();
    let mut found = Vec::new();
    let mut key: Option<String> = None;
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' => {
                let token = StringToken::read(raw, at);
                at = token.end();
                let space = bytes[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
                if bytes.get(at + space) == Some(&b':') {
                    token.edits("", &mut found);
                    key = Some(token.decoded.into_owned());
                    at += space + 1;
                } else {
                    let context = key.as_ref().map_or(String::new(), |key| format!("\"{key}\": \""));
                    token.edits(&context, &mut found);
                }
            }
            b'-' | b'0'..=b'9' => {
                at += bytes[at..]
                    .iter()
                    .take_while(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(byte))
                    .count();
                let number = &raw[start..at];
                let context = key.as_ref().map_or(String::new(), |key| format!("\"{key}\": "));
                let text = format!("{context}{number}");
                if let Some(hit) = find(&text).iter().find(|hit| hit.end > context.len()) {
                    found.push(Edit {
                        start,
                        end: at,
                        kind: hit.kind,
                        value: number.to_owned(),
                        quoted: true,
                    });
                }
            }
            // A key holds for the items of its list, not beyond its object.
            b'{' | b'}' => {
                key = None;
                at += 1;
            }
            _ => at += 1,
        }
    }
    found
}

/// A string of a valid JSON text.
struct StringToken<'a> {
    /// What stands between the quotes.
    source: &'a str,
    /// Offset of it in the text.
    start: usize,
    decoded: Cow<'a, str>,
}

impl<'a> StringToken<'a> {
    fn read(raw: &'a str, quote: usize) -> Self {
        let start = quote + 1;
        let bytes = raw.as_bytes();
        let mut end = start;
        while let Some(length) = memchr::memchr2(b'"', b'\\', &bytes[end..]) {
            end += length;
            if bytes[end] == b'"' {
                break;
            }
            end = bytes.len().min(end + 2);
        }
        let source = &raw[start..end];
        let decoded = if source.contains('\\') { Cow::Owned(decode(source)) } else { Cow::Borrowed(source) };
        Self { source, start, decoded }
    }

    /// One past the closing quote.
    fn end(&self) -> usize {
        self.start + self.source.len() + 1
    }

    /// Finds in the decoded text, after `context`, and says it in the text's own offsets.
    fn edits(&self, context: &str, found: &mut Vec<Edit>) {
        let searched = format!("{context}{}", self.decoded);
        let mut hits = find(&searched);
        hits.retain(|hit| hit.end > context.len());
        // Hits are in order, so one walk over the source serves all of them.
        let (mut source_at, mut decoded_at) = (0, 0);
        let mut offset_of = |wanted: usize| {
            while decoded_at < wanted && source_at < self.source.len() {
                let (character, length) = character(&self.source[source_at..]);
                source_at += length;
                decoded_at += character.len_utf8();
            }
            self.start + source_at
        };
        for hit in hits {
            let start = hit.start.max(context.len()) - context.len();
            let end = hit.end - context.len();
            found.push(Edit {
                start: offset_of(start),
                end: offset_of(end),
                kind: hit.kind,
                value: self.decoded[start..end].to_owned(),
                quoted: false,
            });
        }
    }
}

/// Decodes the characters of a JSON string's source.
fn decode(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut at = 0;
    while at < source.len() {
        let (character, length) = character(&source[at..]);
        out.push(character);
        at += length;
    }
    out
}

/// The first character of a JSON string's source and its length there.
fn character(source: &str) -> (char, usize) {
    match source.chars().next() {
        Some('\\') => escape(source),
        Some(character) => (character, character.len_utf8()),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}

/// The character that an escape stands for and its length; half a surrogate pair stands for U+FFFD.
fn escape(source: &str) -> (char, usize) {
    let unit = |from: usize| {
        let digits = source.get(from..from + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    match source.as_bytes().get(1) {
        Some(b'n') => ('\n', 2),
        Some(b't') => ('\t', 2),
        Some(b'r') => ('\r', 2),
        Some(b'b') => ('\u{8}', 2),
        Some(b'f') => ('\u{c}', 2),
        Some(b'u') => match (unit(0), unit(6)) {
            (Some(high @ 0xd800..0xdc00), Some(low @ 0xdc00..0xe000)) => {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12)
            }
            (Some(code), _) => (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
            (None, _) => (char::REPLACEMENT_CHARACTER, 2),
        },
        Some(other) if other.is_ascii() => (char::from(*other), 2),
        _ => (char::REPLACEMENT_CHARACTER, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::edit::apply;
    use super::super::placeholders::Placeholders;
    use super::json_edits;

    fn redacted(raw: &str) -> String {
        apply(raw, &json_edits(raw), &mut Placeholders::default()).0
    }

    #[test]
    fn json_stays_json_and_other_bytes_stay() {
        assert_eq!(
            redacted(r#"{ "to":"mia@example.com" , "body":"line\nleo@example.com \u00e9", "n":1.50 }"#),
            r#"{ "to":"<EMAIL_1>" , "body":"line\n<EMAIL_2> \u00e9", "n":1.50 }"#
        );
        assert_eq!(
            redacted(r#"{"card": 4111111111111111, "id": 17, "leo@example.com": [1]}"#),
            r#"{"card": "<CARD_1>", "id": 17, "<EMAIL_1>": [1]}"#
        );
    }

    #[test]
    fn the_key_tells_what_the_value_is() {
        assert_eq!(
            redacted(r#"{"password":"hunter2!","phone":"4155550132","note":"hunter2!"}"#),
            r#"{"password":"<PASSWORD_1>","phone":"<PHONE_1>","note":"hunter2!"}"#
        );
    }

    #[test]
    fn text_that_is_no_json_is_redacted_as_text() {
        assert_eq!(redacted("*** Begin Patch\n+ mia@example.com"), "*** Begin Patch\n+ <EMAIL_1>");
    }
}
