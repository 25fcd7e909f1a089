//! Lists and dictionaries as Python prints them: what pandas writes into the cells of a CSV.

use crate::canonical::write_string;

/// Nesting that is followed.
const DEPTH_MAX: usize = 64;

/// The JSON that a list or dictionary of Python's means; `None` for anything else.
pub(super) fn json_of(text: &str) -> Option<String> {
    let text = text.trim();
    if !text.starts_with(['[', '{', '(']) || !text.ends_with([']', '}', ')']) {
        return None;
    }
    let mut reader = Reader { text, at: 0 };
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    reader.value(&mut out, 0)?;
    (reader.at == text.len()).then_some(out)
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Passes white space, and a mark where it is the next one.
    fn takes(&mut self, mark: char) -> bool {
        let trimmed = self.rest().trim_start();
        self.at = self.text.len() - trimmed.len();
        let is_next = trimmed.starts_with(mark);
        self.at += if is_next { mark.len_utf8() } else { 0 };
        is_next
    }

    fn value(&mut self, out: &mut String, depth: usize) -> Option<()> {
        if depth > DEPTH_MAX {
            return None;
        }
        if self.takes('[') {
            return self.list(']', out, depth);
        }
        if self.takes('(') {
            return self.list(')', out, depth);
        }
        if self.takes('{') {
            return self.dictionary(out, depth);
        }
        if self.rest().starts_with(['\'', '"']) {
            write_string(out, &self.string()?);
            return Some(());
        }
        let length = self.rest().find([',', ']', '}', ')', ':', ' ', '\n']).unwrap_or(self.rest().len());
        let word = self.rest().get(..length)?;
        out.push_str(match word {
            "None" | "nan" | "inf" | "-inf" => "null",
            "True" => "true",
            "False" => "false",
            // Python prints numbers as JSON does, but for a bare point.
            number if serde_json::from_str::<serde_json::Number>(number).is_ok() => number,
            _ => return None,
        });
        self.at += length;
        Some(())
    }

    fn list(&mut self, close: char, out: &mut String, depth: usize) -> Option<()> {
        out.push('[');
        let mut first = true;
        while !self.takes(close) {
            if !first && !self.takes(',') {
                return None;
            }
            // A tuple of one ends with a comma.
            if !first && self.takes(close) {
                break;
            }
            out.push_str(if first { "" } else { "," });
            first = false;
            self.value(out, depth + 1)?;
        }
        out.push(']');
        Some(())
    }

    fn dictionary(&mut self, out: &mut String, depth: usize) -> Option<()> {
        out.push('{');
        let mut first = true;
        while !self.takes('}') {
            if !first && !self.takes(',') {
                return None;
            }
            out.push_str(if first { "" } else { "," });
            first = false;
            self.takes(' ');
            let key = self.string()?;
            write_string(out, &key);
            if !self.takes(':') {
                return None;
            }
            out.push(':');
            self.value(out, depth + 1)?;
        }
        out.push('}');
        Some(())
    }

    /// A string in either kind of quotes.
    fn string(&mut self) -> Option<String> {
        let quote = self.rest().chars().next().filter(|first| matches!(first, '\'' | '"'))?;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find([quote, '\\'])?;
            out.push_str(rest.get(..plain)?);
            self.at += plain + 1;
            if rest.get(plain..)?.starts_with(quote) {
                return Some(out);
            }
            out.push(self.escape()?);
        }
    }

    /// What follows a backslash.
    fn escape(&mut self) -> Option<char> {
        let mark = self.rest().chars().next()?;
        self.at += mark.len_utf8();
        let digits = match mark {
            'n' => return Some('\n'),
            'r' => return Some('\r'),
            't' => return Some('\t'),
            '\\' | '\'' | '"' => return Some(mark),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            _ => return None,
        };
        let code = u32::from_str_radix(self.rest().get(..digits)?, 16).ok()?;
        self.at += digits;
        // A surrogate by itself is no character.
        Some(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER))
    }
}

#[cfg(test)]
mod tests {
    use super::json_of;

    #[test]
    fn what_python_prints_is_the_json_it_means() {
        for (python, json) in [
            ("[]", "[]"),
            (
                "[{'a': None, \"it's\": [1, -2.5e-07, True]}, ('x',)]",
                r#"[{"a":null,"it's":[1,-2.5e-07,true]},["x"]]"#,
            ),
            (r"['a\n\x1b\u2028\\ \'q\' é', nan]", "[\"a\\n\\u001b\u{2028}\\\\ 'q' é\",null]"),
            ("{'t': '[not, a list]'}", r#"{"t":"[not, a list]"}"#),
        ] {
            assert_eq!(json_of(python).as_deref(), Some(json), "{python}");
        }
    }

    #[test]
    fn what_is_no_literal_is_left_alone() {
        for text in [
            "x",
            "[a note]",
            "[Errno 2]",
            "['a' 'b']",
            "['a'",
            "{'a'}",
            "{1: 2}",
            "[datetime.datetime(2026, 1, 1)]",
            r"['\q']",
            r"['\uZZZZ']",
            "[1] [2]",
            "[,]",
        ] {
            assert_eq!(json_of(text), None, "{text}");
        }
        assert_eq!(json_of(&"[".repeat(100_000)), None);
        let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(json_of(&deep), None);
    }
}
