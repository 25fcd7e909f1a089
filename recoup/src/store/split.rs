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

mod assign;
mod links;

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension as _};
use serde::Serialize;

pub(super) use self::assign::{assign, follow};
pub(super) use self::links::{Ties, forget};
use super::{Store, StoreError};
use crate::failpoint::Failpoint;
use crate::id::Hash;
use crate::task::{Task, goal_hash};
use crate::verdict::{Side, Split};

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

fn stored_side(connection: &Connection, link: Hash) -> Result<Option<Split>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT side, component FROM split_link WHERE link = ?1")?;
    let row = statement.query_row([link.0], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    let Some((side, component)) = row else { return Ok(None) };
    let side = Side::from_word(&side).filter(|side| *side != Side::Excluded);
    let side = side.ok_or_else(|| StoreError::Corrupt("a side of the split has no known name".to_owned()))?;
    Ok(Some(Split { side, component }))
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
