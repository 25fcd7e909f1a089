//! The tables, and how an older file becomes a newer one.
//!
//! Large and small are kept apart: message bodies, records and media lie compressed in `pack`, what
//! is listed and filtered lies in the narrow rows of `trajectory`. Columns of `trajectory` from
//! `blame` on are facets: copies of the current verdicts that listing needs, written together with
//! them.
//!
//! What an index costs decides the write speed, since a random index is rewritten, page by page, at
//! every commit. So a node is unique by `(parent, hash)`, whose entries arrive almost in order, and
//! not by `hash` alone; and a body that several contexts share is found by the first 64 bits of its
//! hash as an integer key (the whole hash is compared), only for bodies long enough to be worth it.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::StoreError;
use crate::failpoint::{self, Failpoint};

/// Migrations, oldest first: the one at index `n` leads from format `n` to format `n + 1`.
pub(super) const MIGRATIONS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3];

const VERSION_1: &str = "
-- Where runs were read.
CREATE TABLE source(id INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE);

-- One zstd frame each. kind: 0 message bodies, 1 records, 2 media.
CREATE TABLE pack(id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, raw_len INTEGER NOT NULL, data BLOB NOT NULL);
-- A byte string in a pack. hash: BLAKE3, where it is shared between contexts.
CREATE TABLE blob(id INTEGER PRIMARY KEY, pack INTEGER NOT NULL, offset INTEGER NOT NULL, len INTEGER NOT NULL, hash BLOB);
CREATE INDEX blob_pack ON blob(pack);
-- Finds shared bodies: the first 64 bits of the hash.
CREATE TABLE blob_tag(tag INTEGER PRIMARY KEY, blob INTEGER NOT NULL);
CREATE TABLE media(hash BLOB PRIMARY KEY, blob INTEGER NOT NULL) WITHOUT ROWID;

-- A message in its context. parent: 0 for a root.
CREATE TABLE node(id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, hash BLOB NOT NULL, blob INTEGER NOT NULL);
CREATE UNIQUE INDEX node_child ON node(parent, hash);

-- seq: import order. base: the key before it was renumbered; ordinal: which of several runs under
-- one key, from 1; latest: 1 for the newest revision of its key.
CREATE TABLE trajectory(
  seq INTEGER PRIMARY KEY, id BLOB NOT NULL, key BLOB NOT NULL, base BLOB NOT NULL,
  ordinal INTEGER NOT NULL, latest INTEGER NOT NULL,
  format TEXT NOT NULL, source INTEGER NOT NULL, sha256 TEXT NOT NULL, span_start INTEGER, span_end INTEGER,
  native_id TEXT, task TEXT NOT NULL, derived INTEGER NOT NULL, goal BLOB, origin BLOB,
  outcome TEXT NOT NULL, score REAL, nodes INTEGER NOT NULL, steps INTEGER NOT NULL,
  tool_calls INTEGER NOT NULL, tool_results INTEGER NOT NULL,
  agents TEXT NOT NULL, model TEXT, harness TEXT, trial INTEGER,
  split TEXT,
  blame TEXT, suspected INTEGER NOT NULL DEFAULT 0, class TEXT, severity REAL,
  decisive_node INTEGER, decisive_step INTEGER, note TEXT);
CREATE UNIQUE INDEX trajectory_id ON trajectory(id);
CREATE INDEX trajectory_base ON trajectory(base, ordinal);
CREATE INDEX trajectory_task ON trajectory(task);
CREATE INDEX trajectory_unsplit ON trajectory(seq) WHERE split IS NULL;
-- record: blob; nodes: node ids in order, varints; main_leaf: node id, NULL without nodes.
CREATE TABLE content(trajectory INTEGER PRIMARY KEY, record INTEGER NOT NULL, nodes BLOB NOT NULL, main_leaf INTEGER);
CREATE TABLE trajectory_media(trajectory INTEGER NOT NULL, hash BLOB NOT NULL, PRIMARY KEY(trajectory, hash)) WITHOUT ROWID;
-- What a label or outcome file may call a run. strength: 0 its own id, 1 its task's.
CREATE TABLE alias(name TEXT NOT NULL, strength INTEGER NOT NULL, trajectory INTEGER NOT NULL,
  PRIMARY KEY(name, strength, trajectory)) WITHOUT ROWID;

-- seq: order of putting, decides between verdicts of equal rank and version. place: 0 for the best of several.
CREATE TABLE verdict(seq INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, subject INTEGER NOT NULL,
  kind TEXT NOT NULL, rank INTEGER NOT NULL, version INTEGER NOT NULL, place INTEGER NOT NULL, body TEXT NOT NULL);
CREATE INDEX verdict_subject ON verdict(subject, kind);
-- Labels about runs that stand in other files, also those whose run has not come yet.
CREATE TABLE loose_label(id INTEGER PRIMARY KEY, run TEXT NOT NULL, body TEXT NOT NULL, UNIQUE(run, body));

-- link: hash of what ties runs together (a task key, a goal, an origin).
CREATE TABLE split_link(link BLOB PRIMARY KEY, side TEXT NOT NULL, component TEXT NOT NULL) WITHOUT ROWID;
-- Tasks whose runs a stage has finished. newest: the last run of the task that it saw.
CREATE TABLE done(stage TEXT NOT NULL, task TEXT NOT NULL, version INTEGER NOT NULL, newest INTEGER NOT NULL,
  PRIMARY KEY(stage, task)) WITHOUT ROWID;
";

const VERSION_2: &str = "
-- Answers of models, so that no question is paid for twice. key: hash of who was asked what; body: JSON;
-- cost: picodollars, NULL without a price.
CREATE TABLE reply(id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, stage TEXT NOT NULL, model TEXT NOT NULL,
  prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, cost INTEGER, took_ms INTEGER NOT NULL,
  body TEXT NOT NULL);
-- The runs that an answer is about, by id; one about no run has none.
CREATE TABLE reply_run(run BLOB NOT NULL, reply INTEGER NOT NULL, PRIMARY KEY(run, reply)) WITHOUT ROWID;
CREATE INDEX reply_run_reply ON reply_run(reply);
-- Questions that a provider answers together, later. name: hash of the questions; id: the provider's, NULL
-- until it is known.
CREATE TABLE batch(name BLOB PRIMARY KEY, id TEXT, base_url TEXT NOT NULL, model TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE batch_question(key BLOB PRIMARY KEY, batch BLOB NOT NULL, stage TEXT NOT NULL, run BLOB) WITHOUT ROWID;
CREATE INDEX batch_question_batch ON batch_question(batch);
";

const VERSION_3: &str = "
-- By what near-duplicates are found; empty for a run that is too short. Missing only where an older
-- program stored the run.
CREATE TABLE sketch(trajectory INTEGER PRIMARY KEY, body BLOB NOT NULL);
-- What ties runs in a strict split only: hashes of a template, a repository, the seed of a database.
CREATE TABLE strict_link(trajectory INTEGER NOT NULL, link BLOB NOT NULL, PRIMARY KEY(trajectory, link)) WITHOUT ROWID;
CREATE INDEX strict_link_link ON strict_link(link);
-- Finds what replays have continued from a run.
CREATE INDEX trajectory_origin ON trajectory(origin) WHERE origin IS NOT NULL;
CREATE INDEX split_link_component ON split_link(component);
-- What was decided about the project as a whole.
CREATE TABLE rule(name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
";

/// The format of an open file.
pub(super) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Brings a file to the last of `migrations`, in one transaction, after copying it to `backup` when
/// it already holds something. Two processes may try at once; the second finds it done.
pub(super) fn migrate(
    connection: &mut Connection,
    migrations: &[&str],
    backup: &dyn Fn(i64) -> std::path::PathBuf,
) -> Result<(), StoreError> {
    let target = migrations.len() as i64;
    let found = version(connection)?;
    if found >= target {
        return Ok(());
    }
    if found > 0 {
        let path = backup(found);
        copy(connection, &path)?;
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    for migration in migrations.iter().skip(usize::try_from(found).unwrap_or(0)) {
        transaction.execute_batch(migration)?;
    }
    if found < target {
        transaction.pragma_update(None, "user_version", target)?;
    }
    failpoint::commit(Failpoint::Migration, || transaction.commit())?;
    Ok(())
}

/// Copies the whole database, the write-ahead log included, to a new file.
fn copy(connection: &Connection, path: &Path) -> Result<(), StoreError> {
    if path.exists() {
        std::fs::remove_file(path).map_err(|error| StoreError::io(path, error))?;
    }
    super::create_private(path)?;
    failpoint::commit(Failpoint::Backup, || connection.execute("VACUUM INTO ?1", [path.to_string_lossy()]))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::{migrate, version};
    use crate::failpoint::{self, Failpoint, Side};

    const STEPS: [&str; 2] =
        ["CREATE TABLE a(x); INSERT INTO a VALUES(7)", "ALTER TABLE a ADD COLUMN y DEFAULT 8"];

    #[test]
    fn a_file_moves_forward_once_and_leaves_a_copy() {
        let dir = tempfile::tempdir().unwrap();
        let backup = |found: i64| dir.path().join(format!("copy-{found}"));
        let mut connection = Connection::open(dir.path().join("file")).unwrap();
        migrate(&mut connection, &STEPS[..1], &backup).unwrap();
        assert!(!backup(0).exists(), "nothing to copy in a new file");
        migrate(&mut connection, &STEPS, &backup).unwrap();
        migrate(&mut connection, &STEPS, &backup).unwrap();
        assert_eq!(version(&connection).unwrap(), 2);
        let sum: i64 = connection.query_row("SELECT x + y FROM a", [], |row| row.get(0)).unwrap();
        assert_eq!(sum, 15);
        assert_eq!(version(&Connection::open(backup(1)).unwrap()).unwrap(), 1);
    }

    /// Brings an older file forward and is stopped on the way; only the test below starts it.
    #[test]
    fn stopped_child() {
        let Some(dir) = std::env::var_os("RECOUP_STOPPED_DIR").map(std::path::PathBuf::from) else { return };
        let wanted = std::env::var("RECOUP_STOPPED_AT").unwrap();
        failpoint::watch(move |point, side| {
            if format!("{}-{}", side.as_str(), point.as_str()) == wanted {
                std::process::abort();
            }
        });
        migrate(&mut Connection::open(dir.join("file")).unwrap(), &STEPS, &|_| dir.join("copy")).unwrap();
    }

    #[test]
    fn a_migration_stopped_anywhere_goes_on_and_keeps_its_copy() {
        for point in [Failpoint::Backup, Failpoint::Migration] {
            for side in Side::ALL {
                let dir = tempfile::tempdir().unwrap();
                let mut connection = Connection::open(dir.path().join("file")).unwrap();
                migrate(&mut connection, &STEPS[..1], &|_| dir.path().join("copy")).unwrap();
                let name = format!("{}-{}", side.as_str(), point.as_str());
                let stopped = std::process::Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "store::schema::tests::stopped_child"])
                    .env("RECOUP_STOPPED_DIR", dir.path())
                    .env("RECOUP_STOPPED_AT", &name)
                    .output()
                    .unwrap();
                assert_eq!(stopped.status.code(), None, "{name} was never reached");
                migrate(&mut connection, &STEPS, &|_| dir.path().join("copy")).unwrap();
                let sum: i64 = connection.query_row("SELECT x + y FROM a", [], |row| row.get(0)).unwrap();
                assert_eq!(sum, 15, "{name}");
                assert_eq!(
                    version(&Connection::open(dir.path().join("copy")).unwrap()).unwrap(),
                    1,
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn a_failed_migration_changes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let backup = |found: i64| dir.path().join(format!("copy-{found}"));
        let mut connection = Connection::open_in_memory().unwrap();
        let broken = ["CREATE TABLE a(x)", "CREATE TABLE b(x); not SQL"];
        migrate(&mut connection, &broken[..1], &backup).unwrap();
        assert!(migrate(&mut connection, &broken, &backup).is_err());
        assert_eq!(version(&connection).unwrap(), 1);
        assert!(connection.prepare("SELECT * FROM b").is_err());
    }
}
