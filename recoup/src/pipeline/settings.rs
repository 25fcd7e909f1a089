//! The settings that decide what a run of the pipeline gives, as they are stored beside what it wrote.

use serde::Serialize;

use super::Selection;
use crate::artifact::{Body, config_hash};
use crate::id::Hash;
use crate::importers::ImportOptions;
use crate::views::ViewSettings;

/// Settings that decide content; what only decides speed is not among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ContentSettings {
    /// Scorer to trust where a file has several.
    pub score: Option<String>,
    /// Least score that counts as success.
    pub success_at: Option<f64>,
    /// Bytes above which a record is quarantined.
    pub max_record_bytes: u64,
    /// Licence to record.
    pub licence: String,
    /// What is learned.
    pub views: ViewSettings,
    /// What nothing is learned from.
    #[serde(skip_serializing_if = "Selection::is_default")]
    pub selection: Selection,
    /// Hash of the chat template, the tokenizer and what was said of them, where rows are made or proved for a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Hash>,
}

impl Body for ContentSettings {
    const FORMAT: &'static str = "recoup.settings";
}

impl ContentSettings {
    /// The part of an import's options that decides content, and what the views were told.
    pub fn of(options: &ImportOptions, views: ViewSettings) -> Self {
        Self {
            score: options.scoring.score.clone(),
            success_at: options.scoring.success_at,
            max_record_bytes: options.record_bytes_max,
            licence: options.licence.clone(),
            views,
            selection: Selection::default(),
            model: None,
        }
    }

    /// Hash of the settings; equal ones have equal hashes.
    pub fn hash(&self) -> String {
        config_hash(self)
    }
}
