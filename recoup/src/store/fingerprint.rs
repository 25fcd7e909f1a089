//! What the project's artifacts are made from, in one hash, and the counts that a summary of it needs.

use std::collections::BTreeMap;

use super::{OutcomeCounts, Store, StoreError};
use crate::id::{Hash, TrajectoryId};

/// Runs that did not succeed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// By whose failure it was.
    pub blame: BTreeMap<String, u64>,
    /// Runs with a diagnosis.
    pub diagnosed: u64,
}

impl Store {
    /// Hash of the latest revision of every run, in import order, and of every verdict, in the order of
    /// their ids. Equal hashes mean equal artifacts.
    pub fn fingerprint(&self) -> Result<Hash, StoreError> {
        let mut hasher = blake3::Hasher::new();
        for sql in
            ["SELECT id FROM trajectory WHERE latest ORDER BY seq", "SELECT id FROM verdict ORDER BY id"]
        {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                hasher.update(&row.get::<_, [u8; 32]>(0)?);
            }
            hasher.update(b";");
        }
        Ok(Hash(hasher.finalize().into()))
    }

    /// Outcomes of some runs as they stand, labels applied.
    pub fn outcomes(&self, runs: &[TrajectoryId]) -> Result<OutcomeCounts, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT outcome FROM trajectory WHERE id = ?1")?;
        let mut counts = OutcomeCounts::default();
        for run in runs {
            match statement.query_row([run.0.0], |row| row.get::<_, String>(0))?.as_str() {
                "success" => counts.success += 1,
                "failure" => counts.failure += 1,
                _ => counts.unknown += 1,
            }
        }
        Ok(counts)
    }

    /// Counts the runs that did not succeed, latest revisions only.
    pub fn failures(&self) -> Result<Failures, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT blame, count(*), count(decisive_node) FROM trajectory
             WHERE latest AND origin IS NULL AND blame IS NOT NULL GROUP BY blame",
        )?;
        let mut failures = Failures::default();
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let count: i64 = row.get(1)?;
            let diagnosed: i64 = row.get(2)?;
            failures.blame.insert(row.get(0)?, count as u64);
            failures.diagnosed += diagnosed as u64;
        }
        Ok(failures)
    }
}
