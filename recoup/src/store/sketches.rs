//! Sketches: by what near-duplicates of stored runs are found, kept beside each run.

use std::collections::BTreeMap;

use rusqlite::Connection;

use super::{Store, StoreError};
use crate::deduplication::{Sketch, first_of_cluster};
use crate::failpoint::Failpoint;
use crate::id::{Hash, TrajectoryId};
use crate::task::Task;

/// Runs of one commit.
const BATCH: usize = 1000;

/// A run with its sketch.
pub(super) struct Sketched {
    pub(super) seq: i64,
    pub(super) id: TrajectoryId,
    pub(super) task: String,
    /// Whether it has a side of the split.
    pub(super) is_split: bool,
}

impl Store {
    /// The latest runs that an earlier one nearly equals, each with the first of those; continuations
    /// left out.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn near_duplicates(&self) -> Result<BTreeMap<TrajectoryId, TrajectoryId>, StoreError> {
        let (runs, sketches) = sketched(&self.connection, "latest AND origin IS NULL")?;
        let first = first_of_cluster(&sketches);
        let repeated = first.iter().enumerate().filter(|(at, first)| at != *first);
        Ok(repeated.map(|(at, first)| (runs[at].id, runs[*first].id)).collect())
    }
}

/// Keeps the sketch of a run, and what ties it in a strict split.
pub(super) fn put(
    connection: &Connection,
    seq: i64,
    sketch: Option<&Sketch>,
    task: &Task,
) -> rusqlite::Result<()> {
    let body = sketch.map(Sketch::to_bytes).unwrap_or_default();
    connection.prepare_cached("INSERT OR REPLACE INTO sketch VALUES(?1, ?2)")?.execute((seq, body))?;
    let template = task.template_key.iter().map(|key| Hash::of_all(&[b"template", key.as_bytes()]));
    let groups = task.group_keys.iter().map(|key| Hash::of_all(&[b"group", key.as_bytes()]));
    let mut link = connection.prepare_cached("INSERT OR IGNORE INTO strict_link VALUES(?1, ?2)")?;
    for hash in template.chain(groups) {
        link.execute((seq, hash.0))?;
    }
    Ok(())
}

/// Sketches the runs that an older program has stored without.
pub(super) fn complete(store: &Store) -> Result<(), StoreError> {
    let missing: Vec<(i64, [u8; 32])> = {
        let mut statement = store.connection.prepare_cached(
            "SELECT seq, id FROM trajectory WHERE seq NOT IN (SELECT trajectory FROM sketch) ORDER BY seq",
        )?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        rows.collect::<Result<_, _>>()?
    };
    for batch in missing.chunks(BATCH) {
        let mut made = Vec::with_capacity(batch.len());
        for (seq, id) in batch {
            let run = store.load(TrajectoryId(Hash(*id)))?;
            made.push((*seq, Sketch::of(&run.nodes), run.task));
        }
        let transaction = store.write()?;
        for (seq, sketch, task) in &made {
            put(&transaction, *seq, sketch.as_ref(), task)?;
        }
        transaction.commit(Failpoint::Sketches)?;
    }
    Ok(())
}

/// The runs that have a sketch and meet a condition, in import order, with their sketches.
pub(super) fn sketched(
    connection: &Connection,
    condition: &str,
) -> Result<(Vec<Sketched>, Vec<Sketch>), StoreError> {
    let mut statement = connection.prepare_cached(&format!(
        "SELECT seq, id, task, split IS NOT NULL, body FROM sketch JOIN trajectory ON seq = trajectory
         WHERE length(body) > 0 AND {condition} ORDER BY seq"
    ))?;
    let mut rows = statement.query([])?;
    let (mut runs, mut sketches) = (Vec::new(), Vec::new());
    while let Some(row) = rows.next()? {
        let seq = row.get(0)?;
        let sketch = Sketch::from_bytes(row.get_ref(4)?.as_blob().map_err(rusqlite::Error::from)?);
        let unreadable = || StoreError::Corrupt(format!("run {seq}: its sketch cannot be read"));
        sketches.push(sketch.ok_or_else(unreadable)?);
        let id = TrajectoryId(Hash(row.get(1)?));
        runs.push(Sketched { seq, id, task: row.get(2)?, is_split: row.get(3)? });
    }
    Ok((runs, sketches))
}
