//! An object of a trace: its members, taken one by one, each value still the bytes of the source.
//!
//! Records come with fields that no schema lists. Taking the known ones by name leaves the others,
//! which go into the run's `extra`, so nothing is dropped in silence; and a value that nobody looks
//! into is never copied, so a call's arguments stay byte-exact.
//!
//! What the readers agree on:
//!
//! * `null` says nothing: it is an absent member everywhere ([`Object::has`] alone sees it);
//! * of a key that stands twice the last one counts, as for the Python that wrote these files;
//! * a member of another type than asked for **stays** among the rest, for formats whose fields vary
//!   ([`Object::text`], [`Object::id`], [`Object::list`], [`Object::object`], [`Object::read`]), or is
//!   an **error** with the member's name, for fields that the format fixes ([`Object::optional`],
//!   [`Object::required`]).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::RecordError;
use super::value::{elements, is_number, is_object, text, value, write_object};
use crate::json::Json;

/// A JSON object, borrowed from its record.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// The object that a value is, if it is one.
    pub(super) fn of(raw: &'a RawValue) -> Option<Self> {
        if is_object(raw) { value(raw) } else { None }
    }

    /// The object that a value must be; `place` names it in the error (`messages[3]`).
    pub(super) fn parse(raw: &'a RawValue, place: &str) -> Result<Self, RecordError> {
        if !is_object(raw) {
            return Err(wrong_type(place, "an object"));
        }
        serde_json::from_str(raw.get()).map_err(|error| within(error, place))
    }

    /// The member of that name.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().rev().find(|(name, _)| name == key)?;
        (value.get() != "null").then_some(*value)
    }

    /// True where the member is there, be it `null`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(name, _)| name == key)
    }

    /// True where it has no member.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes a member out.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        let value = self.get(key);
        self.0.retain(|(name, _)| name != key);
        value
    }

    /// Takes a member out if it passes; one that does not stays.
    pub(super) fn take_if(&mut self, key: &str, wanted: impl Fn(&RawValue) -> bool) -> Option<&'a RawValue> {
        self.get(key).filter(|value| wanted(value))?;
        self.take(key)
    }

    /// Takes a member that reads as `T`; any other stays.
    pub(super) fn read<T: Deserialize<'a>>(&mut self, key: &str) -> Option<T> {
        let value = value(self.get(key)?)?;
        self.take(key);
        Some(value)
    }

    /// Takes a member that is a string; any other stays.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let text = text(self.get(key)?)?.into_owned();
        self.take(key);
        Some(text)
    }

    /// Takes a member that is a string or a number, as text, for ids come as both; any other stays.
    pub(super) fn id(&mut self, key: &str) -> Option<String> {
        self.text(key).or_else(|| Some(self.take_if(key, is_number)?.get().to_owned()))
    }

    /// Takes the elements of a member that is an array; any other stays.
    pub(super) fn list(&mut self, key: &str) -> Option<Vec<&'a RawValue>> {
        let elements = elements(self.get(key)?)?;
        self.take(key);
        Some(elements)
    }

    /// Takes the members of a member that is an object: none where it is absent, or something else,
    /// which stays.
    pub(super) fn object(&mut self, key: &str) -> Self {
        let object = self.get(key).and_then(Self::of);
        if object.is_some() {
            self.take(key);
        }
        object.unwrap_or_default()
    }

    /// Takes a member, which must read as `T` where it is present.
    pub(super) fn optional<T: Deserialize<'a>>(&mut self, key: &str) -> Result<Option<T>, RecordError> {
        let Some(raw) = self.take(key) else { return Ok(None) };
        serde_json::from_str(raw.get()).map(Some).map_err(|error| within(error, key))
    }

    /// Takes a member, which must be present and read as `T`.
    pub(super) fn required<T: Deserialize<'a>>(&mut self, key: &str) -> Result<T, RecordError> {
        self.optional(key)?.ok_or_else(|| missing(key))
    }

    /// Adds a member after the others.
    pub(super) fn push(&mut self, key: Cow<'a, str>, value: &'a RawValue) {
        self.0.push((key, value));
    }

    /// Adds members that are not there yet: what was left of an object inside this one.
    pub(super) fn absorb(&mut self, mut other: Self) {
        // Before the object's own, of which the last counts.
        other.0.append(&mut self.0);
        *self = other;
    }

    /// Takes the members that `wanted` names, as the text of an object: sorted, each value as it was.
    pub(super) fn take_object(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let (taken, left) = std::mem::take(&mut self.0).into_iter().partition(|(name, _)| wanted(name));
        self.0 = left;
        let taken: BTreeMap<_, _> = Self(taken).0.into_iter().collect();
        write_object(taken.into_iter().map(|(name, raw)| (name, raw.get())))
    }

    /// Takes the members whose names begin so, under what follows.
    pub(super) fn take_under(&mut self, prefix: &str) -> Self {
        let mut taken = Self::default();
        self.0.retain(|(name, raw)| match name.strip_prefix(prefix) {
            Some(short) => {
                taken.0.push((Cow::Owned(short.to_owned()), *raw));
                false
            }
            None => true,
        });
        taken
    }

    /// Names of the members that say something, in source order.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, value)| value.get() != "null").map(|(name, _)| &**name)
    }

    /// The members as they stand, `null` and names that stand twice among them.
    pub(super) fn into_members(self) -> impl Iterator<Item = (Cow<'a, str>, &'a RawValue)> {
        self.0.into_iter()
    }

    /// The members, by name.
    pub(super) fn members(self) -> BTreeMap<String, &'a RawValue> {
        let last: BTreeMap<_, _> = self.0.into_iter().collect();
        let said = last.into_iter().filter(|(_, value)| value.get() != "null");
        said.map(|(name, value)| (name.into_owned(), value)).collect()
    }

    /// What was not taken, by name.
    pub(super) fn rest(self) -> BTreeMap<String, Json> {
        self.members().into_iter().map(|(name, value)| (name, Json::from(value))).collect()
    }

    /// What was not taken and is not empty: for harnesses that write every field of theirs, used or not.
    pub(super) fn filled_rest(self) -> BTreeMap<String, Json> {
        let empty = ["\"\"", "[]", "{}"];
        let filled = self.members().into_iter().filter(|(_, value)| !empty.contains(&value.get()));
        filled.map(|(name, value)| (name, Json::from(value))).collect()
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
#[derive(Deserialize)]
pub(super) struct Text<'a>(#[serde(borrow)] pub(super) Cow<'a, str>);

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
    use super::{Cow, Object, RawValue, Text};
    use crate::importers::value::json_object;

    fn object(text: &str) -> Object<'_> {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn what_is_not_taken_is_left() {
        let mut object = object(r#"{"a":1,"b":"x\ny","n":null,"e":{},"a":2,"rest":{"k":[1.50]}}"#);
        assert_eq!(object.text("rest"), None, "a value of another type stays");
        assert_eq!(object.id("a").as_deref(), Some("2"));
        assert_eq!(object.text("b").as_deref(), Some("x\ny"));
        assert!(object.has("n") && object.get("n").is_none() && object.take("n").is_none());
        assert!(!object.has("n") && !object.has("a"));
        assert_eq!(json_object(object.clone().rest()).unwrap().as_str(), r#"{"e":{},"rest":{"k":[1.5]}}"#);
        assert_eq!(object.clone().filled_rest().into_keys().collect::<Vec<_>>(), ["rest"]);
        assert_eq!(object.take_object(|key| key == "rest"), r#"{"rest":{"k":[1.50]}}"#);
        assert_eq!(json_object(object.filled_rest()), None);
    }

    #[test]
    fn a_fixed_field_is_an_error_where_it_is_something_else() {
        let mut object = object(r#"{"a":"1","n":null,"l":[1]}"#);
        let error = object.required::<u64>("a").unwrap_err();
        assert_eq!((error.code, error.reason.starts_with("`a`: ")), ("wrong-type", true));
        assert_eq!(object.optional::<String>("n"), Ok(None));
        assert_eq!(object.required::<String>("n").unwrap_err().code, "missing-field");
        let code = |text: &str| {
            let record = serde_json::from_str::<Object<'_>>(text).unwrap_err();
            crate::importers::RecordError::from(record).code
        };
        assert_eq!(
            (code("[1]"), code("nonsense"), code(r#"{"a": 1"#)),
            ("wrong-type", "invalid-json", "truncated")
        );
    }

    #[test]
    fn an_objects_own_members_count_before_those_it_absorbs() {
        let mut outer = object(r#"{"a":1,"b":null}"#);
        outer.absorb(object(r#"{"a":2,"b":3,"c":4}"#));
        assert_eq!(outer.members().into_values().map(RawValue::get).collect::<String>(), "14");
    }

    #[test]
    fn keys_borrow_where_they_can() {
        let key: Text<'_> = serde_json::from_str(r#""plain""#).unwrap();
        assert!(matches!(key.0, Cow::Borrowed("plain")));
    }
}
