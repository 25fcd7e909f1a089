//! Previews: examples as a person reads them, with what is learned marked.

use serde::Serialize;

/// One example, shortened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preview {
    /// Id of the run whose messages it shows.
    pub run: String,
    /// What says that it is right (`replay`).
    pub evidence: String,
    /// What is said of the whole of it: `chosen`, `rejected`, `wanted` or `unwanted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub word: Option<String>,
    /// Its messages, root first.
    pub messages: Vec<PreviewMessage>,
}

/// A message of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PreviewMessage {
    /// Messages left out before it.
    pub left_out: u64,
    /// Chat role.
    pub role: String,
    /// Its label, where steps are labelled: `right` or `wrong`, with its value where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Its text.
    pub pieces: Vec<Piece>,
}

/// A stretch of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Piece {
    /// The text, redacted.
    pub text: String,
    /// Whether it is learned.
    pub learned: bool,
    /// Whether it goes on with the text of the stretch before it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub continues: bool,
    /// Characters left out after it.
    pub left_out: u64,
}
