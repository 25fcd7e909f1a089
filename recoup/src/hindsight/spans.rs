//! Where the scalars of a JSON text stand: path and byte range of each.

use std::ops::Range;

/// A scalar of a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Scalar {
    /// Keys and positions that lead to it.
    pub(super) path: Vec<String>,
    /// Its bytes; those of a string without its quotes.
    pub(super) range: Range<usize>,
}

/// Deepest nesting that is followed.
const DEPTH_MAX: usize = 32;
/// Most scalars of one text.
const SCALARS_MAX: usize = 2_000;

/// The scalars of a text that is one JSON object or array; none where it is neither. `null` is left out:
/// it states nothing.
pub(super) fn scalars(text: &str) -> Vec<Scalar> {
    let start = text.len() - text.trim_start().len();
    if !text[start..].starts_with(['{', '[']) || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err()
    {
        return Vec::new();
    }
    let mut walker = Walker { text, at: start, path: Vec::new(), found: Vec::new() };
    walker.value();
    walker.found
}

/// Walks over text that is known to be JSON.
struct Walker<'a> {
    text: &'a str,
    at: usize,
    path: Vec<String>,
    found: Vec<Scalar>,
}

impl Walker<'_> {
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        bytes.get(self.at).copied()
    }

    fn value(&mut self) {
        match self.peek() {
            Some(b'{') => self.members(b'}'),
            Some(b'[') => self.members(b']'),
            Some(b'"') => {
                let range = self.string();
                self.keep(range);
            }
            Some(_) => {
                let start = self.at;
                let rest = &self.text.as_bytes()[start..];
                let end = rest.iter().position(|byte| b",]} \t\r\n".contains(byte)).unwrap_or(rest.len());
                self.at = start + end;
                if &self.text[start..self.at] != "null" {
                    self.keep(start..self.at);
                }
            }
            None => {}
        }
    }

    fn keep(&mut self, range: Range<usize>) {
        if self.found.len() < SCALARS_MAX && !range.is_empty() && self.path.len() <= DEPTH_MAX {
            self.found.push(Scalar { path: self.path.clone(), range });
        }
    }

    fn members(&mut self, close: u8) {
        self.at += 1;
        let mut count = 0usize;
        while let Some(byte) = self.peek() {
            if byte == close {
                self.at += 1;
                return;
            }
            if byte == b',' {
                self.at += 1;
                continue;
            }
            let key = if close == b'}' {
                let range = self.string();
                self.peek();
                self.at += 1;
                self.text[range].to_owned()
            } else {
                count.to_string()
            };
            count += 1;
            self.path.push(key);
            self.value();
            self.path.pop();
        }
    }

    /// The bytes between the quotes of the string that starts here.
    fn string(&mut self) -> Range<usize> {
        let start = self.at + 1;
        let bytes = self.text.as_bytes();
        let mut at = start;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' => break,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        let end = at.min(bytes.len());
        self.at = (end + 1).min(bytes.len());
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::scalars;

    #[test]
    fn each_scalar_has_its_path_and_bytes() {
        let text = r#" {"a": [1, {"b\"c": "x, y"}], "n": null, "t":true}"#;
        let found: Vec<(String, &str)> =
            scalars(text).into_iter().map(|it| (it.path.join("/"), &text[it.range])).collect();
        let expected = [("a/0", "1"), ("a/1/b\\\"c", "x, y"), ("t", "true")];
        assert_eq!(found, expected.map(|(path, value)| (path.to_owned(), value)));
        assert!(scalars("plain").is_empty() && scalars("[1").is_empty() && scalars("3").is_empty());
    }
}
