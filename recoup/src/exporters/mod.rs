//! Exporters: one file a trainer's format, each turning an example into a row or saying why it cannot.
//!
//! A format carries exactly what an example says or refuses it: no weight is rounded, no part left
//! out. [`ExportWriter`] streams rows to a file, looks at each once more for what must not leave, and
//! writes beside it a [`Manifest`] of what went in, what did not and why; [`check`] reads both again.
//!
//! Adding a format is one file here and its line in [`EXPORTERS`], the one list.

pub mod atif;
mod axolotl;
mod card;
mod chat;
mod check;
#[cfg(feature = "parquet")]
mod columns;
mod hashed;
mod hub;
mod learned;
mod llamafactory;
mod manifest;
mod openai;
#[cfg(feature = "parquet")]
mod plain;
#[cfg(feature = "parquet")]
pub mod release;
mod row_file;
mod rows;
#[cfg(feature = "parquet")]
mod scout;
mod shape;
mod tinker;
mod tokens;
mod trl;
mod trl_kto;
mod trl_messages;
mod trl_preference;
mod trl_prompt_completion;
#[cfg(feature = "templates")]
pub mod trl_tokenized;
mod unsloth;
#[cfg(feature = "parquet")]
mod verl;
#[cfg(feature = "templates")]
mod windows;
mod writer;

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

pub use self::check::{CheckError, check};
pub use self::manifest::Manifest;
pub use self::rows::{Built, ExportOptions, Prover, Refusal, build_rows};
pub use self::shape::{Key, Misfit, Shape};
pub use self::tokens::TokenCounts;
pub use self::trl::natural;
pub use self::trl_kto::TrlKto;
pub use self::trl_messages::TrlMessages;
pub use self::trl_preference::TrlPreference;
pub use self::trl_prompt_completion::TrlPromptCompletion;
#[cfg(feature = "parquet")]
pub(crate) use self::writer::place;
pub use self::writer::{ExportError, ExportWriter};
pub(crate) use self::writer::{PARTIAL, replace};
use crate::views::{Example, Objective, View};

/// Writes one format of training rows.
pub trait Exporter: Sync {
    /// The format's name on the command line and in manifests (`trl-messages`).
    fn format(&self) -> &'static str;

    /// The row of an example to imitate.
    ///
    /// # Errors
    /// When the format cannot carry the example exactly.
    fn row(&self, example: &Example) -> Result<Value, Refusal>;

    /// The row of a preference: the same state, the better message and the worse one.
    ///
    /// # Errors
    /// As [`Self::row`].
    fn pair(&self, _chosen: &Example, _rejected: &Example) -> Result<Value, Refusal> {
        Err(Refusal::OBJECTIVE)
    }

    /// The row of an example whose last message is wanted or not.
    ///
    /// # Errors
    /// As [`Self::row`].
    fn labelled(&self, _example: &Example, _is_wanted: bool) -> Result<Value, Refusal> {
        Err(Refusal::OBJECTIVE)
    }

    /// The rows of an example to imitate: one, unless the format carries it step by step.
    fn rows(&self, example: Example) -> Vec<Built> {
        let row = self.row(&example);
        vec![Built::one(example, row)]
    }

    /// Whether [`Self::row`] takes every example as it stands, its weights, objective and pair included.
    fn carries_everything(&self) -> bool {
        false
    }

    /// What a row looks like.
    fn shape(&self) -> &'static Shape {
        &Shape::Any
    }

    /// Whether rows are columns of a Parquet file; lines of JSON otherwise.
    fn is_columnar(&self) -> bool {
        false
    }

    /// Path of a view's file in the folder.
    fn file(&self, view: &str) -> String {
        format!("{view}.{}", if self.is_columnar() { "parquet" } else { "jsonl" })
    }

    /// Whether a row is text that a reader could take a secret from; token ids are not, and who writes
    /// them has looked at the text himself.
    fn is_text(&self) -> bool {
        true
    }

    /// How the format says what is learned, in words for a person.
    fn mask(&self) -> &'static str;

    /// Settings of the trainer without which it would learn other than the rows say.
    fn train_with(&self, _objective: Objective) -> BTreeMap<String, Value> {
        BTreeMap::new()
    }

    /// Marks the first row of a file where readers infer types from the first rows.
    fn open(&self, _row: &mut Value) {}

    /// Files that a reader needs beside the rows: name and text. `folder` may hold those of other views.
    ///
    /// # Errors
    /// When a file that stands there cannot be read.
    fn companions(
        &self,
        _folder: &Path,
        _manifest: &Manifest,
    ) -> std::io::Result<Vec<(&'static str, String)>> {
        Ok(Vec::new())
    }
}

/// A format that can be named on the command line.
#[derive(Clone, Copy)]
pub struct Format {
    /// Its name there.
    pub name: &'static str,
    /// What writes a view in it.
    pub of_view: fn(&dyn View) -> &'static dyn Exporter,
}

/// Every format of training rows that is made for no one model.
pub const EXPORTERS: &[Format] = &[
    Format { name: "trl", of_view: trl::of_view },
    Format { name: "trl-messages", of_view: |_| &TrlMessages },
    Format { name: "trl-prompt-completion", of_view: |_| &TrlPromptCompletion },
    Format { name: "trl-preference", of_view: |_| &TrlPreference },
    Format { name: "trl-kto", of_view: |_| &TrlKto },
    Format { name: "axolotl", of_view: |_| &axolotl::Axolotl },
    Format { name: "llamafactory", of_view: llamafactory::of_view },
    #[cfg(feature = "parquet")]
    Format { name: "verl", of_view: |_| &verl::VerlSft },
    #[cfg(feature = "parquet")]
    Format { name: "verl-rl", of_view: |_| &verl::VerlRl },
    Format { name: "openai", of_view: |_| &openai::OpenAi },
    Format { name: "tinker", of_view: |_| &tinker::Tinker },
    Format { name: "unsloth", of_view: |_| &unsloth::Unsloth },
    #[cfg(feature = "parquet")]
    Format { name: "scout", of_view: |_| &scout::Scout },
    Format { name: "hf", of_view: hub::of_view },
    #[cfg(feature = "parquet")]
    Format { name: "parquet", of_view: |_| &plain::Plain },
];

/// A training file: a view, and the format that carries it exactly.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// What it teaches.
    pub view: &'static dyn View,
    /// How it is written.
    pub exporter: &'a dyn Exporter,
    /// What the user decided about it.
    pub options: ExportOptions<'a>,
}

/// Names of all formats that can be written: of whole runs, then of training rows.
pub fn formats() -> Vec<&'static str> {
    let mut formats = vec![atif::FORMAT];
    #[cfg(feature = "templates")]
    formats.push(trl_tokenized::FORMAT);
    formats.extend(EXPORTERS.iter().map(|format| format.name));
    formats
}

/// What writes a view in a format; `None` where none is so named.
pub fn exporter(format: &str, view: &dyn View) -> Option<&'static dyn Exporter> {
    let named = EXPORTERS.iter().find(|known| known.name == format)?;
    Some((named.of_view)(view))
}
