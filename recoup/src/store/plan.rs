//! A plan: what storing a batch of runs will write, worked out before the lock is taken.
//!
//! Deciding which runs and messages are new, and compressing the new ones, takes most of the time of
//! an import; none of it needs the write lock. A plan holds for the state of the database it was made
//! on, so whoever applies it first checks that no other process has written since.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

use super::StoreError;
use super::pack::{Frame, Kind, Packer, Place};
use super::revisions::{Fate, Revisions};
use crate::id::{Hash, NodeHash, TrajectoryId, TrajectoryKey};
use crate::trajectory::Sealed;

/// Bodies from this length on are stored once whatever their context; a shorter one is cheaper to
/// store again than to look for.
const SHARED_BYTES: usize = 4 << 10;

/// A run that waits to be stored, with the identity it came with: a plan may renumber it, and a
/// second plan for another state must not start from that.
pub(super) struct Waiting {
    pub(super) sealed: Sealed,
    identity: (TrajectoryKey, TrajectoryId),
}

impl Waiting {
    pub(super) fn new(sealed: Sealed) -> Self {
        Self { identity: (sealed.head.key, sealed.head.id), sealed }
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
    pub(super) frames: Vec<Frame>,
    pub(super) blobs: Vec<NewBlob>,
    pub(super) nodes: Vec<NewNode>,
    pub(super) media: Vec<(Hash, usize)>,
    /// One a run of the batch, with what to write unless it is a duplicate.
    pub(super) runs: Vec<(Fate, Option<NewRun>)>,
}

/// Changes whenever another connection has written.
pub(super) fn data_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "data_version", |row| row.get(0))
}

impl Plan {
    /// Plans a batch. Runs whose key is taken by other content are renumbered on the way.
    pub(super) fn new(connection: &Connection, batch: &mut [Waiting]) -> Result<Self, StoreError> {
        let data_version = data_version(connection)?;
        let mut planner = Planner {
            connection,
            packer: Packer::new()?,
            blobs: Vec::new(),
            nodes: Vec::new(),
            media: Vec::new(),
            by_hash: HashMap::new(),
            shared: HashMap::new(),
        };
        let mut revisions = Revisions::default();
        let mut runs = Vec::with_capacity(batch.len());
        for (index, Waiting { sealed, identity }) in batch.iter_mut().enumerate() {
            (sealed.head.key, sealed.head.id) = *identity;
            let fate = revisions.decide(connection, index, sealed)?;
            let run = match fate {
                Fate::Duplicate { .. } => None,
                Fate::New { .. } => Some(planner.run(sealed)?),
            };
            runs.push((fate, run));
        }
        let Planner { packer, blobs, nodes, media, .. } = planner;
        Ok(Self { data_version, frames: packer.finish()?, blobs, nodes, media, runs })
    }

    /// Whether every run of the batch is stored already.
    pub(super) fn is_empty(&self) -> bool {
        self.runs.iter().all(|(_, run)| run.is_none())
    }
}

struct Planner<'a> {
    connection: &'a Connection,
    packer: Packer,
    blobs: Vec<NewBlob>,
    nodes: Vec<NewNode>,
    media: Vec<(Hash, usize)>,
    by_hash: HashMap<NodeHash, Ref>,
    /// Shared strings that this plan stores or has found.
    shared: HashMap<Hash, Ref>,
}

impl Planner<'_> {
    fn run(&mut self, sealed: &Sealed) -> Result<NewRun, StoreError> {
        let mut nodes: Vec<Ref> = Vec::with_capacity(sealed.bodies.len());
        for body in &sealed.bodies {
            let parent = body.parent.map(|parent| nodes[parent]);
            nodes.push(self.node(parent, body.hash, &body.bytes)?);
        }
        for (hash, bytes) in &sealed.media {
            self.media_blob(*hash, bytes)?;
        }
        let place = self.packer.push(Kind::Records, sealed.record.as_bytes())?;
        Ok(NewRun { nodes, record: self.blob(place, None) })
    }

    fn node(&mut self, parent: Option<Ref>, hash: NodeHash, body: &str) -> Result<Ref, StoreError> {
        if let Some(known) = self.by_hash.get(&hash) {
            return Ok(*known);
        }
        // A message below one that is new here cannot be stored yet: its hash covers its parent's.
        let stored = match parent {
            None => self.stored_node(0, hash)?,
            Some(Ref::Stored(parent)) => self.stored_node(parent, hash)?,
            Some(Ref::New(_)) => None,
        };
        let node = if let Some(id) = stored {
            Ref::Stored(id)
        } else {
            let blob = self.body(body.as_bytes())?;
            self.nodes.push(NewNode { parent, hash, blob });
            Ref::New(self.nodes.len() - 1)
        };
        self.by_hash.insert(hash, node);
        Ok(node)
    }

    fn stored_node(&self, parent: i64, hash: NodeHash) -> Result<Option<i64>, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT id FROM node WHERE parent = ?1 AND hash = ?2")?;
        Ok(statement.query_row((parent, hash.0.0), |row| row.get(0)).optional()?)
    }

    fn body(&mut self, bytes: &[u8]) -> Result<Ref, StoreError> {
        if bytes.len() < SHARED_BYTES {
            let place = self.packer.push(Kind::Bodies, bytes)?;
            return Ok(Ref::New(self.blob(place, None)));
        }
        let hash = Hash::of(bytes);
        if let Some(known) = self.shared.get(&hash) {
            return Ok(*known);
        }
        let blob = if let Some(id) = shared_blob(self.connection, hash)? {
            Ref::Stored(id)
        } else {
            let place = self.packer.push(Kind::Bodies, bytes)?;
            Ref::New(self.blob(place, Some(hash)))
        };
        self.shared.insert(hash, blob);
        Ok(blob)
    }

    fn media_blob(&mut self, hash: Hash, bytes: &[u8]) -> Result<(), StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT 1 FROM media WHERE hash = ?1")?;
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
