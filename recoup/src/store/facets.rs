//! Facets: the current verdicts of a run, copied into its row so that listing reads one table.

use rusqlite::{Connection, params};

use super::pack::PackCache;
use super::{StoreError, load, pending, split, verdicts};
use crate::task::EnvironmentRef;
use crate::trajectory::{Outcome, Record, Status, Trajectory};
use crate::verdict::{Content, Label, Verdict};

/// What the labels of a run say together: of each field, the word of the most trusted label that has
/// it.
#[derive(Default)]
pub(super) struct Labels {
    merged: Label,
    /// Who gave the outcome.
    judge: String,
    /// When the most trusted of them was given.
    given_at: String,
}

/// The labels of a run.
pub(super) fn labels(connection: &Connection, seq: i64) -> Result<Labels, StoreError> {
    let mut labels = Labels::default();
    for verdict in verdicts::of_kind(connection, seq, "label")? {
        labels.add(&verdict);
    }
    Ok(labels)
}

impl Labels {
    /// Adds a label that is trusted less than those before it.
    fn add(&mut self, verdict: &Verdict) {
        let Content::Label(label) = &verdict.content else { return };
        if self.given_at.is_empty() {
            self.given_at.clone_from(&verdict.created_at);
        }
        let merged = &mut self.merged;
        if merged.outcome.is_none() && label.outcome.is_some() {
            (merged.outcome, merged.score) = (label.outcome, label.score);
            self.judge.clone_from(&verdict.producer.name);
        }
        if merged.environment.is_none() && label.environment.is_some() {
            merged.environment.clone_from(&label.environment);
            merged.reset.clone_from(&label.reset);
        }
        merged.task = merged.task.take().or_else(|| label.task.clone());
        merged.note = merged.note.take().or_else(|| label.note.clone());
    }

    /// Puts what the labels say in the place of what the source says.
    pub(super) fn apply(&self, trajectory: &mut Trajectory) {
        let main = trajectory.main_leaf;
        if let (Some(leaf), Some(status)) = (trajectory.leaves.get_mut(main), self.merged.outcome) {
            leaf.outcome = Outcome {
                status,
                score: self.merged.score,
                termination: leaf.outcome.termination.take(),
                evidence: format!("{} = {}", self.judge, status.as_str()),
            };
        }
        if let Some(task) = &self.merged.task {
            trajectory.task.key.0.clone_from(task);
            trajectory.task.derived = false;
        }
        if let Some(name) = &self.merged.environment {
            let reset = self.merged.reset.clone();
            trajectory.environment = Some(EnvironmentRef { name: name.clone(), version: None, reset });
        }
    }
}

/// Copies the current verdicts of a run into its row. A label that moves the run to another task or
/// gives it another outcome makes the runs of its tasks pending.
pub(super) fn refresh(connection: &Connection, packs: &mut PackCache, seq: i64) -> Result<(), StoreError> {
    let mut record = load::parsed_record(connection, packs, seq)?;
    let labels = labels(connection, seq)?;
    labels.apply(&mut record.head);
    put_outcome(connection, seq, &record.head, &labels)?;

    // A solved run has no failure to blame anyone for, whatever was decided while it counted as one.
    let failed = record.head.outcome().status != Status::Success;
    let current = |kind| if failed { verdicts::current(connection, seq, kind) } else { Ok(None) };
    let blame = match current("blame")?.map(|verdict| verdict.content) {
        Some(Content::Blame(blame)) => Some(blame),
        _ => None,
    };
    let class = match current("failure_class")?.map(|verdict| verdict.content) {
        Some(Content::FailureClass(class)) => Some(class),
        _ => None,
    };
    let decisive = match current("diagnosis")?.map(|verdict| verdict.content) {
        Some(Content::Diagnosis(diagnosis)) => Some(diagnosis.decisive_node),
        _ => None,
    };
    let mut statement = connection.prepare_cached(
        "UPDATE trajectory SET blame = ?2, suspected = ?3, class = ?4, severity = ?5, decisive_node = ?6,
           decisive_step = ?7 WHERE seq = ?1",
    )?;
    statement.execute(params![
        seq,
        blame.as_ref().map(|blame| blame.party.as_str()),
        blame.as_ref().is_some_and(|blame| blame.suspected),
        class.as_ref().map(|class| class.class.as_str()),
        class.as_ref().map(|class| class.severity),
        decisive.map(|node| node as i64),
        decisive.and_then(|node| step_of(&record, node)).map(|step| step as i64),
    ])?;
    Ok(())
}

fn put_outcome(
    connection: &Connection,
    seq: i64,
    head: &Trajectory,
    labels: &Labels,
) -> Result<(), StoreError> {
    let outcome = head.outcome();
    let row = (outcome.status.as_str(), outcome.score, &head.task.key.0, head.task.derived);
    let mut before =
        connection.prepare_cached("SELECT outcome, score, task, derived FROM trajectory WHERE seq = ?1")?;
    let was: (String, Option<f64>, String, bool) =
        before.query_row([seq], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
    if (was.0.as_str(), was.1, &was.2, was.3) != row {
        pending::reopen(connection, &was.2)?;
        pending::reopen(connection, row.2)?;
    }
    let mut statement = connection.prepare_cached(
        "UPDATE trajectory SET outcome = ?2, score = ?3, task = ?4, derived = ?5, note = ?6 WHERE seq = ?1",
    )?;
    statement.execute((seq, row.0, row.1, row.2, row.3, labels.merged.note.as_deref()))?;
    if was.2 != *row.2 {
        split::follow(connection, seq, row.2, &labels.given_at)?;
    }
    Ok(())
}

/// 0-based step of a node on the main branch, where it is a sampled node of it.
fn step_of(record: &Record, position: usize) -> Option<usize> {
    let mut next = record.head.leaves.get(record.head.main_leaf)?.node;
    let mut before = 0;
    let mut found = false;
    while let Some(at) = next {
        let node = record.nodes.get(at)?;
        if at < position {
            before += usize::from(node.occurrence.sampled);
        }
        found |= at == position && node.occurrence.sampled;
        next = node.parent;
    }
    found.then_some(before)
}
