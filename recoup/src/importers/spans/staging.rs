//! The staging table: pieces of runs that lie interleaved in files, sorted by run.
//!
//! A first pass over the files notes the place of every piece in a temporary SQLite table; afterwards
//! each run's pieces are read back together, in file order, as one record. Runs come in the order in
//! which they first appear. Places, not bytes, are kept (but for what cannot be read back from its
//! place), so the table is small, and memory is bounded by the largest run.

mod runs;

use std::collections::HashMap;
use std::io;

use rusqlite::{Connection, OptionalExtension as _};

use self::runs::File;
pub(super) use self::runs::{Runs, take_name};
use crate::importers::{ImportError, Source};
use crate::warning::ByteSpan;

/// Names of runs that are kept in memory; the others are looked up in the table.
const NAMES_MAX: usize = 1 << 16;

/// A piece of a run: a span, a score, a log record.
pub(super) struct Fragment {
    /// The run's own name.
    pub(super) run: String,
    /// What the piece's file says of it and others together.
    pub(super) context: Option<std::sync::Arc<str>>,
    /// Its bytes in the file.
    pub(super) span: ByteSpan,
    /// 1-based line of its record.
    pub(super) line: u64,
    /// Its row in a Parquet file, where nothing has a place.
    pub(super) row: Option<u64>,
    /// Its JSON text, where the bytes in the file are another.
    pub(super) held: Option<String>,
}

/// The table while it is filled.
pub(super) struct Staging {
    connection: Connection,
    files: Vec<File>,
    names: HashMap<String, i64>,
    context: Option<(std::sync::Arc<str>, i64)>,
    next: i64,
}

impl Staging {
    /// An empty table.
    pub(super) fn new() -> Result<Self, ImportError> {
        // Without a name, SQLite keeps the table in a file of its own that goes with the connection.
        let connection = Connection::open("").and_then(|connection| {
            connection.execute_batch(
                "PRAGMA journal_mode = OFF;
                 PRAGMA synchronous = OFF;
                 PRAGMA cache_size = -16000;
                 CREATE TABLE run(id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
                 CREATE TABLE context(id INTEGER PRIMARY KEY, body TEXT NOT NULL);
                 CREATE TABLE fragment(
                     run INTEGER NOT NULL, number INTEGER NOT NULL, context INTEGER, file INTEGER NOT NULL,
                     line INTEGER NOT NULL, row INTEGER, start INTEGER NOT NULL, end INTEGER NOT NULL, held TEXT,
                     PRIMARY KEY(run, number)) WITHOUT ROWID;
                 BEGIN;",
            )?;
            Ok(connection)
        });
        let connection = connection.map_err(table_error)?;
        Ok(Self { connection, files: Vec::new(), names: HashMap::new(), context: None, next: 0 })
    }

    /// Goes on with another file: the places of the fragments that follow are in it.
    /// A translated file's own size is given: its runs' place in it is the whole.
    pub(super) fn file(&mut self, source: Source, translated: Option<u64>) {
        self.files.push(File { source, translated });
    }

    /// Takes a fragment of the current file.
    pub(super) fn add(&mut self, fragment: &Fragment) -> Result<(), ImportError> {
        self.try_add(fragment).map_err(table_error)
    }

    fn try_add(&mut self, fragment: &Fragment) -> rusqlite::Result<()> {
        let context = match &fragment.context {
            None => None,
            Some(body) => match &self.context {
                Some((last, id)) if last == body => Some(*id),
                _ => {
                    let mut insert =
                        self.connection.prepare_cached("INSERT INTO context(body) VALUES (?1)")?;
                    let id = insert.insert([&**body])?;
                    self.context = Some((body.clone(), id));
                    Some(id)
                }
            },
        };
        let run = self.run(&fragment.run)?;
        let mut insert = self.connection.prepare_cached(
            "INSERT INTO fragment(run, number, context, file, line, start, end, held, row)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        )?;
        insert.execute((
            run,
            self.next,
            context,
            self.files.len() as i64 - 1,
            fragment.line as i64,
            fragment.span.start as i64,
            fragment.span.end as i64,
            &fragment.held,
            fragment.row.map(|row| row as i64),
        ))?;
        self.next += 1;
        Ok(())
    }

    fn run(&mut self, name: &str) -> rusqlite::Result<i64> {
        if let Some(id) = self.names.get(name) {
            return Ok(*id);
        }
        let mut select = self.connection.prepare_cached("SELECT id FROM run WHERE name = ?1")?;
        let id = match select.query_row([name], |row| row.get(0)).optional()? {
            Some(id) => id,
            None => self.connection.prepare_cached("INSERT INTO run(name) VALUES (?1)")?.insert([name])?,
        };
        if self.names.len() >= NAMES_MAX {
            self.names.clear();
        }
        self.names.insert(name.to_owned(), id);
        Ok(id)
    }

    /// The runs, to be read back.
    pub(super) fn finish(self) -> Runs {
        // Nobody else sees the table: outside of a transaction every query would be prepared again.
        Runs::new(self.connection, self.files)
    }
}

fn table_error(error: rusqlite::Error) -> ImportError {
    ImportError::Io { uri: "the staging table".to_owned(), source: io::Error::other(error) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Fragment, Staging, take_name};
    use crate::importers::{ImportOptions, Source};
    use crate::warning::ByteSpan;

    fn source(name: &str, text: &str) -> Source {
        let options = ImportOptions { record_bytes_max: 20, ..ImportOptions::default() };
        Source::from_bytes(name, text.as_bytes(), Arc::new(options))
    }

    fn at(run: &str, start: u64, end: u64) -> Fragment {
        Fragment {
            run: run.to_owned(),
            context: None,
            span: ByteSpan { start, end },
            line: 1,
            row: None,
            held: None,
        }
    }

    fn read(staging: Staging) -> Vec<String> {
        let mut runs = staging.finish();
        std::iter::from_fn(|| runs.next())
            .map(|run| match run.unwrap() {
                Err(bad) => bad.code,
                Ok(mut record) => {
                    let name = take_name(&mut record);
                    format!("{name}: {}", String::from_utf8(record.bytes).unwrap())
                }
            })
            .collect()
    }

    #[test]
    fn runs_come_whole_and_in_order_of_first_appearance_across_files() {
        let mut staging = Staging::new().unwrap();
        staging.file(source("a", "[1,22,3]"), None);
        staging.add(&at("b", 1, 2)).unwrap();
        staging.add(&at("a", 3, 5)).unwrap();
        staging.add(&at("b", 6, 7)).unwrap();
        staging.file(source("b", "4"), None);
        staging.add(&Fragment { context: Some("{}".into()), ..at("a", 0, 1) }).unwrap();
        staging.add(&Fragment { held: Some("null".to_owned()), ..at("b", 0, 1) }).unwrap();
        assert_eq!(read(staging), ["b: 1\n3\nnull\n", "a: 22\n{\"context\":{}}\n4\n"]);
    }

    #[test]
    fn a_run_larger_than_a_record_may_be_costs_only_itself() {
        let mut staging = Staging::new().unwrap();
        staging.file(source("a", &"1".repeat(40)), None);
        staging.add(&at("large", 0, 15)).unwrap();
        staging.add(&at("small", 15, 16)).unwrap();
        staging.add(&at("large", 16, 31)).unwrap();
        assert_eq!(read(staging), ["too-large", "small: 1\n"]);
    }
}
