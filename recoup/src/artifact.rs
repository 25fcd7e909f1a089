//! An artifact: something that recoup writes for others, headed by what it is, who made it and from what.

use serde::{Deserialize, Serialize};

use crate::id::Hash;
use crate::json::Json;

/// Program and version that artifacts name.
pub const PRODUCER: &str = concat!("recoup ", env!("CARGO_PKG_VERSION"));

/// Who makes an artifact, from what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Provenance {
    /// Program and version.
    pub producer: String,
    /// Hash of the settings that decide content.
    pub config_hash: String,
    /// Hash of the runs and verdicts that it was made from; empty where none were.
    pub inputs_hash: String,
}

impl Provenance {
    /// This program's.
    pub fn new(config_hash: String, inputs_hash: String) -> Self {
        Self { producer: PRODUCER.to_owned(), config_hash, inputs_hash }
    }
}

/// Hash of the settings that decide content; equal ones have equal hashes.
pub fn config_hash<T: Serialize>(settings: &T) -> String {
    // Settings have string keys and finite numbers, so there always is a canonical form.
    Json::from_serialize(settings)
        .map_or_else(|_| String::new(), |settings| Hash::of(settings.as_str().as_bytes()).to_string())
}

/// A body behind the head that every artifact has. Keys of the body are only ever added within one
/// `format_version`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Artifact<T> {
    /// What it is (`recoup.summary`).
    pub format: &'static str,
    /// Version of this form.
    pub format_version: u32,
    /// Who made it, from what.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// What it says.
    #[serde(flatten)]
    pub body: T,
}

/// A body with a format of its own.
pub trait Body {
    /// Name of the format.
    const FORMAT: &'static str;
}

impl<T: Body> Artifact<T> {
    /// Puts the head before a body.
    pub fn new(provenance: Provenance, body: T) -> Self {
        Self { format: T::FORMAT, format_version: 1, provenance, body }
    }
}

/// An artifact as the text of a file: indented, with a final line feed.
pub fn pretty<T: Serialize>(artifact: &T) -> String {
    // Every map has string keys and every number is finite, so this cannot fail.
    let mut text = serde_json::to_string_pretty(artifact).unwrap_or_default();
    text.push('\n');
    text
}
