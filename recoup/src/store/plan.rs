//! A plan: what storing a batch of runs will write, worked out before the lock is taken.
//!
//! Deciding which runs and messages are new, and compressing the new ones, takes most of the time of
//! an import; none of it needs the write lock. A plan grows while runs come in and is written when it
//! is full. It holds for the state of the database it was made on, so whoever grows or applies it
//! first checks that no other process has written since.
//!
//! A run may have more messages than one commit takes. Then the plan ends inside it: the messages so
//! far are written while nothing refers to them yet, and the next plan goes on behind them. The row
//! that makes the run visible comes with its last message.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

use super::StoreError;
use super::pack::{Kind, Packer, Place};
use super::revisions::{Fate, Revisions};
use crate::id::{Hash, NodeHash, TrajectoryId, TrajectoryKey};
use crate::trajectory::Sealed;

/// Bodies from this length on are stored once whatever their context; a shorter one is cheaper to
/// store again than to look for.
const SHARED_BYTES: usize = 4 << 10;
/// New messages that a plan takes; each costs two rows.
const NODES_MAX: usize = 10_000;
/// Bytes of new bodies, records and media that a plan takes.
const BYTES_MAX: usize = 16 << 20;

/// A run that waits to be stored, with the identity it came with: a plan may renumber it, and a
/// second plan for another state must not start from that.
pub(super) struct Waiting {
    pub(super) sealed: Sealed,
    identity: (TrajectoryKey, TrajectoryId),
    /// Ids of the run's first messages, where earlier commits have written them.
    pub(super) written: Vec<i64>,
}

impl Waiting {
    pub(super) fn new(sealed: Sealed) -> Self {
        Self { identity: (sealed.head.key, sealed.head.id), sealed, written: Vec::new() }
    }
}

/// Something that is stored already, or will be by this plan (its index there).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ref {
    Stored(i64),
    New(usize),
}

/// A message to be stored.
pub(super) struct NewNode {
    pub(super) parent: Option<Ref>,
    pub(super) hash: NodeHash,
    pub(super) blob: Ref,
}

/// A byte string to be stored; `hash` where it can be found by it.
pub(super) struct NewBlob {
    pub(super) place: Place,
    pub(super) hash: Option<Hash>,
}

/// A run to be stored.
pub(super) struct NewRun {
    pub(super) nodes: Vec<Ref>,
    pub(super) record: usize,
}

/// What a batch adds to the store.
pub(super) struct Plan {
    /// State of the database that the plan holds for.
    pub(super) data_version: i64,
    pub(super) packer: Packer,
    pub(super) blobs: Vec<NewBlob>,
    pub(super) nodes: Vec<NewNode>,
    pub(super) media: Vec<(Hash, usize)>,
    /// One for each run of the batch from its start that is planned whole, with what to write unless
    /// it is a duplicate.
    pub(super) runs: Vec<(Fate, Option<NewRun>)>,
    /// The messages so far of the run in which the plan became full.
    pub(super) begun: Option<Vec<Ref>>,
    revisions: Revisions,
    by_hash: HashMap<NodeHash, Ref>,
    /// Shared strings that this plan stores or has found.
    shared: HashMap<Hash, Ref>,
}

/// Changes whenever another connection has written.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("PRAGMA data_version")?;
    statement.query_row([], |row| row.get(0))
}

impl Plan {
    /// A plan for nothing yet, on the state of the database as it is.
    pub(super) fn new(data_version: i64, threads: usize) -> Result<Self, StoreError> {
        Ok(Self {
            data_version,
            packer: Packer::new(threads)?,
            blobs: Vec::new(),
            nodes: Vec::new(),
            media: Vec::new(),
            runs: Vec::new(),
            begun: None,
            revisions: Revisions::default(),
            by_hash: HashMap::new(),
            shared: HashMap::new(),
        })
    }

    /// Plans the runs of a batch that are not planned yet, as far as they fit; true when that is all
    /// of them. Runs whose key is taken by other content are renumbered on the way.
    pub(super) fn extend(
        &mut self,
        connection: &Connection,
        batch: &mut [Waiting],
    ) -> Result<bool, StoreError> {
        while self.runs.len() < batch.len() {
            if self.is_full() {
                return Ok(false);
            }
            let (before, rest) = batch.split_at_mut(self.runs.len());
            let Some(Waiting { sealed, identity, written }) = rest.first_mut() else { break };
            (sealed.head.key, sealed.head.id) = *identity;
            let fate = self.revisions.decide(connection, before, sealed)?;
            let run = match fate {
                Fate::Duplicate { .. } => None,
                Fate::New { .. } => {
                    let mut nodes = Vec::with_capacity(sealed.bodies.len());
                    nodes.extend(written.iter().map(|id| Ref::Stored(*id)));
                    if !self.messages(connection, sealed, &mut nodes)? {
                        self.begun = Some(nodes);
                        return Ok(false);
                    }
                    Some(self.run(connection, sealed, nodes)?)
                }
            };
            self.runs.push((fate, run));
        }
        Ok(true)
    }

    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.begun.is_none() && self.runs.iter().all(|(_, run)| run.is_none())
    }

    fn is_full(&self) -> bool {
        self.begun.is_some() || self.nodes.len() >= NODES_MAX || self.packer.bytes() >= BYTES_MAX
    }

    /// Plans the messages of a run behind those in `nodes`; false when the plan is full before its end.
    fn messages(
        &mut self,
        connection: &Connection,
        sealed: &Sealed,
        nodes: &mut Vec<Ref>,
    ) -> Result<bool, StoreError> {
        for body in sealed.bodies.iter().skip(nodes.len()) {
            if self.is_full() {
                return Ok(false);
            }
            let parent = body.parent.map(|parent| nodes[parent]);
            nodes.push(self.node(connection, parent, body.hash, &body.bytes)?);
        }
        Ok(true)
    }

    fn run(
        &mut self,
        connection: &Connection,
        sealed: &Sealed,
        nodes: Vec<Ref>,
    ) -> Result<NewRun, StoreError> {
        for (hash, bytes) in &sealed.media {
            self.media_blob(connection, *hash, bytes)?;
        }
        let place = self.packer.push(Kind::Records, sealed.record.as_bytes())?;
        Ok(NewRun { nodes, record: self.blob(place, None) })
    }

    fn node(
        &mut self,
        connection: &Connection,
        parent: Option<Ref>,
        hash: NodeHash,
        body: &str,
    ) -> Result<Ref, StoreError> {
        if let Some(known) = self.by_hash.get(&hash) {
            return Ok(*known);
        }
        // A message below one that is new here cannot be stored yet: its hash covers its parent's.
        let stored = match parent {
            None => stored_node(connection, 0, hash)?,
            Some(Ref::Stored(parent)) => stored_node(connection, parent, hash)?,
            Some(Ref::New(_)) => None,
        };
        let node = if let Some(id) = stored {
            Ref::Stored(id)
        } else {
            let blob = self.body(connection, body.as_bytes())?;
            self.nodes.push(NewNode { parent, hash, blob });
            Ref::New(self.nodes.len() - 1)
        };
        self.by_hash.insert(hash, node);
        Ok(node)
    }

    fn body(&mut self, connection: &Connection, bytes: &[u8]) -> Result<Ref, StoreError> {
        if bytes.len() < SHARED_BYTES {
            let place = self.packer.push(Kind::Bodies, bytes)?;
            return Ok(Ref::New(self.blob(place, None)));
        }
        let hash = Hash::of(bytes);
        if let Some(known) = self.shared.get(&hash) {
            return Ok(*known);
        }
        let blob = if let Some(id) = shared_blob(connection, hash)? {
            Ref::Stored(id)
        } else {
            let place = self.packer.push(Kind::Bodies, bytes)?;
            Ref::New(self.blob(place, Some(hash)))
        };
        self.shared.insert(hash, blob);
        Ok(blob)
    }

    fn media_blob(&mut self, connection: &Connection, hash: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        let mut statement = connection.prepare_cached("SELECT 1 FROM media WHERE hash = ?1")?;
        if statement.exists([hash.0])? || self.media.iter().any(|(known, _)| *known == hash) {
            return Ok(());
        }
        let place = self.packer.push(Kind::Media, bytes)?;
        let blob = self.blob(place, None);
        self.media.push((hash, blob));
        Ok(())
    }

    fn blob(&mut self, place: Place, hash: Option<Hash>) -> usize {
        self.blobs.push(NewBlob { place, hash });
        self.blobs.len() - 1
    }
}

fn stored_node(connection: &Connection, parent: i64, hash: NodeHash) -> Result<Option<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT id FROM node WHERE parent = ?1 AND hash = ?2")?;
    Ok(statement.query_row((parent, hash.0.0), |row| row.get(0)).optional()?)
}

/// Key under which a shared body is found: the first 64 bits of its hash.
pub(super) fn tag(hash: Hash) -> i64 {
    let mut first = [0; 8];
    first.copy_from_slice(&hash.0[..8]);
    i64::from_le_bytes(first)
}

fn shared_blob(connection: &Connection, hash: Hash) -> Result<Option<i64>, StoreError> {
    let mut tagged = connection.prepare_cached("SELECT blob FROM blob_tag WHERE tag = ?1")?;
    let Some(id) = tagged.query_row([tag(hash)], |row| row.get::<_, i64>(0)).optional()? else {
        return Ok(None);
    };
    let mut hash_of = connection.prepare_cached("SELECT hash FROM blob WHERE id = ?1")?;
    let stored: Option<Option<[u8; 32]>> = hash_of.query_row([id], |row| row.get(0)).optional()?;
    Ok((stored.flatten() == Some(hash.0)).then_some(id))
}
