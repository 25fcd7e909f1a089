//! Joining: labels that stand in other files find the runs they name, whichever comes first.
//!
//! A label file names a run by the run's own id, or only by its task (the whole key, its last
//! segment, or a question id that the source keeps beside it). The run's own id wins: only where no
//! run has it does the label go to every run of the task.

use rusqlite::Connection;

use super::pack::PackCache;
use super::{Store, StoreError, load, verdicts};
use crate::failpoint::Failpoint;
use crate::id::{Hash, TrajectoryId};
use crate::importers::{LooseLabel, message_of_span};
use crate::json::Json;
use crate::trajectory::{Record, Sealed};
use crate::verdict::{Content, Producer, ReferenceLabel, Verdict};
use crate::warning::Loss;

/// Strength of a run's own id and of its task's names.
const OWN: i64 = 0;
const TASK: i64 = 1;

/// Fields under which sources keep the id of the question that a run answers.
const QUESTION_FIELDS: [&str; 2] = ["question_ID", "question_id"];

/// Fields in which label files count the message they mean.
const STEP_FIELDS: [&str; 3] = ["step_number", "mistake_step", "step"];

/// Fields in which label files name the span they mean.
const SPAN_FIELDS: [&str; 3] = ["location", "span_id", "observation_id"];

impl Store {
    /// How many runs label files name that are not in the project.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn labels_without_run(&self) -> Result<u64, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT count(DISTINCT run) FROM loose_label WHERE run NOT IN (SELECT name FROM alias)",
        )?;
        Ok(statement.query_row([], |row| row.get::<_, i64>(0))?.unsigned_abs())
    }

    /// The first of those runs, by the names that the label files give them.
    ///
    /// # Errors
    /// When the project cannot be read.
    pub fn names_without_run(&self, most: u32) -> Result<Vec<String>, StoreError> {
        let mut statement = self.connection.prepare_cached(
            "SELECT DISTINCT run FROM loose_label WHERE run NOT IN (SELECT name FROM alias) ORDER BY run LIMIT ?1",
        )?;
        let names = statement.query_map([most], |row| row.get(0))?;
        Ok(names.collect::<Result<_, _>>()?)
    }

    /// The latest runs that a label or outcome file may mean by a name: those whose native id it is,
    /// else those whose task or question it names; in import order.
    pub fn named(&self, name: &str) -> Result<Vec<TrajectoryId>, StoreError> {
        let mut ids = Vec::new();
        let mut statement = self.connection.prepare_cached("SELECT id FROM trajectory WHERE seq = ?1")?;
        for seq in named(&self.connection, name)? {
            ids.push(TrajectoryId(Hash(statement.query_row([seq], |row| row.get(0))?)));
        }
        Ok(ids)
    }
}

/// The verdict that a label of a source is.
pub(super) fn verdict(subject: TrajectoryId, label: ReferenceLabel, now: &str) -> Verdict {
    Verdict::new(subject, Producer::rules("import", 1), Vec::new(), Content::ReferenceLabel(label), now)
}

/// Remembers the names of a run.
pub(super) fn put_aliases(connection: &Connection, seq: i64, sealed: &Sealed) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("INSERT OR IGNORE INTO alias VALUES(?1, ?2, ?3)")?;
    if let Some(native) = &sealed.native_id {
        statement.execute((native, OWN, seq))?;
    }
    let task = &sealed.head.task;
    if !task.derived {
        statement.execute((&task.key.0, TASK, seq))?;
        if let Some((_, last)) = task.key.0.rsplit_once('/') {
            statement.execute((last, TASK, seq))?;
        }
    }
    for field in QUESTION_FIELDS {
        if let Some(question) = sealed.head.extra.get(field) {
            statement.execute((text_of(question), TASK, seq))?;
        }
    }
    Ok(())
}

/// Keeps labels whose runs are in other files.
pub(super) fn keep_labels(connection: &Connection, labels: &[LooseLabel]) -> Result<(), StoreError> {
    let mut statement =
        connection.prepare_cached("INSERT OR IGNORE INTO loose_label(run, body) VALUES(?1, ?2)")?;
    for label in labels {
        let body = serde_json::to_string(&label.label)
            .map_err(|error| StoreError::Corrupt(format!("a label cannot be written: {error}")))?;
        statement.execute((&label.run, body))?;
    }
    Ok(())
}

/// Gives every kept label to the runs it names, those that have it left out; returns what labels say and
/// their runs do not have.
pub(super) fn join_labels(store: &Store, now: &str) -> Result<Vec<Loss>, StoreError> {
    let connection = &store.connection;
    let (mut found, mut losses) = (Vec::new(), Vec::new());
    {
        let mut labels = connection.prepare_cached("SELECT run, body FROM loose_label ORDER BY id")?;
        let mut rows = labels.query([])?;
        let mut id_of = connection.prepare_cached("SELECT id FROM trajectory WHERE seq = ?1")?;
        let mut packs = store.packs.borrow_mut();
        while let Some(row) = rows.next()? {
            let (run, body): (String, String) = (row.get(0)?, row.get(1)?);
            let label: ReferenceLabel = serde_json::from_str(&body)
                .map_err(|error| StoreError::Corrupt(format!("a label cannot be read: {error}")))?;
            for seq in named(connection, &run)? {
                let subject = TrajectoryId(Hash(id_of.query_row([seq], |row| row.get(0))?));
                let (label, lost) = located(connection, &mut packs, seq, label.clone())?;
                let verdict = verdict(subject, label, now);
                if !verdicts::is_known(connection, &verdict)? {
                    found.push((seq, verdict));
                    losses.extend(lost);
                }
            }
        }
    }
    for batch in found.chunks(1000) {
        let transaction = store.write()?;
        for (seq, verdict) in batch {
            verdicts::put(&transaction, *seq, verdict)?;
        }
        transaction.commit(Failpoint::Join)?;
    }
    Ok(losses)
}

fn named(connection: &Connection, name: &str) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(
        "SELECT strength, seq FROM alias JOIN trajectory ON seq = alias.trajectory
         WHERE name = ?1 AND latest ORDER BY strength, seq",
    )?;
    let rows = statement.query_map([name], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))?;
    let rows: Vec<(i64, i64)> = rows.collect::<Result<_, _>>()?;
    let strongest = rows.first().map(|(strength, _)| *strength);
    let mut runs: Vec<i64> =
        rows.into_iter().filter(|(strength, _)| Some(*strength) == strongest).map(|(_, seq)| seq).collect();
    runs.dedup();
    Ok(runs)
}

/// The label with the node it means, or what it says of a message that the run does not have: the message of
/// the main branch at its number, counted from the label's own base, or that of the span it names.
fn located(
    connection: &Connection,
    packs: &mut PackCache,
    seq: i64,
    mut label: ReferenceLabel,
) -> Result<(ReferenceLabel, Option<Loss>), StoreError> {
    let native = label.native.to_value();
    let span = SPAN_FIELDS.iter().find_map(|field| Some((*field, native.get(*field)?.as_str()?)));
    let number = step_number(&native);
    if label.node.is_some() || (number.is_none() && span.is_none()) {
        return Ok((label, None));
    }
    let record = load::parsed_record(connection, packs, seq)?;
    if let Some(index) = number.and_then(|number| number.checked_sub(u64::from(label.index_base))) {
        label.node = usize::try_from(index).ok().and_then(|index| main_branch(&record).get(index).copied());
    }
    let messages = || record.nodes.iter().map(|node| &node.occurrence);
    label.node = label.node.or_else(|| message_of_span(messages(), span?.1));
    let lost = label.node.is_none().then(|| {
        let field = span.map_or("step", |(field, _)| field);
        Loss::new(
            &label.source,
            field,
            "the run has no such message; the label stays with the run as a whole",
        )
    });
    Ok((label, lost))
}

fn main_branch(record: &Record) -> Vec<usize> {
    let mut positions = Vec::new();
    let mut next = record.head.leaves.get(record.head.main_leaf).and_then(|leaf| leaf.node);
    while let Some((position, node)) = next.and_then(|at| record.nodes.get(at).map(|node| (at, node))) {
        positions.push(position);
        // A parent stands before its child, so this ends.
        next = node.parent.filter(|parent| *parent < position);
    }
    positions.reverse();
    positions
}

/// The message number in a label: a number, digits, a field of an object; of several failures in one
/// label, the root cause's.
fn step_number(native: &serde_json::Value) -> Option<u64> {
    match native {
        serde_json::Value::Number(number) => number.as_u64(),
        serde_json::Value::String(text) => text.trim().parse().ok(),
        serde_json::Value::Object(fields) => {
            let own = STEP_FIELDS.iter().find_map(|field| step_number(fields.get(*field)?));
            own.or_else(|| {
                let cause = fields.get("root_cause")?.get("failure_id")?;
                let failures = fields.get("failures")?.as_array()?;
                step_number(failures.iter().find(|failure| failure.get("failure_id") == Some(cause))?)
            })
        }
        _ => None,
    }
}

fn text_of(value: &Json) -> String {
    match value.to_value() {
        serde_json::Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::step_number;

    #[test]
    fn labels_count_in_several_forms() {
        assert_eq!(step_number(&json!(4)), Some(4));
        assert_eq!(step_number(&json!({"mistake_step": "3"})), Some(3));
        let several = json!({
            "failures": [{"failure_id": 1, "step_number": 9}, {"failure_id": 2, "step_number": 5}],
            "root_cause": {"failure_id": 2},
        });
        assert_eq!(step_number(&several), Some(5));
        assert_eq!(step_number(&json!(-1)), None);
        assert_eq!(step_number(&json!({"reason": "7"})), None);
    }
}
