//! Replies: what models answered, kept so that no question is paid for twice.
//!
//! Answers come from many threads while a command works with its own connection, so they have one of their
//! own. Each is committed before anybody sees it; those that come while one is being committed share the next
//! commit, for a commit costs the disk more than an answer. An answer is forgotten with the run it is about; one that is
//! about no run goes with the first run that is forgotten, for nobody knows what it quotes.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior};
use serde::Serialize;

use super::access::Access;
use super::{FILE, LOG_BYTES, PAGE_BYTES, Store, StoreError, prepare};
use crate::failpoint::{self, Failpoint};
use crate::id::{Hash, TrajectoryId};

/// An answer to be kept.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'a> {
    /// Hash of the question and of who was asked.
    pub key: &'a Hash,
    /// The run it is about.
    pub run: Option<TrajectoryId>,
    /// The stage that asked.
    pub stage: &'a str,
    /// The model.
    pub model: &'a str,
    /// Tokens of the question.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// What it cost, in picodollars; `None` without a price.
    pub cost: Option<u64>,
    /// How long it took.
    pub took_ms: u64,
    /// The answer, as JSON.
    pub body: &'a str,
}

/// What the kept answers of one model for one stage took, over the whole life of the project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StageCost {
    /// The stage.
    pub stage: String,
    /// The model.
    pub model: String,
    /// Answers.
    pub replies: u64,
    /// Tokens of questions.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub completion_tokens: u64,
    /// Picodollars; `None` where no answer had a price.
    pub cost_picodollars: Option<u64>,
    /// Time, all answers together.
    pub took_ms: u64,
}

/// The answers of a project, for any number of threads.
pub struct Replies {
    connection: Mutex<Connection>,
    waiting: Mutex<Waiting>,
}

/// Answers that wait to be committed, each with its ticket.
#[derive(Default)]
struct Waiting {
    rows: Vec<(u64, Row)>,
    last_ticket: u64,
    /// Whoever has a ticket up to this one and has not heard of an error is safe.
    committed: u64,
}

/// An answer as it is stored.
struct Row {
    key: Hash,
    run: Option<TrajectoryId>,
    stage: String,
    model: String,
    body: String,
    counts: (i64, i64, Option<i64>, i64),
}

impl Store {
    /// The answers kept in this project.
    ///
    /// # Errors
    /// [`StoreError::ReadOnly`] or [`StoreError::Newer`] where nothing can be kept.
    pub fn replies(&self) -> Result<Replies, StoreError> {
        self.check_writable()?;
        let connection = Access::Write.open(&self.dir.join(FILE))?;
        connection.execute_batch(&format!(
            "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = {}",
            LOG_BYTES / PAGE_BYTES
        ))?;
        prepare(&connection)?;
        Ok(Replies { connection: Mutex::new(connection), waiting: Mutex::default() })
    }

    /// What kept answers took, by stage and model.
    pub fn reply_costs(&self) -> Result<Vec<StageCost>, StoreError> {
        // A file of the first format that cannot be written has no such table.
        let is_there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'reply'";
        if !self.connection.prepare(is_there)?.exists([])? {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare(
            "SELECT stage, model, count(*), sum(prompt_tokens), sum(completion_tokens), sum(cost), sum(took_ms)
             FROM reply GROUP BY stage, model ORDER BY stage, model",
        )?;
        let rows = statement.query_map([], |row| {
            Ok(StageCost {
                stage: row.get(0)?,
                model: row.get(1)?,
                replies: row.get::<_, i64>(2)? as u64,
                prompt_tokens: row.get::<_, i64>(3)? as u64,
                completion_tokens: row.get::<_, i64>(4)? as u64,
                cost_picodollars: row.get::<_, Option<i64>>(5)?.map(|cost| cost as u64),
                took_ms: row.get::<_, i64>(6)? as u64,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl Replies {
    /// The answer under a key, as JSON; `run` is noted as one more run that it is about.
    pub fn get(&self, key: &Hash, run: Option<TrajectoryId>) -> Result<Option<String>, StoreError> {
        let connection = self.lock();
        let mut statement = connection.prepare_cached("SELECT id, body FROM reply WHERE key = ?1")?;
        let found = statement.query_row([&key.0[..]], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
        let Some((id, body)) = found.optional()? else { return Ok(None) };
        if let Some(run) = run {
            let known = connection
                .prepare_cached("SELECT 1 FROM reply_run WHERE run = ?1 AND reply = ?2")?
                .exists((&run.0.0[..], id))?;
            if !known {
                bind(&connection, run, key)?;
            }
        }
        Ok(Some(body))
    }

    /// Keeps an answer, unless there is one under its key.
    pub fn put(&self, reply: &Reply<'_>) -> Result<(), StoreError> {
        // SQLite sums in 64 bits with a sign; no true count comes near.
        let count = |number: u64| i64::try_from(number.min(1 << 53)).unwrap_or(i64::MAX);
        let row = Row {
            key: *reply.key,
            run: reply.run,
            stage: reply.stage.to_owned(),
            model: reply.model.to_owned(),
            body: reply.body.to_owned(),
            counts: (
                count(reply.prompt_tokens),
                count(reply.completion_tokens),
                reply.cost.map(count),
                count(reply.took_ms),
            ),
        };
        let ticket = {
            let mut waiting = self.waiting();
            waiting.last_ticket += 1;
            let ticket = waiting.last_ticket;
            waiting.rows.push((ticket, row));
            ticket
        };
        let mut connection = self.lock();
        let (rows, last) = {
            let mut waiting = self.waiting();
            if waiting.committed >= ticket {
                return Ok(());
            }
            (std::mem::take(&mut waiting.rows), waiting.last_ticket)
        };
        let done = commit(&mut connection, &rows);
        let mut waiting = self.waiting();
        if done.is_ok() {
            waiting.committed = last;
        } else {
            // The others try for themselves and hear for themselves.
            let mut others: Vec<_> = rows.into_iter().filter(|(other, _)| *other != ticket).collect();
            others.append(&mut waiting.rows);
            waiting.rows = others;
        }
        done
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes answers in one transaction.
fn commit(connection: &mut Connection, rows: &[(u64, Row)]) -> Result<(), StoreError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (_, row) in rows {
        let (prompt, completion, cost, took_ms) = row.counts;
        transaction
            .prepare_cached(
                "INSERT OR IGNORE INTO reply(key, stage, model, prompt_tokens, completion_tokens, cost, took_ms, body)
                 VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?
            .execute((&row.key.0[..], &row.stage, &row.model, prompt, completion, cost, took_ms, &row.body))?;
        if let Some(run) = row.run {
            bind(&transaction, run, &row.key)?;
        }
    }
    failpoint::commit(Failpoint::Reply, || transaction.commit())?;
    Ok(())
}

/// Notes that an answer is about a run.
fn bind(connection: &Connection, run: TrajectoryId, key: &Hash) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO reply_run SELECT ?1, id FROM reply WHERE key = ?2")?
        .execute((&run.0.0[..], &key.0[..]))?;
    Ok(())
}

/// Deletes the answers that are about a run.
pub(super) fn forget(connection: &Connection, seq: i64) -> Result<(), StoreError> {
    connection.execute(
        "DELETE FROM reply WHERE id IN (SELECT reply FROM reply_run JOIN trajectory ON run = trajectory.id
         WHERE seq = ?1)",
        [seq],
    )?;
    Ok(())
}

/// After runs were forgotten: deletes what tied their answers to other runs, and the answers that are about no run.
pub(super) fn forget_unbound(connection: &Connection) -> Result<(), StoreError> {
    connection.execute("DELETE FROM reply_run WHERE reply NOT IN (SELECT id FROM reply)", [])?;
    connection.execute("DELETE FROM reply WHERE id NOT IN (SELECT reply FROM reply_run)", [])?;
    Ok(())
}
