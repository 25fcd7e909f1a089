//! Forgetting: runs that leave no byte behind.
//!
//! A forgotten run goes with all its revisions, its verdicts and their quotes, the labels kept for
//! it, what models answered about it, its names and the backup copies of older formats. What it alone referred to is cut out of the
//! packs; then the file is rewritten and its log emptied. A message that another run holds too, in
//! the same context, belongs to that run and stays; so does the side of a task that other runs share.
//! What a replay has continued from a forgotten run holds its messages, and goes with it.
//!
//! From the moment its rows are gone nobody can name a run again, though its bytes are still there. So
//! the same commit leaves a mark, and whatever stops the rest, [`Store::finish_forgetting`] does it.

use std::collections::BTreeSet;

use rusqlite::Connection;
use serde::Serialize;

use super::{FILE, GcReport, Store, StoreError, batches, pending, replies, split};
use crate::failpoint::Failpoint;
use crate::id::TrajectoryId;

/// Stands among the finished stages while bytes of forgotten runs may be left.
const MARK: &str = "forget";

/// What was forgotten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ForgetReport {
    /// Runs, each revision counted.
    pub trajectories: u64,
    /// Verdicts on them.
    pub verdicts: u64,
    /// What was cut out of the packs.
    pub collected: GcReport,
}

impl Store {
    /// Forgets runs. The file is rewritten, which needs room for a second copy while it lasts.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where an id is unknown; nothing is forgotten then. [`StoreError::Busy`]
    /// where another process has the project open in a way that keeps the log:
    /// [`Store::finish_forgetting`] later.
    pub fn forget(&mut self, ids: &[TrajectoryId]) -> Result<ForgetReport, StoreError> {
        self.check_writable()?;
        // Deleted text must not stay in the unused parts of pages either.
        self.connection.execute_batch("PRAGMA secure_delete = ON")?;
        let transaction = self.write()?;
        let mut report = ForgetReport::default();
        let mut runs = BTreeSet::new();
        for id in ids {
            runs.extend(revisions(&transaction, self.seq(*id)?)?);
        }
        let mut roots: Vec<i64> = runs.iter().copied().collect();
        while let Some(root) = roots.pop() {
            roots.extend(continuations(&transaction, root)?.into_iter().filter(|seq| runs.insert(*seq)));
        }
        let mut ties = Vec::with_capacity(runs.len());
        for seq in &runs {
            ties.push(split::Ties::of(&transaction, *seq)?);
            report.verdicts += delete(&transaction, *seq)?;
        }
        report.trajectories = runs.len() as u64;
        split::forget(&transaction, &ties)?;
        if !runs.is_empty() {
            replies::forget_unbound(&transaction)?;
            batches::forget_unbound(&transaction)?;
        }
        transaction.execute("INSERT OR REPLACE INTO done VALUES(?1, '', 0, 0)", [MARK])?;
        transaction.commit(Failpoint::Forget)?;
        report.collected = self.remove_bytes()?;
        Ok(report)
    }

    /// Finishes what a [`Store::forget`] that was stopped has left: does nothing where there is none.
    ///
    /// # Errors
    /// As [`Store::forget`].
    pub fn finish_forgetting(&mut self) -> Result<GcReport, StoreError> {
        if self.connection.prepare_cached("SELECT 1 FROM done WHERE stage = ?1")?.exists([MARK])? {
            self.remove_bytes()
        } else {
            Ok(GcReport::default())
        }
    }

    fn remove_bytes(&mut self) -> Result<GcReport, StoreError> {
        self.connection.execute_batch("PRAGMA secure_delete = ON")?;
        let collected = self.gc()?;
        self.remove_backups()?;
        self.connection.execute_batch("VACUUM")?;
        let busy: bool =
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if busy {
            return Err(StoreError::Busy);
        }
        let transaction = self.write()?;
        transaction.execute("DELETE FROM done WHERE stage = ?1", [MARK])?;
        transaction.commit(Failpoint::Forgotten)?;
        Ok(collected)
    }

    fn remove_backups(&self) -> Result<(), StoreError> {
        let fail = |error| StoreError::io(&self.dir, error);
        for entry in std::fs::read_dir(&self.dir).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name.starts_with(&format!("{FILE}.v")) && name.ends_with(".backup") {
                std::fs::remove_file(&path).map_err(|error| StoreError::io(&path, error))?;
            }
        }
        Ok(())
    }
}

/// All revisions of a run.
fn revisions(connection: &Connection, seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT other.seq FROM trajectory AS run JOIN trajectory AS other USING(base, ordinal) WHERE run.seq = ?1",
    )?;
    let rows = statement.query_map([seq], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The runs that a replay has continued from a run.
fn continuations(connection: &Connection, seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq FROM trajectory WHERE origin = (SELECT id FROM trajectory WHERE seq = ?1)",
    )?;
    let rows = statement.query_map([seq], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Deletes the rows of one run; returns how many verdicts were on it.
fn delete(connection: &Connection, seq: i64) -> Result<u64, StoreError> {
    let task: String =
        connection.query_row("SELECT task FROM trajectory WHERE seq = ?1", [seq], |row| row.get(0))?;
    pending::reopen(connection, &task)?;
    connection.execute(
        "DELETE FROM loose_label WHERE run IN (SELECT name FROM alias WHERE trajectory = ?1)
           AND run NOT IN (SELECT name FROM alias WHERE trajectory <> ?1)",
        [seq],
    )?;
    replies::forget(connection, seq)?;
    batches::forget(connection, seq)?;
    let verdicts = connection.execute("DELETE FROM verdict WHERE subject = ?1", [seq])?;
    for table in ["alias", "trajectory_media", "content", "sketch", "strict_link"] {
        connection.execute(&format!("DELETE FROM {table} WHERE trajectory = ?1"), [seq])?;
    }
    connection.execute("DELETE FROM trajectory WHERE seq = ?1", [seq])?;
    Ok(verdicts as u64)
}
