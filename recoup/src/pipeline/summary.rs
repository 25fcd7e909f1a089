//! The summary: what a command did, in the numbers that `--json` promises to keep.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Diagnosing, Imported, Outlets};
use crate::exporters::TokenCounts;
use crate::store::{FormatCounts, OutcomeCounts, Store, StoreError};
use crate::verdict::Party;

/// The last line of standard output under `--json`; keys are only ever added.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Summary {
    /// Files that held runs.
    pub files: u64,
    /// Runs read, duplicates included.
    pub trajectories: u64,
    /// Runs that were not in the project before.
    pub new: u64,
    /// Runs that were, with the same content.
    pub duplicates: u64,
    /// New runs that continue one that was there.
    pub revisions: u64,
    /// Messages of the runs read.
    pub nodes: u64,
    /// Tool calls of the runs read.
    pub tool_calls: u64,
    /// Tool results of the runs read.
    pub tool_results: u64,
    /// Records that could not be read.
    pub quarantined: u64,
    /// Files that are no traces.
    pub unrecognized: u64,
    /// Files that could not be read.
    pub unreadable: u64,
    /// Things that the records cannot carry.
    pub losses: u64,
    /// New runs on no side of the split because they would join two.
    pub excluded_by_split: u64,
    /// Lines of an outcome file that were attached to no run: they name none, or runs of several tasks.
    pub unmatched_outcomes: u64,
    /// Runs read, by outcome as it stands: with labels, outcome files and assumptions.
    pub outcomes: OutcomeCounts,
    /// Runs of the project that did not succeed, by whose failure it was.
    pub blame: BTreeMap<&'static str, u64>,
    /// The same counts by format.
    pub formats: BTreeMap<String, FormatSummary>,
    /// Runs of the project with a diagnosis.
    pub diagnosed: u64,
    /// Diagnoses made by this call.
    pub diagnosed_new: u64,
    /// What the panel did, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<Diagnosing>,
    /// Failed runs replayed by this call because their environment is known.
    pub replayed: u64,
    /// Failed runs that this call looked at and found a goal for which they did achieve.
    pub relabeled: u64,
    /// Rows written, by view.
    pub exported: BTreeMap<String, u64>,
    /// What they count in tokens of the model that they were made or proved for, by view; absent where none is named.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tokens: BTreeMap<String, TokenCounts>,
    /// Runs that gave no row, by view and reason.
    pub excluded: BTreeMap<String, BTreeMap<String, u64>>,
    /// The report's path, where one was asked for.
    pub report: Option<String>,
}

/// Counts of one format.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FormatSummary {
    /// Files of this format.
    pub files: u64,
    /// What was in them.
    #[serde(flatten)]
    pub counts: FormatCounts,
    /// Records that could not be read, over all formats' files that detection told apart.
    pub quarantined: u64,
}

/// Puts the stages' numbers together.
///
/// # Errors
/// When the store cannot be read.
pub fn summarize(
    store: &Store,
    imported: &Imported,
    diagnosing: Option<&Diagnosing>,
    outlets: Option<&Outlets>,
) -> Result<Summary, StoreError> {
    let stored = &imported.stored;
    let counts = &stored.counts;
    let project = store.failures()?;
    let outcomes = store.outcomes(&stored.runs)?;
    Ok(Summary {
        files: imported.file_count(),
        trajectories: counts.trajectories,
        new: counts.new,
        duplicates: counts.duplicates,
        revisions: counts.revisions,
        nodes: counts.nodes,
        tool_calls: counts.tool_calls,
        tool_results: counts.tool_results,
        quarantined: stored.quarantined_count,
        unrecognized: imported.unrecognized.len() as u64,
        unreadable: imported.problems.iter().filter(|problem| !problem.is_skip()).count() as u64,
        losses: stored.losses.values().sum(),
        excluded_by_split: stored.excluded_by_split,
        unmatched_outcomes: imported.attached.unmatched.len() as u64,
        outcomes,
        blame: Party::ALL
            .iter()
            .map(|party| (party.as_str(), project.blame.get(party.as_str()).copied().unwrap_or(0)))
            .collect(),
        formats: formats(imported),
        diagnosed: project.diagnosed,
        diagnosed_new: diagnosing.map_or(0, |diagnosing| diagnosing.diagnosed),
        judged: None,
        replayed: 0,
        relabeled: 0,
        exported: outlets
            .map(|outlets| {
                outlets.manifests.iter().map(|manifest| (manifest.view.clone(), manifest.rows)).collect()
            })
            .unwrap_or_default(),
        tokens: outlets
            .map(|outlets| {
                let of = outlets.manifests.iter();
                of.filter_map(|manifest| Some((manifest.view.clone(), manifest.tokens?))).collect()
            })
            .unwrap_or_default(),
        excluded: outlets
            .map(|outlets| {
                let of = outlets.manifests.iter();
                of.map(|manifest| (manifest.view.clone(), manifest.excluded.clone())).collect()
            })
            .unwrap_or_default(),
        report: None,
    })
}

fn formats(imported: &Imported) -> BTreeMap<String, FormatSummary> {
    let mut formats: BTreeMap<String, FormatSummary> = BTreeMap::new();
    let empty = || FormatSummary { files: 0, counts: FormatCounts::default(), quarantined: 0 };
    for (format, files) in &imported.files {
        formats.entry(format.clone()).or_insert_with(empty).files = *files;
    }
    for (format, counts) in &imported.stored.formats {
        formats.entry(format.clone()).or_insert_with(empty).counts = counts.clone();
    }
    for (format, count) in &imported.quarantined {
        formats.entry(format.clone()).or_insert_with(empty).quarantined = *count;
    }
    formats
}
