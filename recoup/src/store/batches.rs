//! Batches: questions that a provider answers together, later, written down before they are sent.

use rusqlite::{Connection, TransactionBehavior};

use super::{Replies, StoreError};
use crate::failpoint::{self, Failpoint};
use crate::id::{Hash, TrajectoryId};

/// A question under way: its key, the stage that asked, the run that it is about.
pub type BatchQuestion = (Hash, String, Option<TrajectoryId>);

impl Replies {
    /// Whether a question is in a batch.
    pub fn in_batch(&self, key: &Hash) -> Result<bool, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT 1 FROM batch_question WHERE key = ?1")?;
        Ok(statement.exists([&key.0[..]])?)
    }

    /// Notes a batch and its questions.
    pub fn begin_batch(
        &self,
        name: &Hash,
        base_url: &str,
        model: &str,
        questions: &[BatchQuestion],
    ) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute(
            "INSERT OR REPLACE INTO batch VALUES(?1, NULL, ?2, ?3)",
            (&name.0[..], base_url, model),
        )?;
        let mut insert =
            transaction.prepare_cached("INSERT OR REPLACE INTO batch_question VALUES(?1, ?2, ?3, ?4)")?;
        for (key, stage, run) in questions {
            insert.execute((&key.0[..], &name.0[..], stage, run.as_ref().map(|run| &run.0.0[..])))?;
        }
        drop(insert);
        failpoint::commit(Failpoint::Reply, || transaction.commit())?;
        Ok(())
    }

    /// Notes the provider's id of a batch.
    pub fn name_batch(&self, name: &Hash, id: &str) -> Result<(), StoreError> {
        self.lock().execute("UPDATE batch SET id = ?2 WHERE name = ?1", (&name.0[..], id))?;
        Ok(())
    }

    /// The batches of a model, with the provider's ids where they are known.
    pub fn batches(&self, base_url: &str, model: &str) -> Result<Vec<(Hash, Option<String>)>, StoreError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT name, id FROM batch WHERE base_url = ?1 AND model = ?2 ORDER BY name")?;
        let rows = statement.query_map([base_url, model], |row| Ok((Hash(row.get(0)?), row.get(1)?)))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The questions of a batch.
    pub fn batch_questions(&self, name: &Hash) -> Result<Vec<BatchQuestion>, StoreError> {
        let connection = self.lock();
        let mut statement = connection
            .prepare_cached("SELECT key, stage, run FROM batch_question WHERE batch = ?1 ORDER BY key")?;
        let rows = statement.query_map([&name.0[..]], |row| {
            let run = row.get::<_, Option<[u8; 32]>>(2)?.map(|run| TrajectoryId(Hash(run)));
            Ok((Hash(row.get(0)?), row.get(1)?, run))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Strikes out a batch with its questions.
    pub fn end_batch(&self, name: &Hash) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("DELETE FROM batch_question WHERE batch = ?1", [&name.0[..]])?;
        transaction.execute("DELETE FROM batch WHERE name = ?1", [&name.0[..]])?;
        failpoint::commit(Failpoint::Reply, || transaction.commit())?;
        Ok(())
    }
}

/// Strikes out the questions about a run, so that an answer that is still to come is not kept.
pub(super) fn forget(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection.execute(
        "DELETE FROM batch_question WHERE run = (SELECT id FROM trajectory WHERE seq = ?1)",
        [seq],
    )?;
    Ok(())
}

/// Strikes out the questions that are about no run.
pub(super) fn forget_unbound(connection: &Connection) -> Result<(), StoreError> {
    connection.execute("DELETE FROM batch_question WHERE run IS NULL", [])?;
    Ok(())
}
