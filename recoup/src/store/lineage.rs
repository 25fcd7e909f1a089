//! Lineage: what replays have continued from which run, and under what licence a run came.

use rusqlite::OptionalExtension as _;

use super::{Store, StoreError, load};
use crate::id::{Hash, TrajectoryId};

impl Store {
    /// The latest runs that continue a run, and those that continue them, in import order.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn continuations(&self, id: TrajectoryId) -> Result<Vec<TrajectoryId>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "WITH RECURSIVE continued(seq, id) AS (
               SELECT seq, id FROM trajectory WHERE origin = ?1 AND latest
               UNION SELECT run.seq, run.id FROM trajectory AS run JOIN continued ON run.origin = continued.id
               WHERE run.latest)
             SELECT id FROM continued WHERE id <> ?1 ORDER BY seq",
        )?;
        let rows = statement.query_map([id.0.0], |row| Ok(TrajectoryId(Hash(row.get(0)?))))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The run that a run continues, where it is in the project.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn origin(&self, id: TrajectoryId) -> Result<Option<TrajectoryId>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT origin.id FROM trajectory AS run JOIN trajectory AS origin ON origin.id = run.origin
             WHERE run.id = ?1",
        )?;
        Ok(statement.query_row([id.0.0], |row| Ok(TrajectoryId(Hash(row.get(0)?)))).optional()?)
    }

    /// The licence that a run came with: reads no message.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where there is no such run.
    pub fn licence(&self, id: TrajectoryId) -> Result<String, StoreError> {
        let seq = self.seq(id)?;
        let record = load::parsed_record(&self.connection, &mut self.packs.borrow_mut(), seq)?;
        Ok(record.head.licence)
    }
}
