//! The slicer: cuts a file into the byte ranges of its records without parsing them.
//!
//! A buffered cursor follows strings and brackets only, so a file larger than memory streams through,
//! one element at a time; a bad element is left out by depth and the next one is found. The slices are
//! parsed in parallel and come out in order ([`each`]).
//!
//! Python writes JSON that JSON is not: `NaN`, `Infinity`, and lone surrogates in strings. Such a
//! record is rewritten for the parser (the number becomes null, the surrogate U+FFFD), with a loss.

mod cursor;
mod header;
mod joined;
mod parallel;
mod places;
mod python;
mod records;
mod scan;
mod tokens;

use sha2::{Digest as _, Sha256};

pub use self::header::{header, header_before_cut};
pub(super) use self::joined::{Joined, each_in_order};
pub use self::parallel::each;
pub(super) use self::parallel::in_order;
pub(super) use self::places::{Again, Keeper, Place, Places};
pub use self::records::Records;
use super::{Event, ImportError, Sink, SinkError, Source};
use crate::id::hexadecimal;
use crate::trajectory::{NativeId, Trajectory};
use crate::verdict::ReferenceLabel;
use crate::warning::{ByteSpan, Loss, Quarantine};

/// Characters kept of what the parser says of a record.
const REASON_CHARACTERS_MAX: usize = 200;

/// How the records of a file lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout<'a> {
    /// One a line; empty lines do not count.
    Lines,
    /// The elements of the array at a path of keys: `&[]` for a top-level array, `&["samples"]` for
    /// `$.samples[*]`.
    Elements(&'a [&'a str]),
    /// The whole file is one record.
    Document,
    /// The rows of a Parquet or CSV file, their columns as members.
    Table,
}

/// One record of a file: its bytes and where they stand.
#[derive(Clone, Debug)]
pub struct RawRecord {
    /// The file, as the user names it.
    pub uri: String,
    /// The bytes, without surrounding white space, ready for a JSON parser.
    pub bytes: Vec<u8>,
    /// Where they stand in the file, after decompression.
    pub span: ByteSpan,
    /// 1-based line of the first byte.
    pub line: u64,
    /// 0-based position among the file's records.
    pub index: u64,
    /// How many equal records stand before it in the file.
    pub ordinal: u64,
    /// 1-based number among the rows of a Parquet file, whose bytes stand nowhere together; `span` and
    /// `line` say nothing then.
    pub row: Option<u64>,
    /// SHA-256 of the bytes in the file, hexadecimal; of a table's row, of the row as JSON.
    pub sha256: String,
    /// What the rewriting for the parser lost.
    pub losses: Vec<&'static str>,
    /// Licence to record.
    pub licence: String,
}

/// A record that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct RecordError {
    /// Stable word for the cause (`invalid-json`, `missing-field`, `wrong-type` …).
    pub code: &'static str,
    /// For a person.
    pub reason: String,
}

impl RecordError {
    /// An error with its cause's word.
    pub fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Self { code, reason: reason.into() }
    }
}

impl From<serde_json::Error> for RecordError {
    fn from(error: serde_json::Error) -> Self {
        let code = match error.classify() {
            serde_json::error::Category::Data => "wrong-type",
            serde_json::error::Category::Eof => "truncated",
            _ => "invalid-json",
        };
        let reason = error.to_string();
        // Line and column count from the start of the text at hand, which says nothing of the file.
        let reason = reason.rsplit_once(" at line ").map_or(&*reason, |(reason, _)| reason);
        // The parser repeats a value of the wrong type, however long the trace made it.
        Self::new(code, reason.chars().take(REASON_CHARACTERS_MAX).collect::<String>())
    }
}

/// What reading one record may end with, beside success.
#[derive(Debug, thiserror::Error)]
pub enum Stop {
    /// The record is quarantined and the file goes on.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The receiver failed; nothing goes on.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

impl From<serde_json::Error> for Stop {
    fn from(error: serde_json::Error) -> Self {
        Self::Record(error.into())
    }
}

impl RawRecord {
    /// A record from bytes that are already in memory (an archive's member).
    pub fn whole(source: &Source, bytes: Vec<u8>) -> Self {
        let mut record = Self::at(source, bytes, 0, 1);
        record.prepare();
        record
    }

    /// Bytes at a place of a file, neither hashed nor rewritten.
    pub(super) fn at(source: &Source, bytes: Vec<u8>, start: u64, line: u64) -> Self {
        Self {
            uri: source.uri().to_owned(),
            span: ByteSpan { start, end: start + bytes.len() as u64 },
            bytes,
            line,
            index: 0,
            ordinal: 0,
            row: None,
            sha256: String::new(),
            losses: Vec::new(),
            licence: source.options().licence.clone(),
        }
    }

    /// Hashes the bytes and rewrites what a JSON parser would refuse.
    fn prepare(&mut self) {
        self.hash();
        self.rewrite();
    }

    /// Hashes the bytes.
    pub(super) fn hash(&mut self) {
        self.sha256 = hexadecimal(&Sha256::digest(&self.bytes));
    }

    /// Rewrites what a JSON parser would refuse.
    pub(super) fn rewrite(&mut self) {
        if let Some(bytes) = python::rewrite(&self.bytes, &mut self.losses) {
            self.bytes = bytes;
        }
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When it is not the JSON that `T` wants; the error names the place in the file.
    pub fn parse<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<T, RecordError> {
        serde_json::from_slice(&self.bytes).map_err(|error| self.refused(error))
    }

    /// Reads the record, and gives its text too.
    ///
    /// # Errors
    /// As [`RawRecord::parse`].
    pub(super) fn parse_text<'a, T: serde::Deserialize<'a>>(&'a self) -> Result<(T, &'a str), RecordError> {
        let text = std::str::from_utf8(&self.bytes)
            .map_err(|error| RecordError::new("invalid-json", format!("invalid UTF-8: {error}")))?;
        Ok((serde_json::from_str(text).map_err(|error| self.refused(error))?, text))
    }

    /// Takes the bytes as text, rewritten as [`RawRecord::rewrite`] does.
    pub(super) fn take_text(&mut self) -> String {
        python::text(std::mem::take(&mut self.bytes), &mut self.losses)
    }

    /// What the parser says, with the place in the file.
    fn refused(&self, error: serde_json::Error) -> RecordError {
        let place = self.place(error.line(), error.column());
        let error = RecordError::from(error);
        RecordError::new(error.code, format!("{}{place}", error.reason))
    }

    /// A place of the record, 1-based as the parser counts, as a place of the file: its line, and its
    /// 0-based byte where the record is as it stands there.
    fn place(&self, line: usize, column: usize) -> String {
        let Some(lines_before) = line.checked_sub(1).filter(|_| self.row.is_none()) else {
            return String::new();
        };
        let file_line = self.line + lines_before as u64;
        if self.bytes.len() as u64 != self.span.end - self.span.start {
            return format!(" at line {file_line}");
        }
        let lines = self.bytes.split_inclusive(|byte| *byte == b'\n');
        let before: usize = lines.take(lines_before).map(<[u8]>::len).sum();
        format!(" at line {file_line}, byte {}", self.span.start + (before + column.saturating_sub(1)) as u64)
    }

    /// Seals a run that this record holds and hands it on. `native` is the harness's own id of the
    /// run, where it has one; `part` tells several runs of one record apart (0 for the only one).
    ///
    /// # Errors
    /// When the receiver fails.
    pub fn emit(
        &self,
        sink: &mut dyn Sink,
        mut run: Trajectory,
        native: Option<String>,
        labels: Vec<ReferenceLabel>,
        part: u64,
    ) -> Result<(), SinkError> {
        run.source.uri.clone_from(&self.uri);
        run.source.sha256.clone_from(&self.sha256);
        run.source.span = self.row.is_none().then_some(self.span);
        run.licence.clone_from(&self.licence);
        for loss in &self.losses {
            sink.loss(Loss::new(&run.source.format, "json", *loss))?;
        }
        let native = native.map_or(NativeId::Record { ordinal: self.ordinal << 20 | part }, NativeId::Named);
        sink.trajectory(run, &native, labels)
    }

    /// The quarantine entry for this record.
    pub fn quarantine(&self, error: &RecordError) -> Event {
        Event::Quarantine(Quarantine {
            uri: self.uri.clone(),
            line: self.row.is_none().then_some(self.line),
            span: self.row.is_none().then_some(self.span),
            code: error.code.to_owned(),
            reason: match self.row {
                Some(row) => format!("row {row}: {}", error.reason),
                None => error.reason.clone(),
            },
        })
    }

    /// Runs `read` on the record and quarantines it if that fails.
    ///
    /// # Errors
    /// When the receiver fails.
    pub fn attempt(
        &self,
        sink: &mut dyn Sink,
        read: impl FnOnce(&Self, &mut dyn Sink) -> Result<(), Stop>,
    ) -> Result<(), SinkError> {
        match read(self, sink) {
            Ok(()) => Ok(()),
            Err(Stop::Record(error)) => sink.event(self.quarantine(&error)),
            Err(Stop::Sink(error)) => Err(error),
        }
    }
}

/// Python's JSON as a parser takes it, or `None` where it is that already.
pub(super) fn rewrite_json(bytes: &[u8]) -> Option<Vec<u8>> {
    python::rewrite(bytes, &mut Vec::new())
}

/// SHA-256 of a whole file (decompressed), hexadecimal.
///
/// # Errors
/// When it cannot be read.
pub(super) fn file_sha256(source: &Source) -> Result<String, ImportError> {
    let mut hasher = Sha256::new();
    let mut reader = source.open()?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match std::io::Read::read(&mut reader, &mut buffer).map_err(|error| ImportError::io(source, error))? {
            0 => return Ok(hexadecimal(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// The whole file as one record.
///
/// # Errors
/// When the file cannot be read; a file above the record limit is quarantined and gives `None`.
pub fn document(source: &Source, sink: &mut dyn Sink) -> Result<Option<RawRecord>, ImportError> {
    for item in Records::new(source, Layout::Document)? {
        match item? {
            Ok(record) => return Ok(Some(record)),
            Err(quarantine) => sink.event(Event::Quarantine(quarantine))?,
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::Value;

    use super::{Layout, Records};
    use crate::importers::Source;

    fn reasons(text: &str, layout: Layout) -> Vec<String> {
        let source = Source::from_bytes("x", text.as_bytes(), Arc::default());
        let records = Records::new(&source, layout).unwrap().map(|item| item.unwrap().unwrap());
        records.filter_map(|record| Some(record.parse::<Value>().err()?.reason)).collect()
    }

    #[test]
    fn an_error_names_the_place_in_the_file() {
        let lines = "{\"a\": 1}\n\n  {\"b\": x}\n{\"c\": NaN, }\n";
        let (second, third) = (lines.find('x').unwrap(), "expected value at line 3, byte ");
        let reasons_of_lines = reasons(lines, Layout::Lines);
        assert_eq!(reasons_of_lines[0], format!("{third}{second}"));
        assert_eq!(reasons_of_lines[1], "trailing comma at line 4", "rewritten, so bytes are not its own");
        let array = "[1,\n {\n\"b\": x}]";
        assert_eq!(reasons(array, Layout::Elements(&[]))[0], "expected value at line 3, byte 12");
    }
}
