//! Collecting garbage: messages, bodies and media that no run refers to any more.
//!
//! Rows go in one transaction, so that an import at the same time either sees a message and keeps it
//! or does not see it. Packs are then rewritten a few at a time; until then dead bytes only take room.

use rusqlite::Connection;
use serde::Serialize;

use super::apply::{next_id, put_packs};
use super::pack::{Kind, Packer, open, slice};
use super::{Store, StoreError, varint};
use crate::failpoint::Failpoint;

/// Packs rewritten in one transaction.
const BATCH: usize = 32;

/// What was collected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GcReport {
    /// Messages dropped.
    pub nodes: u64,
    /// Byte strings dropped.
    pub blobs: u64,
    /// Packs dropped or rewritten.
    pub packs: u64,
    /// Bytes freed in packs.
    pub packed_bytes: u64,
}

impl Store {
    /// Drops what no run refers to and rewrites the packs it lay in: what `forget` leaves, and an import
    /// that was stopped inside a large run and not started again.
    pub fn gc(&mut self) -> Result<GcReport, StoreError> {
        let transaction = self.write()?;
        let mut report = sweep(&transaction)?;
        transaction.commit(Failpoint::Sweep)?;
        let before = packed_bytes(&self.connection)?;
        let partial = partial_packs(&self.connection)?;
        for batch in partial.chunks(BATCH) {
            let transaction = self.write()?;
            report.packs += rewrite(&transaction, batch)?;
            transaction.commit(Failpoint::Repack)?;
        }
        self.packs.get_mut().clear();
        report.packed_bytes = before.saturating_sub(packed_bytes(&self.connection)?);
        Ok(report)
    }
}

/// Deletes the rows of everything that no run refers to.
fn sweep(connection: &Connection) -> Result<GcReport, StoreError> {
    connection.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS live(id INTEGER PRIMARY KEY); DELETE FROM temp.live;",
    )?;
    let mut statement = connection.prepare("SELECT nodes FROM content")?;
    let mut live = connection.prepare_cached("INSERT OR IGNORE INTO temp.live VALUES(?1)")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let ids = row.get_ref(0)?.as_blob().ok().and_then(varint::decode).ok_or_else(|| {
            StoreError::Corrupt("a node list cannot be read, so nothing can be dropped safely".to_owned())
        })?;
        for id in ids {
            live.execute([id])?;
        }
    }
    let dropped_nodes = connection.execute("DELETE FROM node WHERE id NOT IN temp.live", [])?;
    connection.execute("DELETE FROM media WHERE hash NOT IN (SELECT hash FROM trajectory_media)", [])?;
    connection.execute_batch(
        "DELETE FROM temp.live;
         INSERT OR IGNORE INTO temp.live SELECT blob FROM node;
         INSERT OR IGNORE INTO temp.live SELECT record FROM content;
         INSERT OR IGNORE INTO temp.live SELECT blob FROM media;",
    )?;
    connection.execute("DELETE FROM blob_tag WHERE blob NOT IN temp.live", [])?;
    let dropped_blobs = connection.execute("DELETE FROM blob WHERE id NOT IN temp.live", [])?;
    connection.execute_batch("DELETE FROM temp.live")?;
    connection.execute("DELETE FROM source WHERE id NOT IN (SELECT source FROM trajectory)", [])?;
    Ok(GcReport { nodes: dropped_nodes as u64, blobs: dropped_blobs as u64, ..GcReport::default() })
}

fn packed_bytes(connection: &Connection) -> Result<u64, StoreError> {
    let bytes: i64 =
        connection.query_row("SELECT ifnull(sum(length(data)), 0) FROM pack", [], |row| row.get(0))?;
    Ok(bytes as u64)
}

/// Packs with bytes that no blob covers.
fn partial_packs(connection: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare(
        "SELECT id FROM pack
         WHERE raw_len > ifnull((SELECT sum(len) FROM blob WHERE blob.pack = pack.id), 0)
            OR NOT EXISTS(SELECT 1 FROM blob WHERE blob.pack = pack.id) ORDER BY id",
    )?;
    let packs = statement.query_map([], |row| row.get(0))?;
    Ok(packs.collect::<Result<_, _>>()?)
}

/// Moves what is alive in some packs to new ones and deletes them.
fn rewrite(connection: &Connection, packs: &[i64]) -> Result<u64, StoreError> {
    let mut packer = Packer::new(1)?;
    let mut moved = Vec::new();
    let first = next_id(connection, "pack")?;
    for pack in packs {
        let mut statement =
            connection.prepare_cached("SELECT kind, raw_len, data FROM pack WHERE id = ?1")?;
        let (kind, raw) = statement.query_row([pack], |row| {
            let raw_len: i64 = row.get(1)?;
            let raw = open(row.get_ref(2)?.as_blob()?, usize::try_from(raw_len).unwrap_or(usize::MAX));
            Ok((row.get::<_, i64>(0)?, raw))
        })?;
        let kind = match kind {
            0 => Kind::Bodies,
            1 => Kind::Records,
            _ => Kind::Media,
        };
        let raw = raw?;
        let mut blobs =
            connection.prepare_cached("SELECT id, offset, len FROM blob WHERE pack = ?1 ORDER BY offset")?;
        let mut rows = blobs.query([pack])?;
        while let Some(row) = rows.next()? {
            let bytes = slice(&raw, row.get(1)?, row.get(2)?)
                .ok_or_else(|| StoreError::Corrupt(format!("a blob lies outside pack {pack}")))?;
            moved.push((row.get::<_, i64>(0)?, packer.push(kind, bytes)?));
        }
    }
    put_packs(connection, packer.finish()?, first)?;
    let mut update = connection.prepare_cached("UPDATE blob SET pack = ?2, offset = ?3 WHERE id = ?1")?;
    for (blob, place) in moved {
        update.execute((blob, first + place.pack as i64, place.offset as i64))?;
    }
    let mut delete = connection.prepare_cached("DELETE FROM pack WHERE id = ?1")?;
    for pack in packs {
        delete.execute([pack])?;
    }
    Ok(packs.len() as u64)
}
