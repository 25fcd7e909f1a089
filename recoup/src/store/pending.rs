//! What a stage still has to do: tasks with a run that it has not seen.
//!
//! Runs are judged beside their siblings, so the unit of work is a task with all its runs: a new
//! run, or a label that changes an outcome, makes the whole task pending again.

use rusqlite::Connection;

use super::{Store, StoreError};
use crate::failpoint::Failpoint;
use crate::id::{Hash, TaskKey, TrajectoryId};

/// A task whose runs wait for a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The task, labels applied.
    pub task: TaskKey,
    /// Its runs, latest revisions only, in import order.
    pub runs: Vec<TrajectoryId>,
    newest: i64,
}

impl Store {
    /// Tasks that `version` of a stage has not finished, in the order of their first runs.
    pub fn pending(&self, stage: &str, version: u32) -> Result<Vec<Group>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "WITH tasks AS (SELECT task, min(seq) AS first, max(seq) AS newest FROM trajectory WHERE latest
                            GROUP BY task)
             SELECT tasks.task, tasks.newest, run.id
             FROM tasks JOIN trajectory AS run ON run.task = tasks.task AND run.latest
             WHERE NOT EXISTS(SELECT 1 FROM done WHERE done.stage = ?1 AND done.task = tasks.task
                              AND done.version = ?2 AND done.newest = tasks.newest)
             ORDER BY tasks.first, run.seq",
        )?;
        let mut rows = statement.query((stage, version))?;
        let mut groups: Vec<Group> = Vec::new();
        while let Some(row) = rows.next()? {
            let task = TaskKey(row.get(0)?);
            let run = TrajectoryId(Hash(row.get(2)?));
            match groups.last_mut() {
                Some(group) if group.task == task => group.runs.push(run),
                _ => groups.push(Group { task, runs: vec![run], newest: row.get(1)? }),
            }
        }
        Ok(groups)
    }

    /// Notes that a stage has finished tasks as it got them from [`Store::pending`]; a run that came
    /// in the meantime keeps its task pending. Put the stage's verdicts first.
    pub fn mark_done(&mut self, stage: &str, version: u32, groups: &[Group]) -> Result<(), StoreError> {
        for batch in groups.chunks(1000) {
            let transaction = self.write()?;
            {
                let mut statement =
                    transaction.prepare_cached("INSERT OR REPLACE INTO done VALUES(?1, ?2, ?3, ?4)")?;
                for group in batch {
                    statement.execute((stage, &group.task.0, version, group.newest))?;
                }
            }
            transaction.commit(Failpoint::Done)?;
        }
        Ok(())
    }
}

/// Makes a task pending for every stage.
pub(super) fn reopen(connection: &Connection, task: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM done WHERE task = ?1")?.execute([task])?;
    Ok(())
}
