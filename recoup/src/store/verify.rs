//! Verifying: every hash computed again from the bytes on the disk.

use std::collections::HashSet;

use rusqlite::Connection;
use serde::Serialize;

use super::pack::{PackCache, open, slice};
use super::{Store, StoreError, varint};
use crate::id::{Hash, NodeHash, TrajectoryId};
use crate::trajectory::chain;

/// Problems that are listed one by one; beyond them they are only counted.
const LISTED_MAX: usize = 1000;

/// What was looked at and what is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifyReport {
    /// Runs put together and hashed.
    pub trajectories: u64,
    /// Messages hashed.
    pub nodes: u64,
    /// Byte strings found in their packs.
    pub blobs: u64,
    /// Packs opened.
    pub packs: u64,
    /// Verdicts read.
    pub verdicts: u64,
    /// Messages that no run refers to: room for `gc`, no damage.
    pub unreferenced_nodes: u64,
    /// What is wrong, in words, the first thousand.
    pub problems: Vec<String>,
    /// How many things are wrong.
    pub problem_count: u64,
}

impl VerifyReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problem_count == 0
    }

    fn problem(&mut self, problem: String) {
        self.problem_count += 1;
        if self.problems.len() < LISTED_MAX {
            self.problems.push(problem);
        }
    }
}

impl Store {
    /// Computes every hash again: packs, shared bodies, media, the chain of nodes, revisions and ids;
    /// looks for rows that point nowhere; asks SQLite for its own check. `progress` gets steps done
    /// and all steps.
    ///
    /// # Errors
    /// When the database cannot be read at all; damage that can be told is in the report.
    pub fn verify(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<VerifyReport, StoreError> {
        let count = |table: &str| -> Result<u64, StoreError> {
            let sql = format!("SELECT count(*) FROM {table}");
            Ok(self.connection.query_row(&sql, [], |row| row.get::<_, i64>(0))? as u64)
        };
        let total = count("pack")? + count("node")? + count("trajectory")? + 1;
        let mut done = 0;
        let mut step = || {
            done += 1;
            progress(done, total);
        };
        let mut report = VerifyReport::default();
        self.check_packs(&mut report, &mut step)?;
        self.check_nodes(&mut report, &mut step)?;
        self.check_runs(&mut report, &mut step)?;
        check_rows(&self.connection, &mut report)?;
        let mut statement = self.connection.prepare("PRAGMA integrity_check")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let answer: String = row.get(0)?;
            if answer != "ok" {
                report.problem(answer);
            }
        }
        step();
        Ok(report)
    }

    fn check_packs(&self, report: &mut VerifyReport, step: &mut dyn FnMut()) -> Result<(), StoreError> {
        let mut packs = self.connection.prepare("SELECT id, raw_len, data FROM pack ORDER BY id")?;
        let mut blobs = self.connection.prepare("SELECT id, offset, len, hash FROM blob WHERE pack = ?1")?;
        let mut rows = packs.query([])?;
        while let Some(row) = rows.next()? {
            let (id, raw_len): (i64, i64) = (row.get(0)?, row.get(1)?);
            report.packs += 1;
            step();
            let raw = match open(row.get_ref(2)?.as_blob().unwrap_or_default(), raw_len as usize) {
                Ok(raw) => raw,
                Err(error) => {
                    report.problem(format!("pack {id}: {error}"));
                    continue;
                }
            };
            let mut inside = blobs.query([id])?;
            while let Some(blob) = inside.next()? {
                report.blobs += 1;
                let id: i64 = blob.get(0)?;
                match (slice(&raw, blob.get(1)?, blob.get(2)?), blob.get::<_, Option<[u8; 32]>>(3)?) {
                    (None, _) => report.problem(format!("blob {id} lies outside its pack")),
                    (Some(bytes), Some(hash)) if Hash::of(bytes) != Hash(hash) => {
                        report.problem(format!("blob {id} does not have its hash"));
                    }
                    _ => {}
                }
            }
        }
        let mut media = self.connection.prepare("SELECT hash, blob FROM media")?;
        let mut rows = media.query([])?;
        let mut packs = PackCache::default();
        while let Some(row) = rows.next()? {
            let hash = Hash(row.get(0)?);
            match packs.blob(&self.connection, row.get(1)?) {
                Ok(bytes) if Hash::of(&bytes) == hash => {}
                Ok(_) => report.problem(format!("medium {hash} does not have its hash")),
                Err(error) => report.problem(format!("medium {hash}: {error}")),
            }
        }
        Ok(())
    }

    fn check_nodes(&self, report: &mut VerifyReport, step: &mut dyn FnMut()) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare(
            "SELECT node.id, node.hash, node.blob, node.parent, above.hash
             FROM node LEFT JOIN node AS above ON above.id = node.parent ORDER BY node.id",
        )?;
        let mut rows = statement.query([])?;
        let mut packs = PackCache::default();
        while let Some(row) = rows.next()? {
            report.nodes += 1;
            step();
            let (id, hash, parent): (i64, [u8; 32], i64) = (row.get(0)?, row.get(1)?, row.get(3)?);
            let above = row.get::<_, Option<[u8; 32]>>(4)?.map(|hash| NodeHash(Hash(hash)));
            if above.is_none() && parent != 0 {
                report.problem(format!("node {id} has no parent {parent}"));
                continue;
            }
            match packs.blob(&self.connection, row.get(2)?) {
                Ok(body) => match std::str::from_utf8(&body) {
                    Ok(body) if chain(above, body) == NodeHash(Hash(hash)) => {}
                    _ => report.problem(format!("node {id} does not have its hash")),
                },
                Err(error) => report.problem(format!("node {id}: {error}")),
            }
        }
        Ok(())
    }

    fn check_runs(&self, report: &mut VerifyReport, step: &mut dyn FnMut()) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare("SELECT id FROM trajectory ORDER BY seq")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = TrajectoryId(Hash(row.get(0)?));
            report.trajectories += 1;
            step();
            // Loading computes revision and id and checks the leaves.
            match self.load(id) {
                Ok(_) => {}
                Err(StoreError::Corrupt(reason)) => report.problem(reason),
                Err(error) => return Err(error),
            }
            for verdict in self.verdicts(id)? {
                report.verdicts += 1;
                if verdict.subject != id {
                    report.problem(format!("verdict {} is about another run than {id}", verdict.id));
                }
            }
        }
        Ok(())
    }
}

/// Rows that point at rows which are not there.
const DANGLING: [(&str, &str); 9] = [
    ("blob without a pack", "SELECT id FROM blob WHERE pack NOT IN (SELECT id FROM pack)"),
    ("node without a body", "SELECT id FROM node WHERE blob NOT IN (SELECT id FROM blob)"),
    ("shared body without a blob", "SELECT tag FROM blob_tag WHERE blob NOT IN (SELECT id FROM blob)"),
    ("run without content", "SELECT seq FROM trajectory WHERE seq NOT IN (SELECT trajectory FROM content)"),
    (
        "content without a run",
        "SELECT trajectory FROM content WHERE trajectory NOT IN (SELECT seq FROM trajectory)",
    ),
    (
        "answer's run without an answer",
        "SELECT reply FROM reply_run WHERE reply NOT IN (SELECT id FROM reply)",
    ),
    ("run without a source", "SELECT seq FROM trajectory WHERE source NOT IN (SELECT id FROM source)"),
    ("verdict without a run", "SELECT seq FROM verdict WHERE subject NOT IN (SELECT seq FROM trajectory)"),
    (
        "run whose newest revision is not one",
        "SELECT min(seq) FROM trajectory GROUP BY base, ordinal HAVING sum(latest) <> 1",
    ),
];

fn check_rows(connection: &Connection, report: &mut VerifyReport) -> Result<(), StoreError> {
    for (what, sql) in DANGLING {
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            report.problem(format!("{what}: {}", row.get::<_, i64>(0)?));
        }
    }
    let mut referenced = HashSet::new();
    let mut statement = connection.prepare("SELECT nodes FROM content")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        // A list that cannot be read has been reported with its run.
        referenced.extend(row.get_ref(0)?.as_blob().ok().and_then(varint::decode).unwrap_or_default());
    }
    report.unreferenced_nodes = report.nodes.saturating_sub(referenced.len() as u64);
    Ok(())
}
