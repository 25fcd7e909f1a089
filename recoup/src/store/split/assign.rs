//! Sides are given when an import finishes, and follow labels.

use rusqlite::Connection;

use super::links::{Ties, known_of_strict, near_ties, strict_links};
use super::{side, stored_side};
use crate::failpoint::Failpoint;
use crate::id::{Hash, TrajectoryId};
use crate::store::components::{Components, Known};
use crate::store::{Store, StoreError, sketches, verdicts};
use crate::verdict::{Content, Producer, Side, Split, Verdict};

/// Who gives a run its first side.
const IMPORT: &str = "import";
/// Rows in one commit.
const BATCH: usize = 1000;

/// A run without a side.
struct Unsplit {
    seq: i64,
    id: TrajectoryId,
    task: String,
    links: Vec<Hash>,
}

/// Gives every run that has no side its side and returns how many are excluded.
pub(in crate::store) fn assign(store: &Store, now: &str) -> Result<u64, StoreError> {
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

/// Follows a run that labels have moved to another task. A task without a side takes the run's.
///
/// The run's own side is the one given at import, whatever labels did to it since, so that a label
/// that is taken back brings the run back.
pub(in crate::store) fn follow(
    connection: &Connection,
    seq: i64,
    task: &str,
    now: &str,
) -> Result<(), StoreError> {
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
