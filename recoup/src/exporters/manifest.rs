//! The manifest of an export: what went in, what did not and why, and what says that the file is whole.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{TokenCounts, Training};
use crate::artifact::Provenance;
use crate::redaction::Kind;
use crate::verdict::Side;
use crate::views::{Objective, Tally};

/// Written as `<view>.manifest.json` in the folder of the rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Manifest {
    /// The exporter's format.
    pub format: String,
    /// Version of this project's writing of the format.
    pub format_version: u32,
    /// Who made it, from what.
    #[serde(flatten)]
    pub provenance: Provenance,
    /// The view.
    pub view: String,
    /// What a trainer makes of an example.
    pub objective: Objective,
    /// How the rows say what is learned, in words for a person.
    pub mask: String,
    /// Settings of the trainer without which it would learn other than the rows say.
    pub train_with: BTreeMap<String, Value>,
    /// The settings that decide content.
    pub config: Value,
    /// Whether rows were repeated or left out by their weight.
    pub resampled: bool,
    /// Rows written.
    pub rows: u64,
    /// What rows count in tokens of the model that they are made or proved for; absent where none is named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenCounts>,
    /// Runs offered.
    #[serde(rename = "in")]
    pub runs_in: u64,
    /// What the view built of them.
    pub built: Tally,
    /// Runs that gave no example, by reason.
    pub excluded: BTreeMap<String, u64>,
    /// Examples that became no row, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Examples dropped as equal to an earlier one.
    pub duplicates: u64,
    /// Replacements in the runs that gave rows, by kind.
    pub redactions: BTreeMap<Kind, u64>,
    /// Rows by the source's licence.
    pub licences: BTreeMap<String, u64>,
    /// Rows by side of the split.
    pub split: BTreeMap<Side, u64>,
    /// Rows by each gate that admitted what they rest on (`S4`); a row counts for every one.
    #[serde(default)]
    pub gates: BTreeMap<String, u64>,
    /// SHA-256 of the file of rows, hexadecimal.
    pub sha256: String,
    /// Files of the export but this one: the rows, then what a reader needs beside them.
    pub files: Vec<String>,
}

impl Manifest {
    /// Version of this project's writing of its formats.
    pub const FORMAT_VERSION: u32 = 2;

    pub(super) fn new(training: &Training<'_>, provenance: Provenance, config: Value) -> Self {
        let Training { view, exporter, options } = training;
        Self {
            format: exporter.format().to_owned(),
            format_version: Self::FORMAT_VERSION,
            provenance,
            view: view.name().to_owned(),
            objective: view.objective(),
            mask: exporter.mask().to_owned(),
            train_with: exporter.train_with(view.objective()),
            config,
            resampled: options.resample,
            rows: 0,
            tokens: None,
            runs_in: 0,
            built: Tally::default(),
            excluded: BTreeMap::new(),
            refused: BTreeMap::new(),
            duplicates: 0,
            redactions: BTreeMap::new(),
            licences: BTreeMap::new(),
            split: BTreeMap::new(),
            gates: BTreeMap::new(),
            sha256: String::new(),
            files: vec![exporter.file(view.name())],
        }
    }
}
