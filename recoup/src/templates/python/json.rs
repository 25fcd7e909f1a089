//! `json.dumps`, as the filter `tojson` of chat templates calls it.

use std::fmt::Write as _;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::number::write_float;
use super::repr::{ITEMS_MAX, TEXT_BYTES_MAX};

/// Containers inside containers that are written.
const DEPTH_MAX: usize = 200;

/// How JSON is laid out: the arguments of `json.dumps`.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Whether characters beyond ASCII become `\u` escapes.
    pub ensure_ascii: bool,
    /// What a level is indented with; `None` writes one line.
    pub indent: Option<String>,
    /// Between items.
    pub item_separator: String,
    /// Between a key and its value.
    pub key_separator: String,
    /// Whether keys are sorted.
    pub sort_keys: bool,
}

impl Layout {
    /// What `json.dumps` does with only these of its arguments.
    pub(crate) fn new(ensure_ascii: bool, indent: Option<String>, sort_keys: bool) -> Self {
        let item_separator = if indent.is_some() { "," } else { ", " };
        Self {
            ensure_ascii,
            indent,
            item_separator: item_separator.to_owned(),
            key_separator: ": ".to_owned(),
            sort_keys,
        }
    }

    /// The JSON of a value.
    ///
    /// # Errors
    /// Where Python raises: an undefined value, a function, a key that is no scalar, too deep a nesting; and where the
    /// text is longer than [`TEXT_BYTES_MAX`] or has more than [`ITEMS_MAX`] items.
    pub(crate) fn dumps(&self, value: &Value) -> Result<String, Error> {
        let mut out = String::new();
        self.write(&mut out, value, 0, &mut 0)?;
        Ok(out)
    }

    fn write(&self, out: &mut String, value: &Value, depth: usize, items: &mut usize) -> Result<(), Error> {
        *items += 1;
        if out.len() > TEXT_BYTES_MAX || *items > ITEMS_MAX {
            return Err(ErrorKind::OutOfFuel.into());
        }
        if depth > DEPTH_MAX {
            return Err(Error::new(ErrorKind::InvalidOperation, "nested too deep for JSON"));
        }
        match value.kind() {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number if value.is_integer() => {
                let _ = write!(out, "{value}");
            }
            ValueKind::Number => write_number(out, value),
            ValueKind::String => self.write_string(out, value.as_str().unwrap_or_default()),
            ValueKind::Seq => {
                out.push('[');
                let mut is_empty = true;
                for item in value.try_iter()? {
                    self.before_item(out, is_empty, depth);
                    is_empty = false;
                    self.write(out, &item, depth + 1, items)?;
                }
                self.end(out, ']', is_empty, depth);
            }
            ValueKind::Map => {
                out.push('{');
                let mut is_empty = true;
                let mut keys: Vec<Value> = value.try_iter()?.collect();
                if self.sort_keys {
                    keys.sort();
                }
                for key in keys {
                    self.before_item(out, is_empty, depth);
                    is_empty = false;
                    self.write_key(out, &key)?;
                    out.push_str(&self.key_separator);
                    self.write(out, &value.get_item(&key)?, depth + 1, items)?;
                }
                self.end(out, '}', is_empty, depth);
            }
            kind => return Err(unserializable(kind)),
        }
        Ok(())
    }

    fn write_key(&self, out: &mut String, key: &Value) -> Result<(), Error> {
        match key.kind() {
            ValueKind::String => self.write_string(out, key.as_str().unwrap_or_default()),
            ValueKind::None | ValueKind::Bool | ValueKind::Number => {
                out.push('"');
                self.write(out, key, 0, &mut 0)?;
                out.push('"');
            }
            kind => return Err(unserializable(kind)),
        }
        Ok(())
    }

    fn before_item(&self, out: &mut String, is_first: bool, depth: usize) {
        if !is_first {
            out.push_str(&self.item_separator);
        }
        self.new_line(out, depth + 1);
    }

    fn end(&self, out: &mut String, bracket: char, is_empty: bool, depth: usize) {
        if !is_empty {
            self.new_line(out, depth);
        }
        out.push(bracket);
    }

    fn new_line(&self, out: &mut String, depth: usize) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            for _ in 0..depth {
                out.push_str(indent);
            }
        }
    }

    fn write_string(&self, out: &mut String, text: &str) {
        out.push('"');
        let mut copied = 0;
        for (at, c) in text.char_indices() {
            let escape = match c {
                '"' => "\\\"",
                '\\' => "\\\\",
                '\n' => "\\n",
                '\r' => "\\r",
                '\t' => "\\t",
                '\u{8}' => "\\b",
                '\u{c}' => "\\f",
                c if c < ' ' || self.ensure_ascii && !(' '..='~').contains(&c) => "",
                _ => continue,
            };
            out.push_str(&text[copied..at]);
            out.push_str(escape);
            if escape.is_empty() {
                let mut units = [0; 2];
                for unit in c.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            copied = at + c.len_utf8();
        }
        out.push_str(&text[copied..]);
        out.push('"');
    }
}

fn write_number(out: &mut String, value: &Value) {
    let number = f64::try_from(value.clone()).unwrap_or(f64::NAN);
    if number.is_finite() {
        write_float(out, number);
    } else {
        out.push_str(match (number.is_nan(), number < 0.0) {
            (true, _) => "NaN",
            (_, true) => "-Infinity",
            (_, false) => "Infinity",
        });
    }
}

fn unserializable(kind: ValueKind) -> Error {
    Error::new(ErrorKind::InvalidOperation, format!("a value of type {kind} is not JSON serializable"))
}

#[cfg(test)]
mod tests {
    use minijinja::Value;

    use super::Layout;
    use crate::templates::conversation::plain;

    #[test]
    fn the_layout_is_pythons() {
        let value = plain(&serde_json::json!({"b": ["é\u{1}<", {}, []], "a": 1e20}));
        let plain = Layout::new(false, None, false);
        assert_eq!(
            plain.dumps(&value).ok().as_deref(),
            Some("{\"b\": [\"é\\u0001<\", {}, []], \"a\": 1e+20}")
        );
        let pretty = Layout::new(true, Some("  ".to_owned()), true);
        assert_eq!(
            pretty.dumps(&value).ok().as_deref(),
            Some("{\n  \"a\": 1e+20,\n  \"b\": [\n    \"\\u00e9\\u0001<\",\n    {},\n    []\n  ]\n}")
        );
        assert!(plain.dumps(&Value::UNDEFINED).is_err());
    }
}
