//! Reading back: a run's pieces together, one run after the other.

use rusqlite::{Connection, OptionalExtension as _};

use super::table_error;
use crate::importers::slice::{Places, RawRecord};
use crate::importers::{ImportError, Source};
use crate::json::Json;
use crate::warning::{ByteSpan, Quarantine};

/// Files that are kept open while runs are read back.
const OPEN_MAX: usize = 64;

/// A file that fragments stand in.
pub(super) struct File {
    pub(super) source: Source,
    /// Its size, where the records are a translation.
    pub(super) translated: Option<u64>,
}

/// Takes the run's name off the end of a record of [`Runs::next`].
pub(in crate::importers::spans) fn take_name(record: &mut RawRecord) -> String {
    let start = memchr::memrchr(b'\n', &record.bytes).map_or(0, |at| at + 1);
    let name = serde_json::from_slice(record.bytes.get(start..).unwrap_or_default()).unwrap_or_default();
    record.bytes.truncate(start);
    name
}

/// Runs, read back one after the other.
pub(in crate::importers::spans) struct Runs {
    connection: Connection,
    files: Vec<File>,
    /// Files that are open, the last used at the end.
    open: Vec<(usize, Places)>,
    next: i64,
}

/// A fragment's row.
struct Row {
    context: Option<i64>,
    file: usize,
    line: u64,
    span: ByteSpan,
    held: Option<String>,
    number: Option<u64>,
}

impl Row {
    /// Bytes of its JSON text.
    fn size(&self) -> u64 {
        self.held.as_ref().map_or(self.span.end - self.span.start, |held| held.len() as u64)
    }
}

impl Runs {
    /// The runs of a filled table.
    pub(super) fn new(connection: Connection, files: Vec<File>) -> Self {
        Self { connection, files, open: Vec::new(), next: 1 }
    }

    /// The next run as one record: its pieces, each on lines of its own and each context as `{"context":…}`
    /// before the first piece that stands in it, and its name ([`take_name`]). A run larger than a record
    /// may be is quarantined.
    pub(in crate::importers::spans) fn next(
        &mut self,
    ) -> Option<Result<Result<RawRecord, Quarantine>, ImportError>> {
        let run = self.next;
        self.next += 1;
        match self.name(run).map_err(table_error) {
            Ok(name) => Some(self.read(run, &name?)),
            Err(error) => Some(Err(error)),
        }
    }

    fn name(&self, run: i64) -> rusqlite::Result<Option<String>> {
        let mut select = self.connection.prepare_cached("SELECT name FROM run WHERE id = ?1")?;
        select.query_row([run], |row| row.get(0)).optional()
    }

    fn context(&self, id: i64) -> rusqlite::Result<String> {
        let mut select = self.connection.prepare_cached("SELECT body FROM context WHERE id = ?1")?;
        select.query_row([id], |row| row.get(0))
    }

    fn read(&mut self, run: i64, name: &str) -> Result<Result<RawRecord, Quarantine>, ImportError> {
        let rows = self.rows(run).map_err(table_error)?;
        let first = rows.first().and_then(|row| Some((row, self.files.get(row.file)?)));
        let Some((first, file)) = first else {
            return Err(table_error(rusqlite::Error::QueryReturnedNoRows));
        };
        let limit = file.source.options().record_bytes_max;
        let mut record = RawRecord::at(&file.source, Vec::new(), first.span.start, first.line);
        record.row = first.number;
        // A run of several files has its place in the first.
        let in_file = rows.iter().filter(|row| row.file == first.file);
        record.span.end = in_file.map(|row| row.span.end).max().unwrap_or(first.span.end);
        if let Some(size) = file.translated {
            record.span = ByteSpan { start: 0, end: size };
        }
        let bytes: u64 = rows.iter().map(Row::size).sum();
        if bytes > limit {
            return Ok(Err(Quarantine {
                uri: record.uri,
                line: Some(record.line),
                span: Some(record.span),
                code: "too-large".to_owned(),
                reason: format!("a run of more than {limit} bytes; raise `--max-record` to read it"),
            }));
        }
        record.bytes.reserve(bytes as usize + rows.len() + name.len() + 2);
        let mut context = None;
        for row in &rows {
            if row.context != context {
                context = row.context;
                if let Some(id) = context {
                    let body = self.context(id).map_err(table_error)?;
                    record.bytes.extend_from_slice(b"{\"context\":");
                    record.bytes.extend_from_slice(body.as_bytes());
                    record.bytes.extend_from_slice(b"}\n");
                }
            }
            match &row.held {
                Some(held) => record.bytes.extend_from_slice(held.as_bytes()),
                None => self
                    .places(row.file)?
                    .append(row.span, &mut record.bytes)
                    .map_err(|error| ImportError::Io { uri: record.uri.clone(), source: error })?,
            }
            record.bytes.push(b'\n');
        }
        record.bytes.extend_from_slice(Json::string(name).as_str().as_bytes());
        Ok(Ok(record))
    }

    fn rows(&self, run: i64) -> rusqlite::Result<Vec<Row>> {
        let mut select = self.connection.prepare_cached(
            "SELECT context, file, line, start, end, held, row FROM fragment WHERE run = ?1 ORDER BY number",
        )?;
        let rows = select.query_map([run], |row| {
            Ok(Row {
                context: row.get(0)?,
                file: row.get::<_, i64>(1)? as usize,
                line: row.get::<_, i64>(2)? as u64,
                span: ByteSpan { start: row.get::<_, i64>(3)? as u64, end: row.get::<_, i64>(4)? as u64 },
                held: row.get(5)?,
                number: row.get::<_, Option<i64>>(6)?.map(|row| row as u64),
            })
        })?;
        rows.collect()
    }

    fn places(&mut self, file: usize) -> Result<&mut Places, ImportError> {
        let found = self.open.iter().position(|(open, _)| *open == file);
        let entry = if let Some(position) = found {
            self.open.remove(position)
        } else {
            if self.open.len() >= OPEN_MAX {
                self.open.remove(0);
            }
            let staged = self.files.get(file);
            let staged = staged.ok_or_else(|| table_error(rusqlite::Error::QueryReturnedNoRows))?;
            (file, Places::new(staged.source.open_seekable()?))
        };
        self.open.push(entry);
        match self.open.last_mut() {
            Some((_, places)) => Ok(places),
            None => Err(table_error(rusqlite::Error::QueryReturnedNoRows)),
        }
    }
}
