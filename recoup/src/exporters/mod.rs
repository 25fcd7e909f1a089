//! Exporters: one file a trainer's format, each turning an example into a row or saying why it cannot.
//!
//! A format carries exactly what an example says or refuses it: no weight is rounded, no part left
//! out. [`ExportWriter`] streams rows to a file, looks at each once more for what must not leave, and
//! writes beside it a [`Manifest`] of what went in, what did not and why.
//!
//! Adding a format is one file here and its place in [`TRAINING`], the one list of what is written for training.

pub mod atif;
mod chat;
#[cfg(feature = "parquet")]
mod columns;
mod manifest;
#[cfg(feature = "parquet")]
pub mod release;
mod shape;
mod tokens;
mod trl_messages;
mod trl_prompt_completion;
#[cfg(feature = "templates")]
pub mod trl_tokenized;
#[cfg(feature = "templates")]
mod windows;
mod writer;

use serde_json::Value;

pub use self::manifest::Manifest;
pub use self::tokens::TokenCounts;
pub use self::trl_messages::TrlMessages;
pub use self::trl_prompt_completion::TrlPromptCompletion;
pub use self::writer::{ExportError, ExportWriter};
pub(crate) use self::writer::{PARTIAL, partial, place};
use crate::views::{
    DiagnosisSft, Example, HindsightSft, PreventionSft, RecoverySft, StepMaskedSft, SuccessSft, View,
};

/// Writes one format of training rows.
pub trait Exporter: Sync {
    /// The format's name on the command line and in manifests (`trl-messages`).
    fn format(&self) -> &'static str;

    /// One row.
    ///
    /// # Errors
    /// When the format cannot carry the example exactly.
    fn row(&self, example: &Example) -> Result<Value, Refusal>;

    /// The rows of an example: one, unless the format carries it step by step.
    fn rows(&self, example: Example) -> Vec<Built> {
        let row = self.row(&example);
        vec![Built { example, row, tokens: None }]
    }

    /// Whether a row is text that a reader could take a secret from; token ids are not, and who writes
    /// them has looked at the text himself.
    fn is_text(&self) -> bool {
        true
    }

    /// Settings of the trainer without which it would learn more than the rows say.
    fn train_with(&self) -> &'static [(&'static str, bool)] {
        &[]
    }

    /// Marks the first row of a file where readers infer types from the first rows.
    fn open(&self, _row: &mut Value) {}
}

/// An example, and its row or why it has none.
#[derive(Clone, Debug)]
pub struct Built {
    /// The example.
    pub example: Example,
    /// Its row.
    pub row: Result<Value, Refusal>,
    /// What of a row of tokens is counted.
    pub tokens: Option<TokenCounts>,
}

/// A training file: a view, and the format that carries it exactly.
#[derive(Clone, Copy)]
pub struct Training<'a> {
    /// What it teaches.
    pub view: &'static dyn View,
    /// How it is written.
    pub exporter: &'a dyn Exporter,
}

/// Every training file, in the order of reports. TRL reads no per-message weights, so the masked view goes
/// out one kept step a row.
pub const TRAINING: &[Training<'static>] = &[
    Training { view: &SuccessSft, exporter: &TrlMessages },
    Training { view: &DiagnosisSft, exporter: &TrlPromptCompletion },
    Training { view: &PreventionSft, exporter: &TrlPromptCompletion },
    Training { view: &RecoverySft, exporter: &TrlPromptCompletion },
    Training { view: &StepMaskedSft, exporter: &TrlPromptCompletion },
    Training { view: &HindsightSft, exporter: &TrlPromptCompletion },
];

/// Names of all formats that can be written: of whole runs, then of training rows.
pub fn formats() -> Vec<&'static str> {
    let mut formats = vec![atif::FORMAT];
    #[cfg(feature = "templates")]
    formats.push(trl_tokenized::FORMAT);
    for Training { exporter, .. } in TRAINING {
        if !formats.contains(&exporter.format()) {
            formats.push(exporter.format());
        }
    }
    formats
}

/// The training files of one format: of those that are always written, or every view for an exporter that
/// is made for one model and carries them all.
pub fn training<'a>(format: &str, made: Option<&'a dyn Exporter>) -> Vec<Training<'a>> {
    match made {
        Some(exporter) => {
            TRAINING.iter().map(|training| Training { view: training.view, exporter }).collect()
        }
        None => TRAINING.iter().filter(|training| training.exporter.format() == format).copied().collect(),
    }
}

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
