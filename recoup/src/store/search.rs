//! Text search: every pack of bodies is opened and scanned, on several threads.
//!
//! A body is canonical JSON, in which a text has one spelling, so the needle is spelled the same way
//! and looked for in the raw bytes. What is found may still be a key or a half of an escape; each
//! message found is therefore read and its texts are searched again.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};

use memchr::memmem;
use rusqlite::Connection;

use super::pack::{Kind, open, slice};
use super::{Store, StoreError, varint};
use crate::canonical::write_string;
use crate::id::{Hash, TrajectoryId};
use crate::trajectory::{Part, body_from_bytes};

/// Packs that a thread takes at once.
const CHUNK: usize = 16;

impl Store {
    /// Runs with a message in which `needle` occurs, letter for letter: in a text, a reasoning, a
    /// tool's answer, a call's raw arguments or an opaque part; in import order, all revisions. An
    /// empty needle finds nothing.
    pub fn search_text(&self, needle: &str, threads: usize) -> Result<Vec<TrajectoryId>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT id FROM trajectory WHERE seq = ?1")?;
        let seqs = self.search_seqs(needle, threads)?;
        seqs.into_iter()
            .map(|seq| Ok(TrajectoryId(Hash(statement.query_row([seq], |row| row.get(0))?))))
            .collect()
    }

    pub(super) fn search_seqs(&self, needle: &str, threads: usize) -> Result<BTreeSet<i64>, StoreError> {
        let mut seqs = BTreeSet::new();
        if needle.is_empty() {
            return Ok(seqs);
        }
        let blobs = self.search_blobs(needle, threads)?;
        if blobs.is_empty() {
            return Ok(seqs);
        }
        let mut nodes = HashSet::new();
        let mut statement = self.connection.prepare_cached("SELECT id, blob FROM node")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            if blobs.contains(&row.get(1)?) {
                nodes.insert(row.get::<_, i64>(0)?);
            }
        }
        let mut statement = self.connection.prepare_cached("SELECT trajectory, nodes FROM content")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let seq = row.get(0)?;
            let ids = row.get_ref(1)?.as_blob().ok().and_then(varint::decode);
            let ids = ids.ok_or_else(|| StoreError::Corrupt(format!("the node list of run {seq}")))?;
            if ids.iter().any(|id| nodes.contains(id)) {
                seqs.insert(seq);
            }
        }
        Ok(seqs)
    }

    fn search_blobs(&self, needle: &str, threads: usize) -> Result<HashSet<i64>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT id FROM pack WHERE kind = ?1 ORDER BY id")?;
        let packs = statement.query_map([Kind::Bodies as i64], |row| row.get(0))?;
        let packs: Vec<i64> = packs.collect::<Result<_, _>>()?;
        let chunks: Vec<&[i64]> = packs.chunks(CHUNK).collect();
        let readers = (0..threads.clamp(1, chunks.len().max(1)))
            .map(|_| self.reader())
            .collect::<Result<Vec<Connection>, _>>()?;
        let next = AtomicUsize::new(0);
        let found = std::thread::scope(|scope| {
            let workers: Vec<_> = readers
                .into_iter()
                .map(|reader| {
                    let (next, chunks) = (&next, &chunks);
                    scope.spawn(move || {
                        let mut found = Vec::new();
                        while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                            for pack in *chunk {
                                scan(&reader, *pack, needle, &mut found)?;
                            }
                        }
                        Ok::<_, StoreError>(found)
                    })
                })
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect::<Result<Vec<Vec<i64>>, _>>()
        })?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// Adds the blobs of a pack in whose texts the needle occurs.
fn scan(connection: &Connection, pack: i64, needle: &str, found: &mut Vec<i64>) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached("SELECT raw_len, data FROM pack WHERE id = ?1")?;
    let raw = statement.query_row([pack], |row| {
        let raw_len: i64 = row.get(0)?;
        let data = row.get_ref(1)?.as_blob()?;
        Ok(open(data, usize::try_from(raw_len).unwrap_or(usize::MAX)))
    })??;
    let mut spelled = String::new();
    write_string(&mut spelled, needle);
    let spelled = &spelled.as_bytes()[1..spelled.len() - 1];
    let finder = memmem::Finder::new(spelled);
    if finder.find(&raw).is_none() {
        return Ok(());
    }
    let mut statement = connection.prepare_cached("SELECT id, offset, len FROM blob WHERE pack = ?1")?;
    let mut rows = statement.query([pack])?;
    while let Some(row) = rows.next()? {
        let body = slice(&raw, row.get(1)?, row.get(2)?);
        let body = body.ok_or_else(|| StoreError::Corrupt(format!("a blob lies outside pack {pack}")))?;
        if finder.find(body).is_some() && says(body, needle) {
            found.push(row.get(0)?);
        }
    }
    Ok(())
}

/// Whether the needle occurs in a text of a body.
fn says(body: &[u8], needle: &str) -> bool {
    fn any(parts: &[Part], needle: &str) -> bool {
        parts.iter().any(|part| match part {
            Part::ToolResult(result) => any(&result.parts, needle),
            part => part.cited_text().is_some_and(|text| text.contains(needle)),
        })
    }
    body_from_bytes(body).is_ok_and(|node| any(&node.parts, needle))
}
