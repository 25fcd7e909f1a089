//! The split: which runs may teach, which choose and which measure, decided once.
//!
//! Runs are tied by *links*: their task key, their goal (as [`goal_hash`](crate::task::goal_hash)
//! folds it), the run they continue. Linked runs form a component and stand on one side, given by a
//! hash of the component's smallest task key: 80 % train, 10 % validation, 10 % test.
//!
//! Sides are given when an import finishes, so they do not depend on the order of its runs, and stay:
//! a later component takes the side of the link it shares. A run whose links stand on two sides
//! belongs to neither; it is excluded, and ties nothing together. So is a run that a label moves to a
//! task of another side than the one it was given at import.

use std::collections::{BTreeSet, HashMap};

use rusqlite::{Connection, OptionalExtension as _};

use super::{Store, StoreError, verdicts};
use crate::failpoint::Failpoint;
use crate::id::{Hash, TrajectoryId};
use crate::verdict::{Content, Producer, Side, Split, Verdict};

/// Who gives a run its first side.
const IMPORT: &str = "import";
/// Rows in one commit.
const BATCH: usize = 1000;

/// A run without a side.
struct Unsplit {
    seq: i64,
    id: TrajectoryId,
    ties: Ties,
    links: Vec<Hash>,
}

/// What ties a run to others.
pub(super) struct Ties {
    task: String,
    goal: Option<[u8; 32]>,
}

impl Ties {
    /// Of a stored run.
    pub(super) fn of(connection: &Connection, seq: i64) -> Result<Self, StoreError> {
        let mut statement = connection.prepare_cached("SELECT task, goal FROM trajectory WHERE seq = ?1")?;
        Ok(statement.query_row([seq], |row| Ok(Self { task: row.get(0)?, goal: row.get(1)? }))?)
    }

    fn task_link(task: &str) -> Hash {
        Hash::of_all(&[b"task", task.as_bytes()])
    }

    fn goal_link(goal: &[u8; 32]) -> Hash {
        Hash::of_all(&[b"goal", goal])
    }
}

/// Drops the sides of tasks and goals that no run has any more.
pub(super) fn forget(connection: &Connection, ties: &[Ties]) -> Result<(), StoreError> {
    let mut delete = connection.prepare_cached("DELETE FROM split_link WHERE link = ?1")?;
    let mut task = connection.prepare_cached("SELECT 1 FROM trajectory WHERE task = ?1")?;
    let mut goals: BTreeSet<[u8; 32]> = BTreeSet::new();
    for tie in ties {
        goals.extend(tie.goal);
        if !task.exists([&tie.task])? {
            delete.execute([Ties::task_link(&tie.task).0])?;
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
    let runs = unsplit(&store.connection)?;
    let mut components = Components::default();
    let mut joined = Vec::with_capacity(runs.len());
    for run in &runs {
        for link in &run.links {
            components.add(&store.connection, *link)?;
        }
        joined.push(components.join(&run.links, &run.ties.task));
    }
    let links = components.decided();
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
                _ => Split { side: Side::Excluded, component: run.ties.task.clone() },
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

fn unsplit(connection: &Connection) -> Result<Vec<Unsplit>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT seq, id, task, goal, origin,
                (SELECT origin.task FROM trajectory AS origin WHERE origin.id = trajectory.origin)
         FROM trajectory WHERE split IS NULL ORDER BY seq",
    )?;
    let rows = statement.query_map([], |row| {
        let ties = Ties { task: row.get(2)?, goal: row.get(3)? };
        let mut links = vec![Ties::task_link(&ties.task)];
        links.extend(ties.goal.as_ref().map(Ties::goal_link));
        if let Some(origin) = row.get::<_, Option<[u8; 32]>>(4)? {
            // Tied to the run it continues, or to other runs that continue the same absent one.
            links.push(match row.get::<_, Option<String>>(5)? {
                Some(task) => Ties::task_link(&task),
                None => Hash::of_all(&[b"run", &origin]),
            });
        }
        Ok(Unsplit { seq: row.get(0)?, id: TrajectoryId(Hash(row.get(1)?)), ties, links })
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
    let side = [Side::Train, Side::Validation, Side::Test].into_iter().find(|known| known.as_str() == side);
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

/// Links as a union-find forest; a root knows its side once one of its links has one.
#[derive(Default)]
struct Components {
    index: HashMap<Hash, usize>,
    links: Vec<Hash>,
    parent: Vec<usize>,
    fixed: Vec<Option<Split>>,
    smallest: Vec<Option<String>>,
}

impl Components {
    fn add(&mut self, connection: &Connection, link: Hash) -> Result<(), StoreError> {
        if !self.index.contains_key(&link) {
            self.index.insert(link, self.links.len());
            self.links.push(link);
            self.parent.push(self.parent.len());
            self.fixed.push(stored_side(connection, link)?);
            self.smallest.push(None);
        }
        Ok(())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.parent[at] != at {
            self.parent[at] = self.parent[self.parent[at]];
            at = self.parent[at];
        }
        at
    }

    /// Ties links together unless they stand on two sides; false where they do.
    fn join(&mut self, links: &[Hash], task: &str) -> bool {
        let mut roots: Vec<usize> = Vec::with_capacity(links.len());
        for link in links {
            if let Some(at) = self.index.get(link).copied() {
                roots.push(self.root(at));
            }
        }
        let mut sides: Vec<Side> =
            roots.iter().filter_map(|root| self.fixed[*root].as_ref()).map(|split| split.side).collect();
        sides.dedup();
        if sides.len() > 1 {
            return false;
        }
        let Some((first, others)) = roots.split_first() else { return true };
        for other in others.iter().filter(|other| *other != first) {
            self.parent[*other] = *first;
            let (fixed, smallest) = (self.fixed[*other].take(), self.smallest[*other].take());
            self.fixed[*first] = match (self.fixed[*first].take(), fixed) {
                (Some(left), Some(right)) => {
                    Some(if left.component <= right.component { left } else { right })
                }
                (left, right) => left.or(right),
            };
            self.smallest[*first] = match (self.smallest[*first].take(), smallest) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            };
        }
        if self.smallest[*first].as_deref().is_none_or(|smallest| task < smallest) {
            self.smallest[*first] = Some(task.to_owned());
        }
        true
    }

    /// Every link with the side of its component, in the order the links came; links of excluded
    /// runs only stay open.
    fn decided(mut self) -> Vec<(Hash, Split)> {
        let mut decided = Vec::new();
        for at in 0..self.links.len() {
            let root = self.root(at);
            let split = self.fixed[root].clone().or_else(|| {
                let component = self.smallest[root].clone()?;
                Some(Split { side: side(&component), component })
            });
            decided.extend(split.map(|split| (self.links[at], split)));
        }
        decided
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
