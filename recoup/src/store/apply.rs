//! Applying a plan: the rows of one batch, inside one transaction.

use rusqlite::{Connection, OptionalExtension as _, Statement, ToSql, params};

use super::pack::{Frame, PackCache};
use super::plan::{NewRun, Plan, Ref, Waiting, tag};
use super::revisions::Fate;
use super::{StoreError, facets, join, load, sketches, varint, verdicts};
use crate::id::{TrajectoryId, TrajectoryKey};
use crate::task::goal_hash;
use crate::trajectory::Sealed;
use crate::verdict::{Content, Label, Producer, Verdict};

/// Rows that one statement adds.
const ROWS: usize = 32;

/// First free ids of the tables that a plan writes to.
struct Ids {
    pack: i64,
    blob: i64,
    node: i64,
}

impl Ids {
    fn blob(&self, blob: Ref) -> i64 {
        match blob {
            Ref::Stored(id) => id,
            Ref::New(index) => self.blob + index as i64,
        }
    }

    fn node(&self, node: Ref) -> i64 {
        match node {
            Ref::Stored(id) => id,
            Ref::New(index) => self.node + index as i64,
        }
    }
}

/// Writes a plan; the caller commits. Returns the ids of the messages of the run in which it ends.
pub(super) fn apply(
    connection: &Connection,
    plan: &mut Plan,
    batch: &[Waiting],
    now: &str,
) -> Result<Vec<i64>, StoreError> {
    let ids = Ids {
        pack: next_id(connection, "pack")?,
        blob: next_id(connection, "blob")?,
        node: next_id(connection, "node")?,
    };
    put_blobs(connection, plan, &ids)?;
    insert(connection, "node", &["parent", "hash", "blob"], &plan.nodes, |row, new| {
        row.set(new.parent.map_or(0, |parent| ids.node(parent)))?;
        row.set(new.hash.0.0)?;
        row.set(ids.blob(new.blob))
    })?;
    let mut media = connection.prepare_cached("INSERT INTO media VALUES(?1, ?2)")?;
    for (hash, blob) in &plan.media {
        media.execute((hash.0, ids.blob(Ref::New(*blob))))?;
    }
    let mut superseding = Vec::new();
    for (waiting, (fate, run)) in batch.iter().zip(&plan.runs) {
        if let (Fate::New { base, ordinal, latest, .. }, Some(run)) = (*fate, run) {
            superseding.extend(put_run(
                connection,
                &ids,
                &waiting.sealed,
                run,
                (base, ordinal, latest),
                now,
            )?);
        }
    }
    // After the rows: where another thread compresses, it does the rest meanwhile.
    put_packs(connection, plan.packer.finish()?, ids.pack)?;
    for (older, newer) in superseding {
        carry_labels(connection, older, newer)?;
    }
    Ok(plan.begun.iter().flatten().map(|node| ids.node(*node)).collect())
}

/// Parameters of a statement, set one after the other.
struct Row<'s, 'c> {
    statement: &'s mut Statement<'c>,
    next: usize,
}

impl Row<'_, '_> {
    fn set(&mut self, value: impl ToSql) -> rusqlite::Result<()> {
        self.next += 1;
        self.statement.raw_bind_parameter(self.next, value)
    }
}

/// Inserts rows, many with one statement: to start one takes longer than to add a row. SQLite numbers
/// them on from the table's highest id, as [`Ids`] does; given an id or the right to abort, it would
/// note for every statement how to undo it, and a failure ends the whole transaction anyway.
fn insert<T>(
    connection: &Connection,
    table: &str,
    columns: &[&str],
    rows: &[T],
    set: impl Fn(&mut Row, &T) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let row = format!("({})", vec!["?"; columns.len()].join(","));
    let (together, single) = rows.as_chunks::<ROWS>();
    for (rows, count) in [(together.as_flattened(), ROWS), (single, 1)] {
        let values = vec![row.as_str(); count].join(",");
        let sql = format!("INSERT OR FAIL INTO {table}({}) VALUES{values}", columns.join(","));
        let mut statement = connection.prepare_cached(&sql)?;
        for rows in rows.chunks(count) {
            let mut parameters = Row { statement: &mut statement, next: 0 };
            rows.iter().try_for_each(|row| set(&mut parameters, row))?;
            statement.raw_execute()?;
        }
    }
    Ok(())
}

/// The first id of a table that was not given yet.
pub(super) fn next_id(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    let mut statement =
        connection.prepare_cached(&format!("SELECT ifnull(max(rowid), 0) + 1 FROM {table}"))?;
    statement.query_row([], |row| row.get(0))
}

/// Writes packs under ids that follow each other.
pub(super) fn put_packs(connection: &Connection, frames: &[Frame], first: i64) -> rusqlite::Result<()> {
    let mut pack = connection.prepare_cached("INSERT INTO pack VALUES(?1, ?2, ?3, ?4)")?;
    for (index, frame) in frames.iter().enumerate() {
        pack.execute((first + index as i64, frame.kind as i64, frame.raw_len as i64, &frame.data))?;
    }
    Ok(())
}

fn put_blobs(connection: &Connection, plan: &Plan, ids: &Ids) -> rusqlite::Result<()> {
    insert(connection, "blob", &["pack", "offset", "len", "hash"], &plan.blobs, |row, new| {
        row.set(ids.pack + new.place.pack as i64)?;
        row.set(new.place.offset as i64)?;
        row.set(new.place.len as i64)?;
        row.set(new.hash.map(|hash| hash.0))
    })?;
    // Another body with the same 64 bits keeps the entry; this one is then stored again when it recurs.
    let mut entry = connection.prepare_cached("INSERT OR IGNORE INTO blob_tag VALUES(?1, ?2)")?;
    for (index, new) in plan.blobs.iter().enumerate() {
        if let Some(hash) = new.hash {
            entry.execute((tag(hash), ids.blob(Ref::New(index))))?;
        }
    }
    Ok(())
}

/// A run that is superseded, and the one that does it.
type Superseding = (i64, (i64, TrajectoryId));

fn put_run(
    connection: &Connection,
    ids: &Ids,
    sealed: &Sealed,
    run: &NewRun,
    (base, ordinal, latest): (TrajectoryKey, u64, bool),
    now: &str,
) -> Result<Option<Superseding>, StoreError> {
    let head = &sealed.head;
    let superseded = if latest { supersede(connection, base, ordinal)? } else { None };
    let seq = next_id(connection, "trajectory")?;
    let goal = (!head.task.goal.trim().is_empty()).then(|| goal_hash(&head.task.goal).0);
    let agents: Vec<&str> = head.agents.iter().map(|agent| agent.name.as_str()).collect();
    let outcome = head.outcome();
    let mut statement = connection.prepare_cached(
        "INSERT INTO trajectory(seq, id, key, base, ordinal, latest, format, source, sha256, span_start,
           span_end, native_id, task, derived, goal, origin, outcome, score, nodes, steps, tool_calls,
           tool_results, agents, model, harness, trial)
         VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20,
           ?21, ?22, ?23, ?24, ?25, ?26)",
    )?;
    statement.execute(params![
        seq,
        head.id.0.0,
        head.key.0.0,
        base.0.0,
        ordinal as i64,
        latest,
        head.source.format,
        source_id(connection, &head.source.uri)?,
        head.source.sha256,
        head.source.span.map(|span| span.start as i64),
        head.source.span.map(|span| span.end as i64),
        sealed.native_id,
        head.task.key.0,
        head.task.derived,
        goal,
        head.origin.as_ref().map(|origin| origin.trajectory.0.0),
        outcome.status.as_str(),
        outcome.score,
        sealed.bodies.len() as i64,
        sealed.step_count as i64,
        sealed.tool_call_count as i64,
        sealed.tool_result_count as i64,
        agents.join("\n"),
        head.model(agents.first().copied().unwrap_or_default()),
        head.harness.as_ref().map(|harness| &harness.name),
        head.trial,
    ])?;
    let main_leaf = head.leaves.get(head.main_leaf).and_then(|leaf| leaf.node);
    let nodes: Vec<i64> = run.nodes.iter().map(|node| ids.node(*node)).collect();
    let mut content = connection.prepare_cached("INSERT INTO content VALUES(?1, ?2, ?3, ?4)")?;
    content.execute(params![
        seq,
        ids.blob(Ref::New(run.record)),
        varint::encode(nodes.iter().copied()),
        main_leaf.and_then(|position| nodes.get(position)),
    ])?;
    let mut media = connection.prepare_cached("INSERT OR IGNORE INTO trajectory_media VALUES(?1, ?2)")?;
    for (hash, _) in &sealed.media {
        media.execute((seq, hash.0))?;
    }
    join::put_aliases(connection, seq, sealed)?;
    sketches::put(connection, seq, sealed.sketch.as_ref(), &head.task)?;
    for label in &sealed.labels {
        verdicts::put(connection, seq, &join::verdict(head.id, label.clone(), now))?;
    }
    Ok(superseded.map(|older| (older, (seq, head.id))))
}

/// Makes room for a newest revision and returns the one that was it.
fn supersede(connection: &Connection, base: TrajectoryKey, ordinal: u64) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached(
        "UPDATE trajectory SET latest = 0 WHERE base = ?1 AND ordinal = ?2 AND latest RETURNING seq",
    )?;
    statement.query_row((base.0.0, ordinal as i64), |row| row.get(0)).optional()
}

/// Carries what was told of a run over to its newest revision. An outcome holds for the messages that it was
/// given for and no others; what was only assumed for want of an outcome is not carried.
fn carry_labels(
    connection: &Connection,
    older: i64,
    (seq, id): (i64, TrajectoryId),
) -> Result<(), StoreError> {
    let labels = verdicts::of_kind(connection, older, "label")?;
    if labels.is_empty() {
        return Ok(());
    }
    let same = load::node_ids(connection, older)? == load::node_ids(connection, seq)?;
    // The last put counts among equals.
    for Verdict { producer, evidence, content, created_at, .. } in labels.into_iter().rev() {
        let Content::Label(mut label) = content else { continue };
        if !same {
            (label.outcome, label.score) = (None, None);
        }
        if producer != Producer::assumption() && label != Label::default() {
            let carried = Verdict::new(id, producer, evidence, Content::Label(label), &created_at);
            verdicts::put(connection, seq, &carried)?;
        }
    }
    // A cache of its own: the run's pack is not committed yet.
    facets::refresh(connection, &mut PackCache::default(), seq)
}

fn source_id(connection: &Connection, uri: &str) -> Result<i64, StoreError> {
    let mut known = connection.prepare_cached("SELECT id FROM source WHERE uri = ?1")?;
    if let Some(id) = known.query_row([uri], |row| row.get(0)).optional()? {
        return Ok(id);
    }
    connection.prepare_cached("INSERT INTO source(uri) VALUES(?1)")?.execute([uri])?;
    Ok(connection.last_insert_rowid())
}
