//! Links: what ties runs together.

use std::cell::LazyCell;
use std::collections::{BTreeSet, HashMap, HashSet};

use rusqlite::Connection;

use super::stored_side;
use crate::deduplication::{NearIndex, first_of_cluster};
use crate::id::{Hash, TrajectoryId};
use crate::store::components::Known;
use crate::store::{StoreError, sketches};

/// What ties a run to others.
pub(in crate::store) struct Ties {
    task: String,
    goal: Option<[u8; 32]>,
    /// What ties it in a strict split.
    strict: Vec<Hash>,
}

impl Ties {
    /// Of a stored run.
    pub(in crate::store) fn of(connection: &Connection, seq: i64) -> Result<Self, StoreError> {
        let mut statement = connection.prepare_cached("SELECT task, goal FROM trajectory WHERE seq = ?1")?;
        let strict = strict_links(connection, seq)?;
        Ok(statement.query_row([seq], |row| Ok(Self { task: row.get(0)?, goal: row.get(1)?, strict }))?)
    }

    pub(super) fn task_link(task: &str) -> Hash {
        Hash::of_all(&[b"task", task.as_bytes()])
    }

    pub(super) fn goal_link(goal: &[u8; 32]) -> Hash {
        Hash::of_all(&[b"goal", goal])
    }
}

/// Drops the sides of tasks, goals and groups that no run has any more.
pub(in crate::store) fn forget(connection: &Connection, ties: &[Ties]) -> Result<(), StoreError> {
    let mut delete = connection.prepare_cached("DELETE FROM split_link WHERE link = ?1")?;
    let mut task = connection.prepare_cached("SELECT 1 FROM trajectory WHERE task = ?1")?;
    let mut group = connection.prepare_cached("SELECT 1 FROM strict_link WHERE link = ?1")?;
    let mut goals: BTreeSet<[u8; 32]> = BTreeSet::new();
    for tie in ties {
        goals.extend(tie.goal);
        if !task.exists([&tie.task])? {
            delete.execute([Ties::task_link(&tie.task).0])?;
        }
        for link in &tie.strict {
            if !group.exists([link.0])? {
                delete.execute([link.0])?;
            }
        }
    }
    let mut kept = connection.prepare_cached("SELECT goal FROM trajectory WHERE goal IS NOT NULL")?;
    let mut rows = kept.query([])?;
    while let Some(row) = rows.next()? {
        goals.remove(&row.get::<_, [u8; 32]>(0)?);
    }
    for goal in goals {
        delete.execute([Ties::goal_link(&goal).0])?;
    }
    Ok(())
}

/// What ties new runs that nearly equal each other or runs that have a side, by their integer ids, each with what
/// the latter say of it.
///
/// New runs are clustered; the others are read once and held against them.
pub(super) fn near_ties(connection: &Connection) -> Result<HashMap<i64, (Hash, Known)>, StoreError> {
    let (mut runs, mut sketches) = (Vec::new(), Vec::new());
    sketches::each(connection, &format!("split IS NULL AND {}", sketches::OWN), &mut |run| {
        runs.push((run.seq, run.id));
        sketches.push(run.sketch);
        Ok(())
    })?;
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let first = first_of_cluster(&sketches);
    let mut known = vec![Known::Open; runs.len()];
    // Of each task, the clusters that it is tied to already.
    let mut tied: HashMap<String, HashSet<usize>> = HashMap::new();
    // In a new project there is nothing to hold against them.
    let index = LazyCell::new(|| NearIndex::new(&sketches));
    let others = format!("split IS NOT NULL AND split <> 'excluded' AND {}", sketches::OWN);
    sketches::each(connection, &others, &mut |other| {
        let done = tied.get(&other.task);
        let is_untied = |at: usize| done.is_none_or(|done| !done.contains(&first[at]));
        let near = index.near(&other.sketch, &is_untied);
        let clusters: BTreeSet<usize> = near.into_iter().map(|at| first[at]).collect();
        if clusters.is_empty() {
            return Ok(());
        }
        let side = stored_side(connection, Ties::task_link(&other.task))?;
        for cluster in &clusters {
            known[*cluster] = std::mem::replace(&mut known[*cluster], Known::Open).and(side.clone());
        }
        tied.entry(other.task).or_default().extend(clusters);
        Ok(())
    })?;
    let mut size = vec![0; runs.len()];
    for first in &first {
        size[*first] += 1;
    }
    let of_cluster = |((seq, _), first): (&(i64, TrajectoryId), usize)| {
        let is_tied = size[first] > 1 || known[first] != Known::Open;
        let tie = || Hash::of_all(&[b"near", &runs[first].1.0.0]);
        is_tied.then(|| (*seq, (tie(), known[first].clone())))
    };
    Ok(runs.iter().zip(first).filter_map(of_cluster).collect())
}

/// What ties a run in a strict split.
pub(super) fn strict_links(connection: &Connection, seq: i64) -> Result<Vec<Hash>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT link FROM strict_link WHERE trajectory = ?1 ORDER BY link")?;
    let rows = statement.query_map([seq], |row| row.get(0).map(Hash))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The side of a strict link, or, where the split was not strict before, of the runs that it ties.
pub(super) fn known_of_strict(connection: &Connection, link: Hash) -> Result<Known, StoreError> {
    if let Some(split) = stored_side(connection, link)? {
        return Ok(Known::On(split));
    }
    let mut statement = connection.prepare_cached(
        "SELECT DISTINCT task FROM strict_link JOIN trajectory ON seq = trajectory
         WHERE link = ?1 AND split IS NOT NULL AND split <> 'excluded' ORDER BY task",
    )?;
    let mut rows = statement.query([link.0])?;
    let mut known = Known::Open;
    while let Some(row) = rows.next()? {
        let task: String = row.get(0)?;
        known = known.and(stored_side(connection, Ties::task_link(&task))?);
    }
    Ok(known)
}
