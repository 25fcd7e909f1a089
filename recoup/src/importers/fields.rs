//! Fields: the members of a JSON object, taken one by one, so that what nobody takes is known.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::RecordError;
use crate::json::Json;

/// The members of an object that nobody has taken yet; values keep their source text.
pub(super) struct Fields<'a>(BTreeMap<String, &'a RawValue>);

impl<'a> Fields<'a> {
    /// The members of an object.
    pub(super) fn of(raw: &'a RawValue) -> Result<Self, RecordError> {
        Self::read(raw.get().as_bytes())
    }

    /// The members of the object that a JSON text is.
    pub(super) fn read(text: &'a [u8]) -> Result<Self, RecordError> {
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        if first.is_some_and(|byte| *byte != b'{') {
            // A text that is no JSON at all is told apart from JSON of another kind.
            serde_json::from_slice::<&RawValue>(text)?;
            return Err(RecordError::new("not-an-object", "expected a JSON object"));
        }
        Ok(Self(serde_json::from_slice(text)?))
    }

    /// The member's source text; `None` where it is absent or null.
    pub(super) fn raw(&mut self, key: &str) -> Option<&'a RawValue> {
        self.0.remove(key).filter(|raw| raw.get() != "null")
    }

    /// The member, if it is present and not null.
    pub(super) fn optional<T: Deserialize<'a>>(&mut self, key: &str) -> Result<Option<T>, RecordError> {
        let Some(raw) = self.raw(key) else { return Ok(None) };
        serde_json::from_str(raw.get())
            .map(Some)
            .map_err(|error| RecordError::new("wrong-type", format!("`{key}`: {error}")))
    }

    /// The member, which must be there.
    pub(super) fn required<T: Deserialize<'a>>(&mut self, key: &str) -> Result<T, RecordError> {
        self.optional(key)?.ok_or_else(|| RecordError::new("missing-field", format!("no `{key}`")))
    }

    /// The member as a value to carry along.
    pub(super) fn json(&mut self, key: &str) -> Option<Json> {
        self.raw(key).map(Json::from)
    }

    /// What is left, by name, without nulls.
    pub(super) fn rest(self) -> BTreeMap<String, Json> {
        let present = self.0.into_iter().filter(|(_, raw)| raw.get() != "null");
        present.map(|(key, raw)| (key, Json::from(raw))).collect()
    }

    /// What is left, as one object; `None` where nothing is.
    pub(super) fn rest_object(self) -> Option<Json> {
        let rest = self.rest();
        // Canonical values under string keys always have a canonical form.
        if rest.is_empty() { None } else { Json::from_serialize(&rest).ok() }
    }
}

/// The text of a JSON string, or the source text of any other value.
pub(super) fn text_or_source(raw: &RawValue) -> String {
    serde_json::from_str(raw.get()).unwrap_or_else(|_| raw.get().to_owned())
}

#[cfg(test)]
mod tests {
    use super::Fields;

    #[test]
    fn what_nobody_takes_is_left() {
        let mut fields = Fields::read(br#" {"a": 1, "b": null, "c": {"d": 1.0}} "#).unwrap();
        assert_eq!(fields.required::<u64>("a"), Ok(1));
        assert_eq!(fields.optional::<String>("b"), Ok(None));
        assert_eq!(fields.required::<String>("b").unwrap_err().code, "missing-field");
        assert_eq!(fields.rest_object().unwrap().as_str(), r#"{"c":{"d":1.0}}"#);
    }

    #[test]
    fn other_values_and_other_texts_are_told_apart() {
        let code = |text: &str| Fields::read(text.as_bytes()).err().unwrap().code;
        assert_eq!(code("[1]"), "not-an-object");
        assert_eq!(code("nonsense"), "invalid-json");
        assert_eq!(code(r#"{"a": 1"#), "truncated");
    }
}
