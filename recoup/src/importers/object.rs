//! An object of a trace: its members in source order, each value still the bytes of the source.
//!
//! Records come with fields that no schema lists. Taking the known ones by name and keeping the rest
//! makes it plain that nothing is dropped, and a value that is not looked into is never copied.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::RecordError;
use crate::canonical::write_string;
use crate::json::Json;

/// A JSON object, borrowed from its record.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Reads an object; `place` names it in the error (`messages[3]`).
    pub(super) fn parse(raw: &'a RawValue, place: &str) -> Result<Self, RecordError> {
        if !is_object(raw) {
            return Err(wrong_type(place, "an object"));
        }
        serde_json::from_str(raw.get()).map_err(|error| within(error, place))
    }

    /// The member of that name; of several, the last, as JSON parsers have it.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| *value)
    }

    /// Takes a member out; `null` counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let value = self.get(key)?;
        self.0.retain(|(name, _)| name != key);
        (value.get() != "null").then_some(value)
    }

    /// Takes a member out if it passes; one that does not stays among the rest.
    pub(super) fn take_if(&mut self, key: &str, wanted: impl Fn(&RawValue) -> bool) -> Option<&'a RawValue> {
        self.get(key).filter(|value| wanted(value))?;
        self.take(key)
    }

    /// Takes a member that is a string; one of another type stays among the rest.
    pub(super) fn take_text(&mut self, key: &str) -> Option<Cow<'a, str>> {
        self.take_if(key, is_string).and_then(text)
    }

    /// Takes a member that is an integer of 64 bits; one of another kind stays among the rest.
    pub(super) fn take_integer(&mut self, key: &str) -> Option<i64> {
        let value = self.get(key)?.get().parse().ok()?;
        self.take(key);
        Some(value)
    }

    /// Takes a member that is a string or an integer: ids come as both.
    pub(super) fn take_id(&mut self, key: &str) -> Option<String> {
        self.take_text(key)
            .map(Cow::into_owned)
            .or_else(|| self.take_integer(key).map(|number| number.to_string()))
    }

    /// Adds a member after the others.
    pub(super) fn push(&mut self, key: Cow<'a, str>, value: &'a RawValue) {
        self.0.push((key, value));
    }

    /// True without members.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names of the members, in source order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// What is left, by name; nulls say nothing and are left out.
    pub(super) fn rest(self) -> BTreeMap<String, Json> {
        let said = self.0.into_iter().filter(|(_, value)| value.get() != "null");
        said.map(|(name, value)| (name.into_owned(), Json::from(value))).collect()
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Object<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::with_capacity(6);
                while let Some(Text(key)) = map.next_key()? {
                    members.push((key, map.next_value()?));
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// A string that borrows from its source where no escape stands in it.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Characters;
        impl<'de> Visitor<'de> for Characters {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text)))
            }
        }
        deserializer.deserialize_str(Characters)
    }
}

/// The decoded string, or `None` for a value of another type.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw.get()).ok().map(Cow::Owned)
}

/// The elements of an array; `place` names it in the error.
pub(super) fn elements<'a>(raw: &'a RawValue, place: &str) -> Result<Vec<&'a RawValue>, RecordError> {
    if !is_array(raw) {
        return Err(wrong_type(place, "an array"));
    }
    serde_json::from_str(raw.get()).map_err(|error| within(error, place))
}

/// The number, as a double.
pub(super) fn number(raw: &RawValue) -> Option<f64> {
    raw.get().parse().ok().filter(|number: &f64| number.is_finite())
}

/// The truth value.
pub(super) fn boolean(raw: &RawValue) -> Option<bool> {
    raw.get().parse().ok()
}

/// True for a string.
pub(super) fn is_string(raw: &RawValue) -> bool {
    raw.get().starts_with('"')
}

/// True for an array.
pub(super) fn is_array(raw: &RawValue) -> bool {
    raw.get().starts_with('[')
}

/// True for an object.
pub(super) fn is_object(raw: &RawValue) -> bool {
    raw.get().starts_with('{')
}

/// One JSON object of named values.
pub(super) fn json_object<K: AsRef<str>>(members: impl IntoIterator<Item = (K, Json)>) -> Json {
    let mut out = String::from("{");
    for (key, value) in members {
        if out.len() > 1 {
            out.push(',');
        }
        write_string(&mut out, key.as_ref());
        out.push(':');
        out.push_str(value.as_str());
    }
    out.push('}');
    Json::from_foreign(&out)
}

/// The error for a field that is not what the format says.
pub(super) fn wrong_type(place: &str, wanted: &str) -> RecordError {
    RecordError::new("wrong-type", format!("`{place}` is not {wanted}"))
}

/// The error for a field that the format demands.
pub(super) fn missing(place: &str) -> RecordError {
    RecordError::new("missing-field", format!("`{place}` is missing"))
}

/// The error for a speaker that the format does not know; `word` is as long as the trace likes.
pub(super) fn unknown_role(field: &str, word: &str) -> RecordError {
    let word: String = word.chars().take(40).collect();
    RecordError::new("unknown-role", format!("`{field}` is `{word}`"))
}

fn within(error: serde_json::Error, place: &str) -> RecordError {
    let error = RecordError::from(error);
    RecordError::new(error.code, format!("`{place}`: {}", error.reason))
}

#[cfg(test)]
mod tests {
    use super::{Object, text};

    #[test]
    fn members_are_taken_by_name_and_the_rest_is_kept() {
        let mut object: Object<'_> =
            serde_json::from_str(r#"{"a":1,"b":"x\ny","n":null,"a":2,"rest":{"k":[1.50]}}"#).unwrap();
        assert_eq!(object.take_integer("a"), Some(2));
        assert_eq!(object.take_text("b").as_deref(), Some("x\ny"));
        assert_eq!(object.take_text("rest"), None, "a value of another type stays");
        let rest = object.rest();
        assert_eq!(rest.keys().collect::<Vec<_>>(), ["rest"]);
        assert_eq!(rest["rest"].as_str(), r#"{"k":[1.5]}"#);
    }

    #[test]
    fn text_borrows_where_it_can() {
        let raw: &serde_json::value::RawValue = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(text(raw), Some(std::borrow::Cow::Borrowed("plain"))));
    }
}
