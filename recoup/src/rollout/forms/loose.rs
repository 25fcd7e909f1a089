//! Loose JSON: what models write instead of it. Single quotes, Python's words, trailing commas, line ends within
//! strings, a missing end.

use serde_json::{Map, Number, Value};

/// Nesting beyond which nothing is read.
const DEPTH_MAX: usize = 64;

/// Reads a value at the start of a text, after white space and a code fence. `None` where there is none.
pub(super) fn value(text: &str) -> Option<(Value, &str)> {
    let mut reader = Reader { rest: unfenced(text) };
    let value = reader.value(0)?;
    Some((value, reader.rest))
}

/// Reads an object, strictly where it is one, as JSON text.
pub(super) fn object(text: &str) -> Option<String> {
    let text = unfenced(text).trim();
    if serde_json::from_str::<Map<String, Value>>(text).is_ok() {
        return Some(text.to_owned());
    }
    match value(text)?.0 {
        Value::Object(map) => Some(Value::Object(map).to_string()),
        // Arguments that were encoded twice.
        Value::String(inner) if !inner.is_empty() && inner != text => {
            let inner: Map<String, Value> = serde_json::from_str(&inner).ok()?;
            Some(Value::Object(inner).to_string())
        }
        _ => None,
    }
}

/// The text without a Markdown code fence before it.
fn unfenced(text: &str) -> &str {
    let text = text.trim_start();
    let Some(rest) = text.strip_prefix("```") else { return text };
    rest.split_once('\n').map_or(text, |(_, rest)| rest)
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn take(&mut self, what: char) -> bool {
        self.skip();
        match self.rest.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        if depth > DEPTH_MAX {
            return None;
        }
        self.skip();
        match self.rest.chars().next()? {
            '{' => self.map(depth),
            '[' => self.list(depth),
            quote @ ('"' | '\'') => self.string(quote).map(Value::String),
            _ => self.word(),
        }
    }

    fn map(&mut self, depth: usize) -> Option<Value> {
        self.take('{');
        let mut map = Map::new();
        loop {
            self.skip();
            // A text that ends here was cut; what was said stands.
            if self.rest.is_empty() || self.take('}') {
                return Some(Value::Object(map));
            }
            let key = match self.rest.chars().next()? {
                quote @ ('"' | '\'') => self.string(quote)?,
                _ => self.bare()?.to_owned(),
            };
            if !self.take(':') {
                return None;
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.take(',');
        }
    }

    fn list(&mut self, depth: usize) -> Option<Value> {
        self.take('[');
        let mut list = Vec::new();
        loop {
            self.skip();
            if self.rest.is_empty() || self.take(']') {
                return Some(Value::Array(list));
            }
            list.push(self.value(depth + 1)?);
            self.take(',');
        }
    }

    fn string(&mut self, quote: char) -> Option<String> {
        self.take(quote);
        let mut out = String::new();
        let mut chars = self.rest.char_indices();
        while let Some((at, char)) = chars.next() {
            match char {
                _ if char == quote => {
                    self.rest = &self.rest[at + char.len_utf8()..];
                    return Some(out);
                }
                '\\' => match chars.next()?.1 {
                    'n' => out.push('\n'),
                    't' => out.push('\t'),
                    'r' => out.push('\r'),
                    'b' => out.push('\u{8}'),
                    'f' => out.push('\u{c}'),
                    'u' => out.push(unicode(&mut chars)?),
                    other => out.push(other),
                },
                _ => out.push(char),
            }
        }
        self.rest = "";
        Some(out)
    }

    /// A word without quotes.
    fn bare(&mut self) -> Option<&str> {
        let end = self.rest.find(|char: char| !(char.is_alphanumeric() || "_-+.".contains(char)));
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        (!word.is_empty()).then_some(word)
    }

    fn word(&mut self) -> Option<Value> {
        let word = self.bare()?;
        match word {
            "true" | "True" => Some(Value::Bool(true)),
            "false" | "False" => Some(Value::Bool(false)),
            "null" | "None" => Some(Value::Null),
            _ => word.parse::<Number>().ok().map(Value::Number),
        }
    }
}

/// A character by its four digits, of two halves where it takes them.
fn unicode(chars: &mut std::str::CharIndices<'_>) -> Option<char> {
    let four = |chars: &mut std::str::CharIndices<'_>| {
        (0..4).try_fold(0, |value, _| Some(value << 4 | chars.next()?.1.to_digit(16)?))
    };
    let first = four(chars)?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    let is_escape = chars.next()?.1 == '\\' && chars.next()?.1 == 'u';
    let second = four(chars).filter(|second| is_escape && (0xdc00..0xe000).contains(second))?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{object, value};

    #[test]
    fn what_models_write_is_read() {
        for (text, expected) in [
            ("{'a': True, 'b': None,}", json!({"a": true, "b": null})),
            ("```json\n{\"a\": [1, 2.5,]}\n```", json!({"a": [1, 2.5]})),
            ("{a: \"two\nlines\"", json!({"a": "two\nlines"})),
            (r#"{"a": "\ud83d\ude00"}"#, json!({"a": "😀"})),
            (r#""{\"a\": 1}""#, json!({"a": 1})),
        ] {
            let read: serde_json::Value = serde_json::from_str(&object(text).unwrap()).unwrap();
            assert_eq!(read, expected, "{text}");
        }
        for text in ["", "go", "{1", "{\"a\" 1}", "\"a\"", &"[".repeat(100_000)] {
            assert!(object(text).is_none(), "{text}");
        }
        assert_eq!(value("{'a': 1} and more").unwrap().1, " and more");
    }
}
