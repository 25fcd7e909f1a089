//! A value of a trace, not parsed yet: what kind it is, what it holds, and values put together to an
//! object.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::canonical::{decode_string, write_string};
use crate::json::Json;

/// The value as `T`, or `None` for a value of another type.
pub(super) fn value<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

/// The decoded string, or `None` for a value of another type.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    decode_string(raw.get())
}

/// The decoded string, or the source text of a value of another type.
pub(super) fn text_or_source(raw: &RawValue) -> String {
    text(raw).unwrap_or(Cow::Borrowed(raw.get())).into_owned()
}

/// The elements of an array, or `None` for a value of another type.
pub(super) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if is_array(raw) { value(raw) } else { None }
}

/// True for a number.
pub(super) fn is_number(raw: &RawValue) -> bool {
    raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// True for an array.
pub(super) fn is_array(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

/// True for an object.
pub(super) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// Named values as one JSON object; `None` without any.
pub(super) fn json_object<K, V>(members: impl IntoIterator<Item = (K, V)>) -> Option<Json>
where
    K: AsRef<str>,
    V: AsRef<str>,
{
    let text = write_object(members);
    (text != "{}").then(|| Json::from_foreign(&text))
}

/// The text of an object, of values that are JSON texts.
pub(super) fn write_object<K: AsRef<str>, V: AsRef<str>>(
    members: impl IntoIterator<Item = (K, V)>,
) -> String {
    let mut out = String::from("{");
    for (key, value) in members {
        out.push_str(if out.len() > 1 { "," } else { "" });
        write_string(&mut out, key.as_ref());
        out.push(':');
        out.push_str(value.as_ref());
    }
    out.push('}');
    out
}

#[cfg(test)]
mod tests {
    use super::{Cow, RawValue, text};

    #[test]
    fn text_borrows_where_it_can() {
        let raw: &RawValue = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(text(raw), Some(Cow::Borrowed("plain"))));
    }
}
