//! Verdicts: kept beside the runs, once each, the current one found by trust.
//!
//! Current is the verdict of the highest producer rank, then version; between equals the best of
//! several comes first, then the one put last, so that a person can correct a label. The time in
//! `created_at` decides nothing. A verdict on a revision that a longer one has superseded is stale:
//! it stays on its revision and is not carried over. What was told of the run is: the outcome of a label to a
//! revision of the same messages, its task, environment and note to any.

use std::collections::BTreeSet;

use rusqlite::{Connection, OptionalExtension as _};

use super::{Store, StoreError, facets, load};
use crate::failpoint::Failpoint;
use crate::id::{TaskKey, TrajectoryId};
use crate::verdict::{Content, Verdict};

/// Most verdicts in one transaction.
const BATCH: usize = 1000;

/// Order of verdicts of one kind, the current one first.
const CURRENT_FIRST: &str = "rank DESC, version DESC, place, seq DESC";

impl Store {
    /// Keeps verdicts and returns how many were not kept before. Putting a verdict again changes
    /// nothing but which of several equal in rank and version counts.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] where a subject is not in the store; nothing of its thousand is kept.
    pub fn put_verdicts(&mut self, verdicts: &[Verdict]) -> Result<usize, StoreError> {
        let mut added = 0;
        for batch in verdicts.chunks(BATCH) {
            let transaction = self.write()?;
            let mut touched = BTreeSet::new();
            for verdict in batch {
                let seq = load::seq(&transaction, verdict.subject)?;
                added += usize::from(put(&transaction, seq, verdict)?);
                touched.insert(seq);
            }
            let mut packs = self.packs.borrow_mut();
            for seq in touched {
                facets::refresh(&transaction, &mut packs, seq)?;
            }
            transaction.commit(Failpoint::Verdicts)?;
        }
        Ok(added)
    }

    /// Every verdict on a run: by kind, the current one of each kind first.
    pub fn verdicts(&self, id: TrajectoryId) -> Result<Vec<Verdict>, StoreError> {
        let sql = format!("SELECT body FROM verdict WHERE subject = ?1 ORDER BY kind, {CURRENT_FIRST}");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let bodies = statement.query_map([self.seq(id)?], |row| row.get::<_, String>(0))?;
        bodies.map(|body| parse(&body?)).collect()
    }

    /// Every verdict of a kind on a run, the current one first.
    pub fn of_run(&self, id: TrajectoryId, kind: &str) -> Result<Vec<Verdict>, StoreError> {
        of_kind(&self.connection, self.seq(id)?, kind)
    }

    /// Every verdict of a kind on the latest revisions, each with its run's task, labels applied: in
    /// import order of the runs, the current one of each first.
    pub fn of_kind(&self, kind: &str) -> Result<Vec<(TaskKey, Verdict)>, StoreError> {
        let sql = format!(
            "SELECT task, body FROM verdict JOIN trajectory ON trajectory.seq = subject
             WHERE kind = ?1 AND latest ORDER BY subject, {}",
            CURRENT_FIRST.replace("seq", "verdict.seq")
        );
        let mut statement = self.connection.prepare_cached(&sql)?;
        let rows = statement.query_map([kind], |row| Ok((TaskKey(row.get(0)?), row.get::<_, String>(1)?)))?;
        rows.map(|row| row.map_err(StoreError::from).and_then(|(task, body)| Ok((task, parse(&body)?))))
            .collect()
    }

    /// The latest round of collection that any state of the latest revisions is labelled in.
    pub fn latest_round(&self) -> Result<Option<u32>, StoreError> {
        let labels = self.of_kind("state_label")?;
        let rounds = labels.into_iter().filter_map(|(_, verdict)| match verdict.content {
            Content::StateLabel(label) => Some(label.round),
            _ => None,
        });
        Ok(rounds.max())
    }

    /// The verdict of a kind that counts.
    pub fn current(&self, id: TrajectoryId, kind: &str) -> Result<Option<Verdict>, StoreError> {
        current(&self.connection, self.seq(id)?, kind)
    }

    /// Whether a longer revision of the run has made its verdicts stale.
    pub fn is_stale(&self, id: TrajectoryId) -> Result<bool, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT NOT latest FROM trajectory WHERE seq = ?1")?;
        Ok(statement.query_row([self.seq(id)?], |row| row.get(0))?)
    }
}

/// Keeps one verdict; true where it is new.
pub(super) fn put(connection: &Connection, subject: i64, verdict: &Verdict) -> Result<bool, StoreError> {
    let kind = verdict.content.kind();
    let (rank, version) = (verdict.producer.rank, verdict.producer.version);
    let mut known = connection.prepare_cached("SELECT seq FROM verdict WHERE id = ?1")?;
    if let Some(seq) = known.query_row([verdict.id.0.0], |row| row.get::<_, i64>(0)).optional()? {
        let mut reassert = connection.prepare_cached(
            "UPDATE verdict SET seq = (SELECT max(seq) + 1 FROM verdict) WHERE seq = ?1 AND EXISTS(
               SELECT 1 FROM verdict WHERE subject = ?2 AND kind = ?3 AND rank = ?4 AND version = ?5 AND seq > ?1)",
        )?;
        reassert.execute((seq, subject, kind, rank, version))?;
        return Ok(false);
    }
    let place = match &verdict.content {
        Content::Diagnosis(diagnosis) => diagnosis.rank,
        // What was once proved stays proved, whatever a later replay of fewer runs could show.
        Content::Claim(claim) => claim.rung.steps_to_top(),
        // Refused goals are kept behind the accepted one, in the order of their attempts.
        Content::Relabel(relabel) if relabel.accepted.is_none() => relabel.attempt + 1,
        _ => 0,
    };
    let body = serde_json::to_string(verdict)
        .map_err(|error| StoreError::Corrupt(format!("a verdict cannot be written: {error}")))?;
    let mut statement = connection.prepare_cached(
        "INSERT INTO verdict(id, subject, kind, rank, version, place, body) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    statement.execute((verdict.id.0.0, subject, kind, rank, version, place, body))?;
    Ok(true)
}

/// Whether a verdict is kept already.
pub(super) fn is_known(connection: &Connection, verdict: &Verdict) -> rusqlite::Result<bool> {
    connection.prepare_cached("SELECT 1 FROM verdict WHERE id = ?1")?.exists([verdict.id.0.0])
}

pub(super) fn current(
    connection: &Connection,
    subject: i64,
    kind: &str,
) -> Result<Option<Verdict>, StoreError> {
    let sql =
        format!("SELECT body FROM verdict WHERE subject = ?1 AND kind = ?2 ORDER BY {CURRENT_FIRST} LIMIT 1");
    let mut statement = connection.prepare_cached(&sql)?;
    let body: Option<String> = statement.query_row((subject, kind), |row| row.get(0)).optional()?;
    body.map(|body| parse(&body)).transpose()
}

/// Every verdict of a kind, the current one first.
pub(super) fn of_kind(connection: &Connection, subject: i64, kind: &str) -> Result<Vec<Verdict>, StoreError> {
    let sql = format!("SELECT body FROM verdict WHERE subject = ?1 AND kind = ?2 ORDER BY {CURRENT_FIRST}");
    let mut statement = connection.prepare_cached(&sql)?;
    let bodies = statement.query_map((subject, kind), |row| row.get::<_, String>(0))?;
    bodies.map(|body| parse(&body?)).collect()
}

fn parse(body: &str) -> Result<Verdict, StoreError> {
    serde_json::from_str(body)
        .map_err(|error| StoreError::Corrupt(format!("a verdict cannot be read: {error}")))
}
