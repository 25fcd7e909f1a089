//! Statistics of a project.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{FILE, LargestComponent, OutcomeCounts, Store, StoreError};
use crate::trajectory::Status;

/// What a project holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Stats {
    /// Runs, latest revisions only.
    pub trajectories: u64,
    /// Older revisions that are kept beside them.
    pub superseded: u64,
    /// Messages of all runs and revisions, as imported.
    pub nodes: u64,
    /// Messages stored: distinct (prefix, message) pairs.
    pub stored_nodes: u64,
    /// Byte strings stored: bodies, records, media.
    pub blobs: u64,
    /// Media stored.
    pub media: u64,
    /// Compressed frames.
    pub packs: u64,
    /// Bytes in packs before compression.
    pub raw_bytes: u64,
    /// Bytes in packs.
    pub packed_bytes: u64,
    /// Bytes of the database file, what is not yet folded in from its log left out.
    pub file_bytes: u64,
    /// Messages as imported for each one stored; 1 without any.
    pub dedup_ratio: f64,
    /// Verdicts.
    pub verdicts: u64,
    /// Verdicts on superseded revisions.
    pub stale_verdicts: u64,
    /// Labels whose run has not been imported, or has.
    pub loose_labels: u64,
    /// Latest runs by outcome, labels applied.
    pub outcomes: OutcomeCounts,
    /// Latest runs by format.
    pub formats: BTreeMap<String, FormatStats>,
    /// Latest runs by side of the split; runs of an import that did not finish are under `none`, those
    /// that would join two sides under `excluded`.
    pub splits: BTreeMap<String, u64>,
    /// Whether templates, repositories and seeds of databases tie runs in the split.
    pub split_strict: bool,
    /// The tied tasks that are the most.
    pub largest_component: Option<LargestComponent>,
    /// Latest runs that an earlier one nearly equals.
    pub near_duplicates: u64,
}

/// What a project holds of one format, latest revisions only.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FormatStats {
    /// Runs.
    pub trajectories: u64,
    /// Their messages.
    pub nodes: u64,
    /// Their tool calls.
    pub tool_calls: u64,
    /// Their tool results.
    pub tool_results: u64,
    /// By outcome, labels applied.
    pub outcomes: OutcomeCounts,
}

impl Store {
    /// Counts what the project holds.
    pub fn stats(&self) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        self.count_runs(&mut stats)?;
        stats.split_strict = self.is_split_strict()?;
        stats.largest_component = self.largest_component()?;
        stats.near_duplicates = self.near_duplicates()?.len() as u64;
        let count = |sql: &str| -> Result<u64, StoreError> {
            Ok(self.connection.query_row(sql, [], |row| row.get::<_, i64>(0))? as u64)
        };
        stats.superseded = count("SELECT count(*) FROM trajectory WHERE NOT latest")?;
        stats.nodes = count("SELECT ifnull(sum(nodes), 0) FROM trajectory")?;
        stats.stored_nodes = count("SELECT count(*) FROM node")?;
        stats.blobs = count("SELECT count(*) FROM blob")?;
        stats.media = count("SELECT count(*) FROM media")?;
        stats.packs = count("SELECT count(*) FROM pack")?;
        stats.raw_bytes = count("SELECT ifnull(sum(raw_len), 0) FROM pack")?;
        stats.packed_bytes = count("SELECT ifnull(sum(length(data)), 0) FROM pack")?;
        stats.verdicts = count("SELECT count(*) FROM verdict")?;
        stats.stale_verdicts = count(
            "SELECT count(*) FROM verdict JOIN trajectory ON trajectory.seq = subject WHERE NOT latest",
        )?;
        stats.loose_labels = count("SELECT count(*) FROM loose_label")?;
        let file = self.dir.join(FILE);
        stats.file_bytes = std::fs::metadata(&file).map_err(|error| StoreError::io(&file, error))?.len();
        stats.dedup_ratio =
            if stats.stored_nodes == 0 { 1.0 } else { stats.nodes as f64 / stats.stored_nodes as f64 };
        Ok(stats)
    }

    fn count_runs(&self, stats: &mut Stats) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT format, outcome, ifnull(split, 'none'), count(*), sum(nodes), sum(tool_calls),
                    sum(tool_results)
             FROM trajectory WHERE latest GROUP BY 1, 2, 3",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let number = |index| row.get::<_, i64>(index).map(|count| count as u64);
            let (outcome, runs): (String, u64) = (row.get(1)?, number(3)?);
            let format = stats.formats.entry(row.get(0)?).or_default();
            format.trajectories += runs;
            format.nodes += number(4)?;
            format.tool_calls += number(5)?;
            format.tool_results += number(6)?;
            let status =
                [Status::Success, Status::Failure].into_iter().find(|known| known.as_str() == outcome);
            let status = status.unwrap_or(Status::Unknown);
            format.outcomes.add_many(status, runs);
            stats.outcomes.add_many(status, runs);
            stats.trajectories += runs;
            *stats.splits.entry(row.get(2)?).or_default() += runs;
        }
        Ok(())
    }
}
