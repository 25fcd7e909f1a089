//! A JSON value kept as its canonical text: exact numbers, cheap to clone, stable bytes.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::canonical::{CanonicalError, canonicalize, write_string};

/// A JSON value whose meaning the records do not fix (an `extra` field, a gold answer, a schema).
///
/// It holds `canonical-1` text, so equal values compare equal and big integers lose nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Reads a JSON text.
    ///
    /// # Errors
    /// When the text has no canonical form.
    pub fn parse(text: &str) -> Result<Self, CanonicalError> {
        Ok(Self(canonicalize(text)?.into()))
    }

    /// Reads a JSON text from a trace: one without a canonical form (a duplicate key, say) is kept,
    /// whole, as a JSON string of the source text.
    pub fn from_foreign(text: &str) -> Self {
        Self::parse(text).unwrap_or_else(|_| Self::string(text))
    }

    /// A text that is in the canonical form because of how it was written.
    pub(crate) fn from_canonical(text: String) -> Self {
        Self(text.into())
    }

    /// A JSON string.
    pub fn string(text: &str) -> Self {
        let mut out = String::with_capacity(text.len() + 2);
        write_string(&mut out, text);
        Self(out.into())
    }

    /// The canonical form of any serializable value.
    ///
    /// # Errors
    /// When the value has no canonical form (a NaN, a map with non-string keys).
    pub fn from_serialize<T: Serialize + ?Sized>(value: &T) -> Result<Self, CanonicalError> {
        let text = serde_json::to_string(value)
            .map_err(|_| CanonicalError::Syntax { at: 0, expected: "a serializable value" })?;
        Self::parse(&text)
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value as a tree; integers beyond 64 bits become doubles here.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::from_str(&self.0).unwrap_or_else(|_| serde_json::Value::String(self.0.to_string()))
    }
}

impl AsRef<str> for Json {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl From<&RawValue> for Json {
    fn from(raw: &RawValue) -> Self {
        Self::from_foreign(raw.get())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(raw.get()).map_err(serde::de::Error::custom)
    }
}
