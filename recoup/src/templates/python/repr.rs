//! `str` and `repr` of values: what a template prints of a list, a dictionary, `None`.

use std::fmt::Write as _;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::number::write_float;
use super::text::is_printable;

/// Bytes of the text of one list or dictionary: more than any model's context, and more than the engine's fuel lets it
/// make text of by itself.
pub(crate) const TEXT_BYTES_MAX: usize = 16 << 20;
/// Items of it, those of lists inside it included: lists that hold one list many times over print more of them than bytes
/// tell.
pub(crate) const ITEMS_MAX: usize = 1 << 18;
/// Containers inside containers that are written; deeper ones print as `...`, as a list in itself would.
const DEPTH_MAX: usize = 200;

/// `str(value)`; an undefined value prints nothing. Lists that hold one list many times over print more than any memory
/// has: what is longer than [`TEXT_BYTES_MAX`] or has more than [`ITEMS_MAX`] items is cut off behind them.
pub(crate) fn str_of(value: &Value) -> String {
    written(value).out
}

/// `str(value)`, unless it would be cut off.
pub(crate) fn whole_str_of(value: &Value) -> Option<String> {
    let writer = written(value);
    (!writer.is_full()).then_some(writer.out)
}

fn written(value: &Value) -> Writer {
    let mut writer = Writer::default();
    match value.as_str() {
        Some(text) => writer.out.push_str(text),
        None if value.is_undefined() => {}
        None => writer.write_repr(value, 0),
    }
    writer
}

/// The text so far, and the items in it.
#[derive(Default)]
struct Writer {
    out: String,
    items: usize,
}

impl Writer {
    fn is_full(&self) -> bool {
        self.out.len() > TEXT_BYTES_MAX || self.items > ITEMS_MAX
    }

    fn write_repr(&mut self, value: &Value, depth: usize) {
        self.items += 1;
        if self.is_full() {
            return;
        }
        let out = &mut self.out;
        if depth > DEPTH_MAX {
            out.push_str("...");
            return;
        }
        match value.kind() {
            ValueKind::Undefined => out.push_str("Undefined"),
            ValueKind::String => write_quoted(out, value.as_str().unwrap_or_default()),
            ValueKind::Number if !value.is_integer() => {
                write_float(out, f64::try_from(value.clone()).unwrap_or(f64::NAN));
            }
            ValueKind::Map => {
                out.push('{');
                for (index, key) in value.try_iter().into_iter().flatten().enumerate() {
                    if self.is_full() {
                        return;
                    }
                    if index > 0 {
                        self.out.push_str(", ");
                    }
                    self.write_repr(&key, depth + 1);
                    self.out.push_str(": ");
                    self.write_repr(&value.get_item(&key).unwrap_or_default(), depth + 1);
                }
                self.out.push('}');
            }
            ValueKind::Seq | ValueKind::Iterable => {
                let is_tuple = value.is_tuple();
                out.push(if is_tuple { '(' } else { '[' });
                let mut count = 0;
                for item in value.try_iter().into_iter().flatten() {
                    if self.is_full() {
                        return;
                    }
                    if count > 0 {
                        self.out.push_str(", ");
                    }
                    self.write_repr(&item, depth + 1);
                    count += 1;
                }
                self.out.push_str(match (is_tuple, count) {
                    (true, 1) => ",)",
                    (true, _) => ")",
                    (false, _) => "]",
                });
            }
            _ => {
                let _ = write!(out, "{value}");
            }
        }
    }
}

/// A string in quotes: single ones, unless it holds single and no double ones.
fn write_quoted(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for c in text.chars() {
        let _ = match c {
            '\\' => out.write_str("\\\\"),
            '\n' => out.write_str("\\n"),
            '\r' => out.write_str("\\r"),
            '\t' => out.write_str("\\t"),
            c if c == quote => write!(out, "\\{c}"),
            c if is_printable(c) => out.write_char(c),
            c => match u32::from(c) {
                code @ ..0x100 => write!(out, "\\x{code:02x}"),
                code @ ..0x1_0000 => write!(out, "\\u{code:04x}"),
                code => write!(out, "\\U{code:08x}"),
            },
        };
    }
    out.push(quote);
}

#[cfg(test)]
mod tests {
    use minijinja::Value;

    use super::str_of;
    use crate::templates::conversation::plain;

    #[test]
    fn containers_print_as_in_python() {
        let value = plain(&serde_json::json!({
            "a": [1, 2.0, 1e20, true, null], "it's": "x\n\u{200b}", "q": "'\"",
        }));
        assert_eq!(str_of(&value), r#"{'a': [1, 2.0, 1e+20, True, None], "it's": 'x\n\u200b', 'q': '\'"'}"#);
        assert_eq!(str_of(&Value::from((1,))), "(1,)");
        assert_eq!(str_of(&Value::UNDEFINED), "");
        assert_eq!(str_of(&Value::from("it's")), "it's");
    }
}
