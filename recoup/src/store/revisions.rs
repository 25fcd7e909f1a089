//! Revisions: what a run is to the runs already stored under its key.
//!
//! * Equal content: a duplicate, nothing is written.
//! * One continues the other ([growth](super::growth)): two revisions of one run, the longer is the latest.
//! * Neither: two runs that share a native id. The second gets an identity of its own, numbered from
//!   2, and finds it again when it is imported again.
//!
//! An id that [`SHARED_MAX`] different runs bear is no run id but the name of something else, a task
//! perhaps: from there on it says nothing about growth, and a run is numbered by its content.

use std::collections::{HashMap, HashSet};

use rusqlite::Connection;

use super::StoreError;
use super::growth::Recording;
use super::pack::PackCache;
use super::plan::Waiting;
use crate::id::{Hash, TrajectoryId, TrajectoryKey};
use crate::trajectory::Sealed;

/// Runs under one native id that are compared with each other.
const SHARED_MAX: u64 = 16;

/// What becomes of a run of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// Stored already, under this id.
    Duplicate { id: TrajectoryId },
    /// To be stored under `base`, the key before numbering.
    New {
        base: TrajectoryKey,
        /// Which of several runs under that key, from 1; beyond [`SHARED_MAX`] a hash of the content.
        ordinal: u64,
        /// Whether another revision of it is stored.
        revision: bool,
        /// Whether it is the newest revision.
        latest: bool,
    },
}

/// A run under the same key.
#[derive(Clone, Copy)]
struct Known {
    id: TrajectoryId,
    ordinal: u64,
    latest: bool,
    place: At,
}

#[derive(Clone, Copy)]
enum At {
    Stored(i64),
    Batch(usize),
}

/// The runs of one batch by key, for those that follow in it.
#[derive(Default)]
pub(super) struct Revisions {
    known: HashMap<TrajectoryKey, Vec<Known>>,
    /// Runs of the batch that are numbered by their content.
    by_content: HashSet<TrajectoryId>,
    packs: PackCache,
}

impl Revisions {
    /// Decides on the run that follows others in a batch and numbers it where needed.
    pub(super) fn decide(
        &mut self,
        connection: &Connection,
        before: &[Waiting],
        sealed: &mut Sealed,
    ) -> Result<Fate, StoreError> {
        let base = sealed.head.key;
        let mut known = match self.known.remove(&base) {
            Some(known) => known,
            None => stored(connection, base)?,
        };
        let fate = self.fate(connection, before, sealed, &known)?;
        if let Fate::New { ordinal, latest, .. } = fate {
            if ordinal > 1 {
                sealed.renumber(ordinal);
            }
            if ordinal > SHARED_MAX {
                self.by_content.insert(sealed.head.id);
                self.known.insert(base, known);
                return Ok(fate);
            }
            if latest {
                for other in known.iter_mut().filter(|other| other.ordinal == ordinal) {
                    other.latest = false;
                }
            }
            known.push(Known { id: sealed.head.id, ordinal, latest, place: At::Batch(before.len()) });
        }
        self.known.insert(base, known);
        Ok(fate)
    }

    fn fate(
        &mut self,
        connection: &Connection,
        before: &[Waiting],
        sealed: &mut Sealed,
        known: &[Known],
    ) -> Result<Fate, StoreError> {
        let base = sealed.head.key;
        let highest = known.iter().map(|other| other.ordinal).max().unwrap_or(0);
        for ordinal in 1..=highest {
            let id = numbered_id(sealed, ordinal);
            if known.iter().any(|other| other.id == id) {
                return Ok(Fate::Duplicate { id });
            }
        }
        if highest == SHARED_MAX {
            let ordinal = content_ordinal(sealed);
            let id = numbered_id(sealed, ordinal);
            return Ok(if self.by_content.contains(&id) || is_stored(connection, id)? {
                Fate::Duplicate { id }
            } else {
                Fate::New { base, ordinal, revision: false, latest: true }
            });
        }
        if highest > 0 {
            let recorded = Recording::of(sealed);
            let packs = &mut self.packs;
            for other in known.iter().filter(|other| other.latest) {
                let earlier = recording(connection, before, other.place)?;
                let longer = recorded.continues(&earlier, connection, packs)?;
                if longer || earlier.continues(&recorded, connection, packs)? {
                    let ordinal = other.ordinal;
                    return Ok(Fate::New { base, ordinal, revision: true, latest: longer });
                }
            }
        }
        Ok(Fate::New { base, ordinal: highest + 1, revision: false, latest: true })
    }
}

fn recording<'a>(
    connection: &Connection,
    batch: &'a [Waiting],
    place: At,
) -> Result<Recording<'a>, StoreError> {
    match place {
        At::Batch(index) => {
            let run = batch.get(index).map(|waiting| Recording::of(&waiting.sealed));
            run.ok_or_else(|| StoreError::Corrupt("a run of the batch is missing".to_owned()))
        }
        At::Stored(seq) => Recording::stored(connection, seq),
    }
}

/// A number above [`SHARED_MAX`] that equal content always gets.
fn content_ordinal(sealed: &Sealed) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&sealed.head.revision.0.0[..8]);
    // Half the range keeps it positive where the database stores it.
    (u64::from_le_bytes(bytes) >> 1).max(SHARED_MAX + 1)
}

fn is_stored(connection: &Connection, id: TrajectoryId) -> Result<bool, StoreError> {
    let mut statement = connection.prepare_cached("SELECT 1 FROM trajectory WHERE id = ?1")?;
    Ok(statement.exists([id.0.0])?)
}

/// The id a run has as number `ordinal` of its key.
fn numbered_id(sealed: &mut Sealed, ordinal: u64) -> TrajectoryId {
    let (key, id) = (sealed.head.key, sealed.head.id);
    if ordinal < 2 {
        return id;
    }
    sealed.renumber(ordinal);
    let numbered = sealed.head.id;
    (sealed.head.key, sealed.head.id) = (key, id);
    numbered
}

fn stored(connection: &Connection, base: TrajectoryKey) -> Result<Vec<Known>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, id, ordinal, latest FROM trajectory WHERE base = ?1 AND ordinal <= ?2 ORDER BY seq",
    )?;
    let rows = statement.query_map((base.0.0, SHARED_MAX as i64), |row| {
        Ok(Known {
            place: At::Stored(row.get(0)?),
            id: TrajectoryId(Hash(row.get(1)?)),
            ordinal: row.get::<_, i64>(2)? as u64,
            latest: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
