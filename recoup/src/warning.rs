//! What could not be carried or read, said out loud: nothing is dropped in silence.

use serde::{Deserialize, Serialize};

/// A half-open range of bytes in a source, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ByteSpan {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
}

/// Something a source says that the records cannot carry; the rest of the run was imported.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Loss {
    /// Format that was being read (or written).
    pub format: String,
    /// The field or feature, as the format spells it (`message.weight`).
    pub field: String,
    /// Why it was not carried, in a few words; the same words for the same cause, so they count.
    pub reason: String,
}

impl Loss {
    /// A loss entry.
    pub fn new(format: &str, field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { format: format.to_owned(), field: field.into(), reason: reason.into() }
    }
}

/// A loss, with how often it occurred.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountedLoss {
    /// What was lost.
    #[serde(flatten)]
    pub loss: Loss,
    /// How often.
    pub count: u64,
}

/// A record that could not be read. Its bytes stay where they are; the rest of the file goes on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quarantine {
    /// Where it stands: the path as the user gave it, `#member` for an archive's.
    pub uri: String,
    /// 1-based line of its first byte, where lines mean something.
    pub line: Option<u64>,
    /// The record's bytes.
    pub span: Option<ByteSpan>,
    /// Stable word for the cause (`invalid-json`, `too-large`, `missing-field` …).
    pub code: String,
    /// What is wrong, for a person.
    pub reason: String,
}
