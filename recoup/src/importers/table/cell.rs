//! A cell of text as a member of a row.

use serde::de::IgnoredAny;

use super::literal;
use crate::canonical::write_string;
use crate::importers::slice::rewrite_json;

/// Digits of a number that is taken for one; longer ones are ids.
const NUMBER_BYTES_MAX: usize = 24;

/// Appends a cell of a text column: an object or an array as it is, anything else as a string.
#[cfg(any(feature = "parquet", test))]
pub(super) fn write_text(out: &mut String, text: &str) {
    if is_nested(text) { out.push_str(text.trim()) } else { write_string(out, text) }
}

/// Appends a cell without a type: what is JSON as it is, a list or dictionary of Python's as JSON, nothing as
/// null, anything else as a string.
pub(super) fn write_untyped(out: &mut String, text: &str) {
    match text {
        "" => out.push_str("null"),
        "true" | "True" | "TRUE" => out.push_str("true"),
        "false" | "False" | "FALSE" => out.push_str("false"),
        _ if is_number(text) => out.push_str(text),
        _ if is_nested(text) => out.push_str(text.trim()),
        _ => match literal::json_of(text) {
            Some(json) => out.push_str(&json),
            None => write_string(out, text),
        },
    }
}

/// True for the text of a JSON object or array, `NaN` and the like allowed: the record is rewritten later.
fn is_nested(text: &str) -> bool {
    let text = text.trim();
    let bracketed =
        text.starts_with('{') && text.ends_with('}') || text.starts_with('[') && text.ends_with(']');
    let is_json = |bytes: &[u8]| serde_json::from_slice::<IgnoredAny>(bytes).is_ok();
    bracketed
        && (is_json(text.as_bytes()) || rewrite_json(text.as_bytes()).is_some_and(|bytes| is_json(&bytes)))
}

fn is_number(text: &str) -> bool {
    text.len() <= NUMBER_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte))
        && serde_json::from_str::<f64>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::{write_text, write_untyped};

    #[test]
    fn a_cell_is_what_its_text_says() {
        let untyped = |text: &str| {
            let mut out = String::new();
            write_untyped(&mut out, text);
            out
        };
        for (text, json) in [
            ("", "null"),
            ("True", "true"),
            ("-1.50", "-1.50"),
            ("007", r#""007""#),
            ("1e999", r#""1e999""#),
            (r#"{"a": 1}"#, r#"{"a": 1}"#),
            (r#"[{"a": NaN}]"#, r#"[{"a": NaN}]"#),
            ("[1, 2", r#""[1, 2""#),
            ("[Errno 2]", r#""[Errno 2]""#),
            ("[{'a': None}]", r#"[{"a":null}]"#),
            ("a\nb", r#""a\nb""#),
        ] {
            assert_eq!(untyped(text), json);
        }
        let mut out = String::new();
        write_text(&mut out, "12");
        assert_eq!(out, r#""12""#, "a column of text holds no numbers");
    }
}
