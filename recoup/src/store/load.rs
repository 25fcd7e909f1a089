//! Loading: a stored run put together again, as imported or with its labels applied.

use rusqlite::{Connection, OptionalExtension as _};

use super::pack::{PackCache, slice};
use super::{Store, StoreError, facets, varint};
use crate::id::{Hash, NodeHash, TrajectoryId, TrajectoryKey};
use crate::task::EnvironmentRef;
use crate::trajectory::{Record, SourceRef, TerminationKind, Trajectory};
use crate::warning::ByteSpan;

impl Store {
    /// A run as it was imported. Media stay in the store: see [`Store::media`].
    pub fn load(&self, id: TrajectoryId) -> Result<Trajectory, StoreError> {
        let seq = self.seq(id)?;
        let (source, key) = source(&self.connection, seq)?;
        let mut packs = self.packs.borrow_mut();
        let record = record(&self.connection, &mut packs, seq)?;
        let mut bodies = Vec::new();
        let mut statement = self.connection.prepare_cached(
            "SELECT node.hash, pack, offset, len FROM node JOIN blob ON blob.id = node.blob WHERE node.id = ?1",
        )?;
        for node in node_ids(&self.connection, seq)? {
            let row = statement.query_row([node], |row| {
                Ok((NodeHash(Hash(row.get(0)?)), row.get::<_, i64>(1)?, row.get(2)?, row.get(3)?))
            });
            let (hash, pack, offset, len) =
                row.optional()?.ok_or_else(|| damaged(seq, format!("node {node} is missing")))?;
            let raw = packs.pack(&self.connection, pack)?;
            let body = slice(&raw, offset, len)
                .ok_or_else(|| damaged(seq, format!("the body of node {node} lies outside its pack")))?;
            bodies.push((hash, body.to_vec()));
        }
        let trajectory =
            Trajectory::unseal(&record, source, key, &bodies).map_err(|reason| damaged(seq, reason))?;
        if trajectory.id != id {
            return Err(damaged(seq, format!("its content has the id {}, not {id}", trajectory.id)));
        }
        trajectory.check().map_err(|reason| damaged(seq, reason))?;
        Ok(trajectory)
    }

    /// A run with what labels say of its outcome, task and environment: of each, the label of the
    /// highest rank counts. The id stays that of the imported run.
    pub fn effective(&self, id: TrajectoryId) -> Result<Trajectory, StoreError> {
        let mut trajectory = self.load(id)?;
        facets::labels(&self.connection, self.seq(id)?)?.apply(&mut trajectory);
        Ok(trajectory)
    }

    /// Where a run happened, labels applied: reads no message.
    pub fn environment(&self, id: TrajectoryId) -> Result<Option<EnvironmentRef>, StoreError> {
        let seq = self.seq(id)?;
        let mut head = parsed_record(&self.connection, &mut self.packs.borrow_mut(), seq)?.head;
        facets::labels(&self.connection, seq)?.apply(&mut head);
        Ok(head.environment)
    }

    /// How a run came to its end, as the source says: reads no message.
    pub fn termination_kind(&self, id: TrajectoryId) -> Result<Option<TerminationKind>, StoreError> {
        let seq = self.seq(id)?;
        let head = parsed_record(&self.connection, &mut self.packs.borrow_mut(), seq)?.head;
        Ok(head.leaves.get(head.main_leaf).and_then(|leaf| leaf.outcome.termination_kind()))
    }

    /// The bytes of a medium (or of an environment's state), or `None` where they were never stored.
    pub fn media(&self, hash: Hash) -> Result<Option<Vec<u8>>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT blob FROM media WHERE hash = ?1")?;
        match statement.query_row([hash.0], |row| row.get(0)).optional()? {
            Some(blob) => self.packs.borrow_mut().blob(&self.connection, blob).map(Some),
            None => Ok(None),
        }
    }

    /// Integer id of a run.
    pub(super) fn seq(&self, id: TrajectoryId) -> Result<i64, StoreError> {
        seq(&self.connection, id)
    }
}

pub(super) fn seq(connection: &Connection, id: TrajectoryId) -> Result<i64, StoreError> {
    let mut statement = connection.prepare_cached("SELECT seq FROM trajectory WHERE id = ?1")?;
    let seq = statement.query_row([id.0.0], |row| row.get(0)).optional()?;
    seq.ok_or_else(|| StoreError::NotFound { prefix: id.to_string() })
}

/// A run's node ids, in the order of its positions.
pub(super) fn node_ids(connection: &Connection, seq: i64) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT nodes FROM content WHERE trajectory = ?1")?;
    let bytes: Option<Vec<u8>> = statement.query_row([seq], |row| row.get(0)).optional()?;
    let ids = bytes.and_then(|bytes| varint::decode(&bytes));
    ids.ok_or_else(|| damaged(seq, "its node list cannot be read"))
}

/// A run's record as stored.
pub(super) fn record(connection: &Connection, packs: &mut PackCache, seq: i64) -> Result<String, StoreError> {
    let mut statement = connection.prepare_cached("SELECT record FROM content WHERE trajectory = ?1")?;
    let blob = statement.query_row([seq], |row| row.get(0)).optional()?;
    let blob = blob.ok_or_else(|| damaged(seq, "its record is missing"))?;
    String::from_utf8(packs.blob(connection, blob)?).map_err(|error| damaged(seq, error))
}

/// A run's record, parsed.
pub(super) fn parsed_record(
    connection: &Connection,
    packs: &mut PackCache,
    seq: i64,
) -> Result<Record, StoreError> {
    serde_json::from_str(&record(connection, packs, seq)?).map_err(|error| damaged(seq, error))
}

fn source(connection: &Connection, seq: i64) -> Result<(SourceRef, TrajectoryKey), StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT format, uri, sha256, span_start, span_end, key
         FROM trajectory JOIN source ON source.id = trajectory.source WHERE seq = ?1",
    )?;
    let row = statement.query_row([seq], |row| {
        let start: Option<i64> = row.get(3)?;
        let end: Option<i64> = row.get(4)?;
        let span = start.zip(end).map(|(start, end)| ByteSpan { start: start as u64, end: end as u64 });
        let source = SourceRef { format: row.get(0)?, uri: row.get(1)?, sha256: row.get(2)?, span };
        Ok((source, TrajectoryKey(Hash(row.get(5)?))))
    });
    row.optional()?.ok_or_else(|| damaged(seq, "its row or its source is missing"))
}

fn damaged(seq: i64, reason: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt(format!("run {seq}: {reason}"))
}
