//! Places: bytes of a file that are read again, for runs whose records lie among those of others.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use super::Layout;
use crate::importers::source::ReadSeek;
use crate::importers::{ImportError, RawRecord, Source};
use crate::warning::ByteSpan;

/// Bytes that are read at once, for places that are shorter.
const BUFFER_BYTES: u64 = 16 << 10;

/// Where a record stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::importers) struct Place {
    /// Its bytes in the file.
    pub(in crate::importers) span: ByteSpan,
    /// 1-based line.
    pub(in crate::importers) line: u64,
    /// Of a table, the row; see [`RawRecord::row`].
    pub(in crate::importers) row: Option<u64>,
    /// Where its bytes are read again: its place in the file, or among a table's rows that were kept.
    pub(in crate::importers) held: ByteSpan,
}

impl Place {
    /// The place of a record whose bytes stand in its file.
    pub(in crate::importers) fn in_file(record: &RawRecord) -> Self {
        Self { span: record.span, line: record.line, row: None, held: record.span }
    }
}

/// Notes where records stand. The rows of a table, which stand nowhere as JSON, are kept in a temporary
/// file.
pub(in crate::importers) struct Keeper<'a> {
    source: &'a Source,
    rows: Option<File>,
}

impl<'a> Keeper<'a> {
    /// For the records of a file in a layout.
    pub(in crate::importers) fn new(source: &'a Source, layout: Layout<'_>) -> Result<Self, ImportError> {
        let rows = if layout == Layout::Table { Some(tempfile::tempfile()) } else { None };
        let rows = rows.transpose().map_err(|error| ImportError::io(source, error))?;
        Ok(Self { source, rows })
    }

    /// The place of a record, before its bytes are rewritten.
    pub(in crate::importers) fn keep(&mut self, record: &RawRecord) -> Result<Place, ImportError> {
        let held = match &mut self.rows {
            None => return Ok(Place::in_file(record)),
            Some(rows) => rows.stream_position().and_then(|start| {
                rows.write_all(&record.bytes)?;
                Ok(ByteSpan { start, end: start + record.bytes.len() as u64 })
            }),
        };
        let held = held.map_err(|error| ImportError::io(self.source, error))?;
        Ok(Place { span: record.span, line: record.line, row: record.row, held })
    }

    /// What was noted, to be read again.
    pub(in crate::importers) fn finish(self) -> Result<Again<'a>, ImportError> {
        let Some(mut rows) = self.rows else { return Again::open(self.source) };
        rows.rewind().map_err(|error| ImportError::io(self.source, error))?;
        Ok(Again { source: self.source, places: Places::new(Box::new(rows)) })
    }
}

/// A file with places in it.
pub(in crate::importers) struct Places {
    file: Box<dyn ReadSeek>,
    /// Where the file stands.
    at: u64,
    /// What was read ahead, and where it begins.
    ahead: Vec<u8>,
    start: u64,
    /// Where the last place ends.
    last: u64,
}

impl Places {
    /// Those of a file that stands at its beginning.
    pub(in crate::importers) fn new(file: Box<dyn ReadSeek>) -> Self {
        Self { file, at: 0, ahead: Vec::new(), start: 0, last: 0 }
    }

    /// Adds the bytes of a place.
    pub(in crate::importers) fn append(&mut self, span: ByteSpan, out: &mut Vec<u8>) -> io::Result<()> {
        let length = span.end.saturating_sub(span.start);
        let gap = span.start.checked_sub(std::mem::replace(&mut self.last, span.end));
        if self.append_ahead(span.start, length, out) {
            return Ok(());
        }
        if self.at != span.start {
            self.at = self.file.seek(SeekFrom::Start(span.start))?;
        }
        // Where runs interleave, what stands behind a place is seldom wanted next.
        if length >= BUFFER_BYTES || gap.is_none_or(|gap| gap >= BUFFER_BYTES) {
            return self.read(length, out).and_then(|read| if read == length { Ok(()) } else { Err(cut()) });
        }
        let mut ahead = std::mem::take(&mut self.ahead);
        ahead.clear();
        self.start = span.start;
        self.read(BUFFER_BYTES, &mut ahead)?;
        self.ahead = ahead;
        if self.append_ahead(span.start, length, out) { Ok(()) } else { Err(cut()) }
    }

    fn read(&mut self, length: u64, out: &mut Vec<u8>) -> io::Result<u64> {
        let read = (&mut self.file).take(length).read_to_end(out)? as u64;
        self.at += read;
        Ok(read)
    }

    /// Adds bytes that were read ahead; false where they were not.
    fn append_ahead(&self, start: u64, length: u64, out: &mut Vec<u8>) -> bool {
        let from = start.checked_sub(self.start).and_then(|from| usize::try_from(from).ok());
        let length = usize::try_from(length).ok();
        let held = from.zip(length).and_then(|(from, length)| self.ahead.get(from..)?.get(..length));
        held.map(|held| out.extend_from_slice(held)).is_some()
    }
}

fn cut() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

/// Reads a file's records again by their places.
pub(in crate::importers) struct Again<'a> {
    source: &'a Source,
    places: Places,
}

impl<'a> Again<'a> {
    /// Opens the file once more.
    pub(in crate::importers) fn open(source: &'a Source) -> Result<Self, ImportError> {
        Ok(Self { source, places: Places::new(source.open_seekable()?) })
    }

    /// The record at a place, neither hashed nor rewritten.
    pub(in crate::importers) fn record(&mut self, place: Place) -> Result<RawRecord, ImportError> {
        let mut bytes = Vec::new();
        self.places.append(place.held, &mut bytes).map_err(|error| ImportError::io(self.source, error))?;
        let mut record = RawRecord::at(self.source, bytes, place.span.start, place.line);
        (record.row, record.span) = (place.row, place.span);
        Ok(record)
    }
}
