//! What was written for other programs: `export` and `env export`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::artifact::Provenance;
use crate::pipeline::AtifExport;

/// What was exported, and where to (`export`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Exported<'a> {
    /// What was exported.
    #[serde(flatten)]
    pub export: &'a AtifExport,
    /// The folder.
    pub out: &'a str,
}

/// A view that was exported (`export` of training rows); one a line. Its head is its manifest's: the format is
/// that of the rows.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportedRows<'a> {
    /// The format that the rows were written in.
    pub format: &'a str,
    /// Version of this project's writing of the format.
    pub format_version: u32,
    /// Who made it, from what.
    #[serde(flatten)]
    pub provenance: &'a Provenance,
    /// The view.
    pub view: &'a str,
    /// Rows written.
    pub rows: u64,
    /// Runs that gave no example, by reason.
    pub excluded: &'a BTreeMap<String, u64>,
    /// Examples that became no row, by reason.
    pub refused: &'a BTreeMap<String, u64>,
    /// Examples dropped as equal to an earlier one.
    pub duplicates: u64,
    /// Tokens of all rows, where rows are tokens of a model.
    pub tokens: Option<u64>,
    /// Tokens that are learned, where rows are tokens of a model.
    pub trained_tokens: Option<u64>,
    /// Files written, in the folder: the rows, what a reader needs beside them, the manifest.
    pub files: Vec<&'a str>,
    /// The folder.
    pub out: &'a str,
    /// Whether the files were read again and found as they should be (`--check`).
    pub checked: bool,
}

/// Tasks that were written for other programs (`env export`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExportedTasks<'a> {
    /// Name of the environment.
    pub package: &'a str,
    /// Who reads them: `harbor` or `verifiers`.
    pub to: &'static str,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of files.
    pub files: u64,
    /// Files that were not there yet.
    pub new: u64,
    /// The folder.
    pub out: String,
}
