//! Values of OTLP, each an object whose one member names its kind.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::attributes::DEPTH_MAX;
use super::span::made;
use crate::importers::object::Object;
use crate::importers::value::{text, write_object};

/// A value of OTLP as the JSON it means.
pub(super) fn any_value(raw: &RawValue) -> Option<Cow<'_, RawValue>> {
    meaning(Object::of(raw)?, 0)
}

/// Kinds of plain values, in protobuf's JSON and in field names.
const PLAIN: [&str; 8] = [
    "stringValue",
    "boolValue",
    "doubleValue",
    "bytesValue",
    "string_value",
    "bool_value",
    "double_value",
    "bytes_value",
];

/// What the one member of a value says, which names its kind.
pub(super) fn meaning(mut kinds: Object<'_>, depth: usize) -> Option<Cow<'_, RawValue>> {
    if let Some(plain) = PLAIN.iter().find_map(|key| kinds.take(key)) {
        return Some(Cow::Borrowed(plain));
    }
    if let Some(number) = kinds.take("intValue").or_else(|| kinds.take("int_value")) {
        // Protobuf's JSON writes 64-bit integers as strings.
        return match text(number) {
            Some(digits) => made(digits.parse::<i64>().ok()?.to_string()),
            None => Some(Cow::Borrowed(number)),
        };
    }
    let below = |raw| {
        if depth >= DEPTH_MAX { Some(Cow::Borrowed(raw)) } else { meaning(Object::of(raw)?, depth + 1) }
    };
    if let Some(mut list) = ["arrayValue", "array_value"].iter().find_map(|key| Object::of(kinds.take(key)?))
    {
        let values = list.list("values").unwrap_or_default();
        let values: Vec<_> = values.into_iter().filter_map(below).collect();
        let texts: Vec<&str> = values.iter().map(|raw| raw.get()).collect();
        return made(format!("[{}]", texts.join(",")));
    }
    if let Some(mut list) =
        ["kvlistValue", "kvlist_value"].iter().find_map(|key| Object::of(kinds.take(key)?))
    {
        let pairs = list.list("values").unwrap_or_default();
        let members = pairs.into_iter().filter_map(|raw| {
            let mut pair = Object::of(raw)?;
            Some((pair.text("key")?, below(pair.take("value")?)?.get().to_owned()))
        });
        return made(write_object(members));
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use crate::importers::spans::attributes::Attributes;

    #[test]
    fn values_of_otlp_are_the_json_they_mean() {
        let raw = RawValue::from_string(
            r#"[{"key":"s","value":{"stringValue":"x"}},{"key":"i","value":{"intValue":"-7"}},
                {"key":"l","value":{"arrayValue":{"values":[{"boolValue":true},{"doubleValue":0.5}]}}},
                {"key":"o","value":{"kvlistValue":{"values":[{"key":"a","value":{"arrayValue":{}}}]}}},
                {"key":"f","value":{"string_value":null,"array_value":{"values":[{"int_value":1}]}}},
                {"key":"none","value":{}}]"#
                .to_owned(),
        )
        .unwrap();
        let attributes = Attributes::from_otlp(&raw).unwrap();
        assert_eq!(attributes.to_object(), r#"{"f":[1],"i":-7,"l":[true,0.5],"o":{"a":[]},"s":"x"}"#);
    }
}
