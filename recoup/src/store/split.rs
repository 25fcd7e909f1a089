//! The split: which runs may teach, which choose and which measure, decided once.
//!
//! Runs are tied by *links*: their task key, their goal (as [`goal_hash`](crate::task::goal_hash)
//! folds it), the run they continue, the tasks of runs that they nearly equal; in a strict split also
//! the template their task is made from, its repository, the seed of its database. Linked runs form a
//! component and stand on one side, given by a hash of the component's smallest task key: 80 % train,
//! 10 % validation, 10 % test.
//!
//! Sides are given when an import finishes, so they do not depend on the order of its runs, and stay:
//! a later component takes the side of the link it shares. A run whose links stand on two sides
//! belongs to neither; it is excluded, and ties nothing together. So is a run that a label moves to a
//! task of another side than the one it was given at import.

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;

use super::components::{Components, Known};
use super::{Store, StoreError, sketches, verdicts};
use crate::deduplication::{NearIndex, first_of_cluster};
use crate::failpoint::Failpoint;
use crate::id::{Hash, TrajectoryId};
use crate::task::{Task, goal_hash};
use crate::verdict::{Content, Producer, Side, Split, Verdict};

/// Who gives a run its first side.
const IMPORT: &str = "import";
/// Rows in one commit.
const BATCH: usize = 1000;

/// The rule of a project whose split is strict, and its value.
const RULE: &str = "split";
const STRICT: &str = "strict";

/// The component that holds the most tasks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LargestComponent {
    /// Its smallest task key.
    pub component: String,
    /// Tasks in it.
    pub tasks: u64,
    /// Tasks in the project that have a side.
    pub of: u64,
}

impl LargestComponent {
    /// Tasks below which a share says nothing.
    const TASKS_MIN: u64 = 10;

    /// Whether it holds so much of the project (over 30 % of its tasks) that the sides are lopsided.
    pub fn is_too_large(&self) -> bool {
        self.of >= Self::TASKS_MIN && self.tasks * 10 > self.of * 3
    }
}

impl Store {
    /// Makes the split strict from now on: runs are also tied by their task's template and groups.
    /// Runs that have a side keep it.
    ///
    /// # Errors
    /// When the project cannot be written.
    pub fn make_split_strict(&mut self) -> Result<(), StoreError> {
        if !self.is_split_strict()? {
            let transaction = self.write()?;
            transaction.execute("INSERT OR REPLACE INTO rule VALUES(?1, ?2)", (RULE, STRICT))?;
            transaction.commit(Failpoint::SplitLinks)?;
        }
        Ok(())
    }

    /// Whether the split is strict.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn is_split_strict(&self) -> Result<bool, StoreError> {
        let mut statement =
            self.connection.prepare_cached("SELECT 1 FROM rule WHERE name = ?1 AND value = ?2")?;
        Ok(statement.exists((RULE, STRICT))?)
    }

    /// The side that a run of a task will stand on, as far as it can be told before there is one: that of its task
    /// and goal where those are known, else the one that the task alone would be given.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn side_of_task(&self, task: &Task) -> Result<Side, StoreError> {
        let goal = (!task.goal.is_empty()).then(|| Ties::goal_link(&goal_hash(&task.goal).0));
        let of_task = stored_side(&self.connection, Ties::task_link(&task.key.0))?;
        let of_goal = goal.map(|goal| stored_side(&self.connection, goal)).transpose()?.flatten();
        Ok(match (of_task, of_goal) {
            (Some(task), Some(goal)) if task.side != goal.side => Side::Excluded,
            (Some(split), _) | (None, Some(split)) => split.side,
            (None, None) => Self::side_of_new(task),
        })
    }

    /// The side that a task alone would be given in a new project.
    pub fn side_of_new(task: &Task) -> Side {
        side(&task.key.0)
    }

    /// The component that holds the most tasks; the first by name of several. `None` without a task.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn largest_component(&self) -> Result<Option<LargestComponent>, StoreError> {
        let mut statement = self.connection.prepare_cached("SELECT DISTINCT task FROM trajectory")?;
        let mut rows = statement.query([])?;
        let mut tasks: BTreeMap<String, u64> = BTreeMap::new();
        while let Some(row) = rows.next()? {
            let link = Ties::task_link(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?);
            if let Some(split) = stored_side(&self.connection, link)? {
                *tasks.entry(split.component).or_default() += 1;
            }
        }
        let of = tasks.values().sum();
        let largest = tasks.into_iter().rev().max_by_key(|(_, tasks)| *tasks);
        Ok(largest.map(|(component, tasks)| LargestComponent { component, tasks, of }))
    }
}

/// A run without a side.
struct Unsplit {
    seq: i64,
    id: TrajectoryId,
    task: String,
    links: Vec<Hash>,
}

/// What ties a run to others.
pub(super) struct Ties {
    task: String,
    goal: Option<[u8; 32]>,
    /// What ties it in a strict split.
    strict: Vec<Hash>,
}

impl Ties {
    /// Of a stored run.
    pub(super) fn of(connection: &Connection, seq: i64) -> Result<Self, StoreError> {
        let mut statement = connection.prepare_cached("SELECT task, goal FROM trajectory WHERE seq = ?1")?;
        let strict = strict_links(connection, seq)?;
        Ok(statement.query_row([seq], |row| Ok(Self { task: row.get(0)?, goal: row.get(1)?, strict }))?)
    }

    fn task_link(task: &str) -> Hash {
        Hash::of_all(&[b"task", task.as_bytes()])
    }

    fn goal_link(goal: &[u8; 32]) -> Hash {
        Hash::of_all(&[b"goal", goal])
    }
}

/// Drops the sides of tasks, goals and groups that no run has any more.
pub(super) fn forget(connection: &Connection, ties: &[Ties]) -> Result<(), StoreError> {
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

/// Gives every run that has no side its side and returns how many are excluded.
pub(super) fn assign(store: &Store, now: &str) -> Result<u64, StoreError> {
    let mut runs = unsplit(&store.connection)?;
    if runs.is_empty() {
        return Ok(0);
    }
    sketches::complete(store)?;
    let near = near_ties(&store.connection)?;
    let strict = store.is_split_strict()?;
    let mut components = Components::default();
    let mut joined = Vec::with_capacity(runs.len());
    for run in &mut runs {
        for link in &run.links {
            if !components.has(*link) {
                components.add(*link, Known::Open.and(stored_side(&store.connection, *link)?), true);
            }
        }
        if let Some((tie, known)) = near.get(&run.seq) {
            if !components.has(*tie) {
                components.add(*tie, known.clone(), false);
            }
            run.links.push(*tie);
        }
        if strict {
            for link in strict_links(&store.connection, run.seq)? {
                if !components.has(link) {
                    components.add(link, known_of_strict(&store.connection, link)?, true);
                }
                run.links.push(link);
            }
        }
        joined.push(components.join(&run.links, &run.task));
    }
    rename(store, components.renamed())?;
    let links = components.decided(side);
    for batch in links.chunks(BATCH) {
        let transaction = store.write()?;
        {
            // Another process may have given the link a side in the meantime: the first one stays.
            let mut statement =
                transaction.prepare_cached("INSERT OR IGNORE INTO split_link VALUES(?1, ?2, ?3)")?;
            for (link, split) in batch {
                statement.execute((link.0, split.side.as_str(), &split.component))?;
            }
        }
        transaction.commit(Failpoint::SplitLinks)?;
    }
    let mut excluded = 0;
    let runs: Vec<(Unsplit, bool)> = runs.into_iter().zip(joined).collect();
    for batch in runs.chunks(BATCH) {
        let transaction = store.write()?;
        for (run, joined) in batch {
            let split = match side_of(&transaction, run)? {
                Some(split) if *joined => split,
                _ => Split { side: Side::Excluded, component: run.task.clone() },
            };
            let is_excluded = split.side == Side::Excluded;
            excluded += u64::from(put(&transaction, run, split, now)? && is_excluded);
        }
        transaction.commit(Failpoint::SplitRuns)?;
    }
    Ok(excluded)
}

/// Follows a run that labels have moved to another task. A task without a side takes the run's.
///
/// The run's own side is the one given at import, whatever labels did to it since, so that a label
/// that is taken back brings the run back.
pub(super) fn follow(connection: &Connection, seq: i64, task: &str, now: &str) -> Result<(), StoreError> {
    let splits = verdicts::of_kind(connection, seq, "split")?;
    let of = |verdict: &Verdict| match &verdict.content {
        Content::Split(split) => Some((verdict.subject, split.clone())),
        _ => None,
    };
    let given = splits.iter().find(|verdict| verdict.producer.name == IMPORT).and_then(of);
    // A run without a side gets it when its import finishes, under the task it then has.
    let Some((id, own)) = given else { return Ok(()) };
    let link = Ties::task_link(task);
    let split = match stored_side(connection, link)? {
        Some(split) if split.side == own.side => own,
        None if own.side == Side::Excluded => own,
        None => {
            let row = (link.0, own.side.as_str(), &own.component);
            connection.prepare_cached("INSERT INTO split_link VALUES(?1, ?2, ?3)")?.execute(row)?;
            own
        }
        Some(_) => Split { side: Side::Excluded, component: task.to_owned() },
    };
    connection
        .prepare_cached("UPDATE trajectory SET split = ?2 WHERE seq = ?1")?
        .execute((seq, split.side.as_str()))?;
    if splits.first().and_then(of).is_none_or(|(_, current)| current != split) {
        let content = Content::Split(split);
        let verdict = Verdict::new(id, Producer::rules("label", 1), Vec::new(), content, now);
        verdicts::put(connection, seq, &verdict)?;
    }
    Ok(())
}

/// What ties new runs that nearly equal each other or runs that have a side, by their integer ids, each with what
/// the latter say of it.
///
/// New runs are clustered; the others are read once and held against them.
fn near_ties(connection: &Connection) -> Result<HashMap<i64, (Hash, Known)>, StoreError> {
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
fn strict_links(connection: &Connection, seq: i64) -> Result<Vec<Hash>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT link FROM strict_link WHERE trajectory = ?1 ORDER BY link")?;
    let rows = statement.query_map([seq], |row| row.get(0).map(Hash))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The side of a strict link, or, where the split was not strict before, of the runs that it ties.
fn known_of_strict(connection: &Connection, link: Hash) -> Result<Known, StoreError> {
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

/// Gives components that have become one the same name.
fn rename(store: &Store, renamed: &[(String, String)]) -> Result<(), StoreError> {
    for batch in renamed.chunks(BATCH) {
        let transaction = store.write()?;
        {
            let mut statement =
                transaction.prepare_cached("UPDATE split_link SET component = ?2 WHERE component = ?1")?;
            for (gone, kept) in batch {
                statement.execute((gone, kept))?;
            }
        }
        transaction.commit(Failpoint::SplitLinks)?;
    }
    Ok(())
}

fn unsplit(connection: &Connection) -> Result<Vec<Unsplit>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, id, task, goal, origin,
                (SELECT origin.task FROM trajectory AS origin WHERE origin.id = trajectory.origin)
         FROM trajectory WHERE split IS NULL ORDER BY seq",
    )?;
    let rows = statement.query_map([], |row| {
        let (task, goal): (String, Option<[u8; 32]>) = (row.get(2)?, row.get(3)?);
        let mut links = vec![Ties::task_link(&task)];
        links.extend(goal.as_ref().map(Ties::goal_link));
        if let Some(origin) = row.get::<_, Option<[u8; 32]>>(4)? {
            // Tied to the run it continues, or to other runs that continue the same absent one.
            links.push(match row.get::<_, Option<String>>(5)? {
                Some(task) => Ties::task_link(&task),
                None => Hash::of_all(&[b"run", &origin]),
            });
        }
        Ok(Unsplit { seq: row.get(0)?, id: TrajectoryId(Hash(row.get(1)?)), task, links })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The side that all links of a run agree on.
fn side_of(connection: &Connection, run: &Unsplit) -> Result<Option<Split>, StoreError> {
    let mut found: Option<Split> = None;
    for link in &run.links {
        let Some(split) = stored_side(connection, *link)? else { continue };
        match &mut found {
            None => found = Some(split),
            Some(other) if other.side == split.side => {
                other.component = split.component.min(std::mem::take(&mut other.component));
            }
            Some(_) => return Ok(None),
        }
    }
    Ok(found)
}

fn stored_side(connection: &Connection, link: Hash) -> Result<Option<Split>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT side, component FROM split_link WHERE link = ?1")?;
    let row = statement.query_row([link.0], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    let Some((side, component)) = row else { return Ok(None) };
    let side = Side::from_word(&side).filter(|side| *side != Side::Excluded);
    let side = side.ok_or_else(|| StoreError::Corrupt("a side of the split has no known name".to_owned()))?;
    Ok(Some(Split { side, component }))
}

/// Writes a run's side, unless another process did; true where it was written.
fn put(connection: &Connection, run: &Unsplit, split: Split, now: &str) -> Result<bool, StoreError> {
    let mut statement = connection
        .prepare_cached("UPDATE trajectory SET split = ?2 WHERE seq = ?1 AND id = ?3 AND split IS NULL")?;
    if statement.execute((run.seq, split.side.as_str(), run.id.0.0))? == 0 {
        return Ok(false);
    }
    let content = Content::Split(split);
    let verdict = Verdict::new(run.id, Producer::rules(IMPORT, 1), Vec::new(), content, now);
    verdicts::put(connection, run.seq, &verdict)
}

/// The side of a component, from the smallest task key in it.
fn side(component: &str) -> Side {
    let hash = Hash::of(component.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash.0[..8]);
    match u64::from_le_bytes(first) % 10 {
        0 => Side::Test,
        1 => Side::Validation,
        _ => Side::Train,
    }
}

#[cfg(test)]
mod tests {
    use super::side;
    use crate::verdict::Side;

    #[test]
    fn sides_are_shared_out_eight_one_one() {
        let count = |wanted| (0..10_000).filter(|i| side(&format!("task/{i}")) == wanted).count();
        assert!((7800..8200).contains(&count(Side::Train)));
        assert!((850..1150).contains(&count(Side::Validation)));
        assert!((850..1150).contains(&count(Side::Test)));
    }
}
