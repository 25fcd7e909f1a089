//! Exporters: one file a trainer's format, each turning an example into a row or saying why it cannot.
//!
//! A format carries exactly what an example says or refuses it: no weight is rounded, no part left
//! out. [`ExportWriter`] streams rows to a file, looks at each once more for what must not leave, and
//! writes beside it a [`Manifest`] of what went in, what did not and why.
//!
//! Adding a format is one file here and one line in [`EXPORTERS`].

pub mod atif;
mod chat;
mod manifest;
mod trl_messages;
mod trl_prompt_completion;
mod writer;

use serde_json::Value;

pub use self::manifest::{Manifest, Provenance};
pub use self::trl_messages::TrlMessages;
pub use self::trl_prompt_completion::TrlPromptCompletion;
pub use self::writer::{ExportError, ExportWriter};
pub(crate) use self::writer::{PARTIAL, partial, place};
use crate::trajectory::Trajectory;
use crate::views::Example;

/// Writes one format of training rows.
pub trait Exporter: Sync {
    /// The format's name on the command line and in manifests (`trl-messages`).
    fn format(&self) -> &'static str;

    /// One row.
    ///
    /// # Errors
    /// When the format cannot carry the example exactly.
    fn row(&self, example: &Example, run: &Trajectory) -> Result<Value, Refusal>;

    /// Settings of the trainer without which it would learn more than the rows say.
    fn train_with(&self) -> &'static [(&'static str, bool)] {
        &[]
    }

    /// Marks the first row of a file where readers infer types from the first rows.
    fn open(&self, _row: &mut Value) {}
}

/// Every format.
pub const EXPORTERS: &[&dyn Exporter] = &[&TrlMessages, &TrlPromptCompletion];

/// Why a format cannot carry an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("cannot be written: {reason}")]
pub struct Refusal {
    /// Stable words, by which manifests count.
    pub reason: &'static str,
}

impl Refusal {
    const fn because(reason: &'static str) -> Self {
        Self { reason }
    }
}
