//! An object's members, taken one by one: what no importer took is still there at the end and goes
//! into the record's `extra`, so nothing is dropped in silence.
//!
//! A member's value is the source's own bytes, so that a call's arguments stay byte-exact. Where a key
//! stands twice the last one counts, as for the Python that wrote these files.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::RecordError;
use crate::canonical::write_string;
use crate::json::Json;

/// A JSON object whose members are not parsed until they are taken.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<'a> {
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Object<'a> {
    /// Reads the members of a whole record.
    pub(super) fn from_slice(bytes: &'a [u8]) -> Result<Self, RecordError> {
        Ok(Self { members: serde_json::from_slice(bytes)? })
    }

    /// Reads the members of a value.
    pub(super) fn of(raw: &'a RawValue) -> Result<Self, RecordError> {
        Ok(Self { members: serde_json::from_str(raw.get())? })
    }

    /// The members of the object under `key`; none where it is absent or something else, which is
    /// then still there.
    pub(super) fn object(&mut self, key: &str) -> Object<'a> {
        let object = self.get(key).and_then(|raw| Object::of(raw).ok());
        self.take_if(key, object).unwrap_or_default()
    }

    /// The value under `key`; `null` counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.members.get(key).copied().filter(|raw| raw.get() != "null")
    }

    /// Takes the value under `key`; `null` counts as absent.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a RawValue> {
        self.members.remove(key).filter(|raw| raw.get() != "null")
    }

    /// Takes the elements of the array under `key`; anything else stays.
    pub(super) fn elements(&mut self, key: &str) -> Option<Vec<&'a RawValue>> {
        let elements = self.get(key).and_then(elements);
        self.take_if(key, elements)
    }

    /// Takes the string under `key`; anything else stays.
    pub(super) fn text(&mut self, key: &str) -> Option<String> {
        let text = self.get(key).and_then(text);
        self.take_if(key, text)
    }

    /// Takes the string or number under `key` as text: ids come as both.
    pub(super) fn id(&mut self, key: &str) -> Option<String> {
        let id = self.get(key).and_then(|raw| text(raw).or_else(|| number(raw)));
        self.take_if(key, id)
    }

    /// Takes the number, string or truth value under `key`, read as `T`; anything else stays.
    pub(super) fn scalar<T: serde::de::DeserializeOwned>(&mut self, key: &str) -> Option<T> {
        let value = self.get(key).and_then(|raw| serde_json::from_str(raw.get()).ok());
        self.take_if(key, value)
    }

    /// True where the member is there, be it `null`.
    pub(super) fn has(&self, key: &str) -> bool {
        self.members.contains_key(key)
    }

    /// Adds members that are not there yet: what was left of an object inside this one.
    pub(super) fn absorb(&mut self, other: Self) {
        for (key, raw) in other.members {
            self.members.entry(key).or_insert(raw);
        }
    }

    /// Takes the members that `wanted` names, as the text of an object: sorted, each value as it was.
    pub(super) fn take_object(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let mut out = String::from("{");
        self.members.retain(|key, raw| {
            let take = wanted(key);
            if take {
                out.push_str(if out.len() > 1 { "," } else { "" });
                write_string(&mut out, key);
                out.push(':');
                out.push_str(raw.get());
            }
            !take
        });
        out.push('}');
        out
    }

    /// The members in order of their keys.
    pub(super) fn into_members(self) -> impl Iterator<Item = (String, &'a RawValue)> {
        self.members.into_iter()
    }

    /// What was not taken, without nulls and empty values.
    pub(super) fn rest(self) -> BTreeMap<String, Json> {
        let empty = ["null", "\"\"", "[]", "{}"];
        let kept = self.members.into_iter().filter(|(_, raw)| !empty.contains(&raw.get()));
        kept.map(|(key, raw)| (key, Json::from(raw))).collect()
    }

    /// What was not taken, as one object; `None` where nothing is left.
    pub(super) fn into_extra(self) -> Option<Json> {
        extra(&self.rest())
    }

    fn take_if<T>(&mut self, key: &str, value: Option<T>) -> Option<T> {
        if value.is_some() {
            self.members.remove(key);
        }
        value
    }
}

/// Members as one object; `None` where there are none.
pub(super) fn extra(members: &BTreeMap<String, Json>) -> Option<Json> {
    if members.is_empty() { None } else { Json::from_serialize(members).ok() }
}

/// The string a value is.
pub(super) fn text(raw: &RawValue) -> Option<String> {
    if raw.get().starts_with('"') { serde_json::from_str(raw.get()).ok() } else { None }
}

/// The elements of the array a value is.
pub(super) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if raw.get().starts_with('[') { serde_json::from_str(raw.get()).ok() } else { None }
}

fn number(raw: &RawValue) -> Option<String> {
    let is_number = raw.get().starts_with(|first: char| first == '-' || first.is_ascii_digit());
    is_number.then(|| raw.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Object, RawValue};

    #[test]
    fn what_is_not_taken_is_left() {
        let mut object =
            Object::from_slice(br#"{"a":"x","b":[1],"c":7,"d":null,"e":{"f":1.50},"c":8}"#).unwrap();
        assert_eq!(object.text("b"), None);
        assert_eq!(object.text("a").as_deref(), Some("x"));
        assert_eq!(object.id("c").as_deref(), Some("8"));
        assert_eq!(object.object("e").take("f").map(RawValue::get), Some("1.50"));
        assert!(object.has("d") && object.take("d").is_none());
        assert_eq!(object.clone().take_object(|key| key == "b"), r#"{"b":[1]}"#);
        assert_eq!(object.into_extra().unwrap().as_str(), r#"{"b":[1]}"#);
    }
}
