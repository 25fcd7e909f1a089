//! Growth: whether one recording of a run goes on where another one ended.
//!
//! It does where it holds the other's last message. A recording may also have been read while a message was
//! still being written: the blocks of one response and the results of several calls come one after the other
//! and are one message each time. Then that message is another node, and so is all that stands below it, so
//! from the last node that both hold on, messages are compared: each must begin with the parts of its elder.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

use super::pack::PackCache;
use super::{StoreError, load};
use crate::id::{Hash, NodeHash};
use crate::trajectory::{Body, Node, Part, Sealed, body_from_bytes};

/// The messages of a recording without their content, which is read where it matters.
pub(super) struct Recording<'a> {
    hashes: Vec<NodeHash>,
    parents: Vec<Option<usize>>,
    positions: HashMap<NodeHash, usize>,
    leaf: Option<usize>,
    bodies: Bodies<'a>,
}

/// Where the bodies are.
enum Bodies<'a> {
    Batch(&'a [Body]),
    /// Ids of the nodes.
    Stored(Vec<i64>),
}

impl<'a> Recording<'a> {
    /// A run that waits to be stored.
    pub(super) fn of(sealed: &'a Sealed) -> Self {
        let hashes = sealed.bodies.iter().map(|body| body.hash).collect();
        let parents = sealed.bodies.iter().map(|body| body.parent).collect();
        let leaf = sealed.head.leaves.get(sealed.head.main_leaf).and_then(|leaf| leaf.node);
        Self::new(hashes, parents, leaf, Bodies::Batch(&sealed.bodies))
    }

    /// A stored run.
    pub(super) fn stored(connection: &Connection, seq: i64) -> Result<Self, StoreError> {
        let ids = load::node_ids(connection, seq)?;
        let positions: HashMap<i64, usize> = ids.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let mut statement = connection.prepare_cached("SELECT hash, parent FROM node WHERE id = ?1")?;
        let (mut hashes, mut parents) = (Vec::with_capacity(ids.len()), Vec::with_capacity(ids.len()));
        for id in &ids {
            let (hash, parent) =
                statement.query_row([id], |row| Ok((NodeHash(Hash(row.get(0)?)), row.get::<_, i64>(1)?)))?;
            hashes.push(hash);
            parents.push(positions.get(&parent).copied());
        }
        let mut leaf = connection.prepare_cached("SELECT main_leaf FROM content WHERE trajectory = ?1")?;
        let leaf: Option<Option<i64>> = leaf.query_row([seq], |row| row.get(0)).optional()?;
        let leaf = leaf.flatten().and_then(|leaf| positions.get(&leaf).copied());
        Ok(Self::new(hashes, parents, leaf, Bodies::Stored(ids)))
    }

    fn new(
        hashes: Vec<NodeHash>,
        parents: Vec<Option<usize>>,
        leaf: Option<usize>,
        bodies: Bodies<'a>,
    ) -> Self {
        let positions = hashes.iter().enumerate().map(|(position, hash)| (*hash, position)).collect();
        Self { hashes, parents, positions, leaf, bodies }
    }

    /// Whether this recording goes on where the other ended.
    pub(super) fn continues(
        &self,
        other: &Self,
        connection: &Connection,
        packs: &mut PackCache,
    ) -> Result<bool, StoreError> {
        // The other's last messages that are not held as they are, the last one first.
        let mut changed = Vec::new();
        let (mut next, mut shared) = (other.leaf, None);
        while let Some(position) = next {
            shared = self.positions.get(&other.hashes[position]).copied();
            if shared.is_some() {
                break;
            }
            changed.push(position);
            // A parent stands before its child, so this ends.
            next = other.parents[position].filter(|parent| *parent < position);
        }
        if changed.is_empty() {
            return Ok(true);
        }
        let Some(shared) = shared else { return Ok(false) };
        let mut children = vec![Vec::new(); self.parents.len()];
        for (position, parent) in self.parents.iter().enumerate() {
            if let Some(parent) = parent {
                children[*parent].push(position);
            }
        }
        let mut grown = vec![shared];
        for position in changed.into_iter().rev() {
            let before = other.message(position, connection, packs)?;
            let mut after = Vec::new();
            for child in grown.iter().flat_map(|position| &children[*position]) {
                if has_grown(&before, &self.message(*child, connection, packs)?) {
                    after.push(*child);
                }
            }
            grown = after;
        }
        Ok(!grown.is_empty())
    }

    fn message(
        &self,
        position: usize,
        connection: &Connection,
        packs: &mut PackCache,
    ) -> Result<Node, StoreError> {
        let body = match &self.bodies {
            Bodies::Batch(bodies) => body_from_bytes(bodies[position].bytes.as_bytes()),
            Bodies::Stored(ids) => {
                let mut blob = connection.prepare_cached("SELECT blob FROM node WHERE id = ?1")?;
                let blob = blob.query_row([ids[position]], |row| row.get(0))?;
                body_from_bytes(&packs.blob(connection, blob)?)
            }
        };
        body.map_err(|error| StoreError::Corrupt(format!("a message cannot be read: {error}")))
    }
}

/// Whether a message is another one as it was or with more parts behind. One that holds nothing is no sign of
/// anything.
fn has_grown(before: &Node, after: &Node) -> bool {
    !before.parts.is_empty()
        && (before.role, &before.agent) == (after.role, &after.agent)
        && before.parts.len() <= after.parts.len()
        && before.parts.iter().zip(&after.parts).all(|(before, after)| match (before, after) {
            // How a call ended may be told after what it answered.
            (Part::ToolResult(before), Part::ToolResult(after)) => {
                before.call_id == after.call_id && before.parts == after.parts
            }
            _ => before == after,
        })
}
