//! Listing: rows of runs, filtered and paged, in import order.

use std::collections::BTreeSet;

use rusqlite::{OptionalExtension as _, Row as SqlRow, ToSql, params_from_iter};
use serde::Serialize;

use super::{Store, StoreError};
use crate::id::{Hash, TaskKey, TrajectoryId, TrajectoryKey};

/// Ids that an ambiguous prefix is explained with.
const AMBIGUOUS_MAX: usize = 10;

/// Which runs to list; every field that is set must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// `success`, `failure` or `unknown`, labels applied.
    pub outcome: Option<String>,
    /// Party blamed (`agent`).
    pub blame: Option<String>,
    /// Failure class (`tool_error`).
    pub class: Option<String>,
    /// Format (`tau-bench`).
    pub format: Option<String>,
    /// Name of an agent that takes part.
    pub agent: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Task key.
    pub task: Option<String>,
    /// Harness.
    pub harness: Option<String>,
    /// Side of the split (`train`).
    pub split: Option<String>,
    /// Part of the source's path.
    pub uri: Option<String>,
    /// Text that occurs, as written, in a message (see [`Store::search_text`]).
    pub text: Option<String>,
    /// Superseded revisions too.
    pub all_revisions: bool,
}

/// A window on a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Rows to skip.
    pub offset: u64,
    /// Most rows to return.
    pub limit: u64,
}

impl Page {
    /// Everything.
    pub const ALL: Self = Self { offset: 0, limit: i64::MAX as u64 };
}

/// A run as listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Row {
    /// Id of this revision.
    pub id: TrajectoryId,
    /// The run.
    pub key: TrajectoryKey,
    /// True where a longer revision is stored: verdicts on this one are stale.
    pub superseded: bool,
    /// Importer's format name.
    pub format: String,
    /// Where it was read.
    pub uri: String,
    /// The harness's own run id.
    pub native_id: Option<String>,
    /// Task key, labels applied.
    pub task: TaskKey,
    /// True where the task is known only by its goal.
    pub derived: bool,
    /// Outcome, labels applied.
    pub outcome: String,
    /// The scorer's number.
    pub score: Option<f64>,
    /// Party blamed; none for a success.
    pub blame: Option<String>,
    /// True where the failure is suspected, not scored.
    pub suspected: bool,
    /// Failure class.
    pub class: Option<String>,
    /// Severity, 0 to 1.
    pub severity: Option<f64>,
    /// Messages.
    pub nodes: u64,
    /// Sampled turns.
    pub steps: u64,
    /// Tool calls.
    pub tool_calls: u64,
    /// Tool results.
    pub tool_results: u64,
    /// Position of the decisive node in the trajectory.
    pub decisive_node: Option<u64>,
    /// Its 0-based step on the main branch.
    pub decisive_step: Option<u64>,
    /// First agent.
    pub agent: Option<String>,
    /// Its model.
    pub model: Option<String>,
    /// Harness.
    pub harness: Option<String>,
    /// Which of several attempts.
    pub trial: Option<i64>,
    /// Side of the split; none until the import that brought it has finished.
    pub split: Option<String>,
    /// A person's note.
    pub note: Option<String>,
}

const COLUMNS: &str = "trajectory.id, key, latest, format, uri, native_id, task, derived, outcome, score, blame, \
    suspected, class, severity, nodes, steps, tool_calls, tool_results, decisive_node, decisive_step, agents, \
    model, harness, trial, split, note";
const TABLES: &str = "trajectory JOIN source ON source.id = trajectory.source";

impl Store {
    /// One page of the runs that pass a filter, in import order; latest revisions only, unless the
    /// filter asks for all.
    pub fn list(&self, filter: &Filter, page: Page) -> Result<Vec<Row>, StoreError> {
        let (condition, values) = condition(filter);
        if filter.text.is_some() {
            let seqs = self.matching(filter)?;
            let window = seqs.into_iter().skip(to_usize(page.offset)).take(to_usize(page.limit));
            let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE seq = ?1");
            let mut statement = self.connection.prepare_cached(&sql)?;
            return window.map(|seq| Ok(statement.query_row([seq], row)?)).collect();
        }
        let sql = format!(
            "SELECT {COLUMNS} FROM {TABLES} WHERE {condition} ORDER BY seq LIMIT {} OFFSET {}",
            to_i64(page.limit),
            to_i64(page.offset)
        );
        let mut statement = self.connection.prepare(&sql)?;
        let rows = statement.query_map(params_from_iter(values), row)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// How many runs pass a filter.
    pub fn count(&self, filter: &Filter) -> Result<u64, StoreError> {
        let (condition, values) = condition(filter);
        if filter.text.is_some() {
            return Ok(self.matching(filter)?.len() as u64);
        }
        let sql = format!("SELECT count(*) FROM {TABLES} WHERE {condition}");
        let count: i64 = self.connection.query_row(&sql, params_from_iter(values), |row| row.get(0))?;
        Ok(count as u64)
    }

    /// The row of one run.
    pub fn row(&self, id: TrajectoryId) -> Result<Row, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM {TABLES} WHERE trajectory.id = ?1");
        let mut statement = self.connection.prepare_cached(&sql)?;
        let found = statement.query_row([id.0.0], row).optional()?;
        found.ok_or_else(|| StoreError::NotFound { prefix: id.to_string() })
    }

    /// The run that a prefix of hexadecimal digits names: among all revisions, or, where several
    /// match, among the latest.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] and [`StoreError::Ambiguous`].
    pub fn resolve(&self, prefix: &str) -> Result<TrajectoryId, StoreError> {
        let not_found = || StoreError::NotFound { prefix: prefix.to_owned() };
        let digits = prefix.trim().to_ascii_lowercase();
        if digits.is_empty() || digits.len() > 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(not_found());
        }
        let bound = |fill: &str| Hash::from_hex(&format!("{digits}{}", fill.repeat(64 - digits.len())));
        let (first, last) = bound("0").zip(bound("f")).ok_or_else(not_found)?;
        let mut statement = self.connection.prepare_cached(
            "SELECT id, latest FROM trajectory WHERE id BETWEEN ?1 AND ?2 ORDER BY latest DESC, seq LIMIT ?3",
        )?;
        let rows = statement.query_map((first.0, last.0, AMBIGUOUS_MAX as i64), |row| {
            Ok((TrajectoryId(Hash(row.get(0)?)), row.get(1)?))
        })?;
        let found: Vec<(TrajectoryId, bool)> = rows.collect::<Result<_, _>>()?;
        match found.as_slice() {
            [] => Err(not_found()),
            [(id, _)] | [(id, true), (_, false), ..] => Ok(*id),
            _ => Err(StoreError::Ambiguous {
                prefix: prefix.to_owned(),
                matches: found.iter().map(|(id, _)| *id).collect(),
            }),
        }
    }

    /// Integer ids of the runs that pass a filter with a text, in import order.
    fn matching(&self, filter: &Filter) -> Result<Vec<i64>, StoreError> {
        let (condition, values) = condition(filter);
        let needle = filter.text.as_deref().unwrap_or_default();
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let hits: BTreeSet<i64> = self.search_seqs(needle, threads)?;
        let sql = format!("SELECT seq FROM {TABLES} WHERE {condition} ORDER BY seq");
        let mut statement = self.connection.prepare(&sql)?;
        let seqs = statement.query_map(params_from_iter(values), |row| row.get(0))?;
        let seqs: Vec<i64> = seqs.collect::<Result<_, _>>()?;
        Ok(seqs.into_iter().filter(|seq| hits.contains(seq)).collect())
    }
}

/// The columns' part of a filter, with its values in order.
fn condition(filter: &Filter) -> (String, Vec<&dyn ToSql>) {
    let fields = [
        ("outcome = ?", &filter.outcome),
        ("blame = ?", &filter.blame),
        ("class = ?", &filter.class),
        ("format = ?", &filter.format),
        ("instr(char(10) || agents || char(10), char(10) || ? || char(10)) > 0", &filter.agent),
        ("model = ?", &filter.model),
        ("task = ?", &filter.task),
        ("harness = ?", &filter.harness),
        ("split = ?", &filter.split),
        ("instr(uri, ?) > 0", &filter.uri),
    ];
    let mut conditions = vec![if filter.all_revisions { "1" } else { "latest" }];
    let mut values: Vec<&dyn ToSql> = Vec::new();
    for (condition, value) in fields {
        if let Some(value) = value {
            conditions.push(condition);
            values.push(value);
        }
    }
    (conditions.join(" AND "), values)
}

fn row(row: &SqlRow<'_>) -> rusqlite::Result<Row> {
    let count = |index| row.get::<_, i64>(index).map(|count| count as u64);
    let position = |index| row.get::<_, Option<i64>>(index).map(|at| at.map(|at| at as u64));
    let agents: String = row.get(20)?;
    Ok(Row {
        id: TrajectoryId(Hash(row.get(0)?)),
        key: TrajectoryKey(Hash(row.get(1)?)),
        superseded: !row.get::<_, bool>(2)?,
        format: row.get(3)?,
        uri: row.get(4)?,
        native_id: row.get(5)?,
        task: TaskKey(row.get(6)?),
        derived: row.get(7)?,
        outcome: row.get(8)?,
        score: row.get(9)?,
        blame: row.get(10)?,
        suspected: row.get(11)?,
        class: row.get(12)?,
        severity: row.get(13)?,
        nodes: count(14)?,
        steps: count(15)?,
        tool_calls: count(16)?,
        tool_results: count(17)?,
        decisive_node: position(18)?,
        decisive_step: position(19)?,
        agent: agents.split('\n').next().filter(|agent| !agent.is_empty()).map(str::to_owned),
        model: row.get(21)?,
        harness: row.get(22)?,
        trial: row.get(23)?,
        split: row.get(24)?,
        note: row.get(25)?,
    })
}

fn to_i64(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn to_usize(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
