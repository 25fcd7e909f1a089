//! Places: bytes of a file that are read again, for runs whose records lie among those of others.

use std::io::{self, BufReader, Read as _};

use crate::importers::source::ReadSeek;
use crate::importers::{ImportError, RawRecord, Source};
use crate::warning::ByteSpan;

/// Bytes that are read at once.
const BUFFER_BYTES: usize = 64 << 10;

/// Where a record stands: its bytes and its line.
pub(in crate::importers) type Place = (ByteSpan, u64);

/// A file with places in it.
pub(in crate::importers) struct Places {
    file: BufReader<Box<dyn ReadSeek>>,
    at: u64,
}

impl Places {
    /// Those of a file that stands at its beginning.
    pub(in crate::importers) fn new(file: Box<dyn ReadSeek>) -> Self {
        Self { file: BufReader::with_capacity(BUFFER_BYTES, file), at: 0 }
    }

    /// Adds the bytes of a place.
    pub(in crate::importers) fn append(&mut self, span: ByteSpan, out: &mut Vec<u8>) -> io::Result<()> {
        // Relative, so that neighboring places come from the buffer.
        self.file.seek_relative(span.start as i64 - self.at as i64)?;
        self.at = span.start;
        let read = (&mut self.file).take(span.end - span.start).read_to_end(out)? as u64;
        self.at += read;
        if read == span.end - span.start { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
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

    /// The record at a place, not hashed.
    pub(in crate::importers) fn record(&mut self, (span, line): Place) -> Result<RawRecord, ImportError> {
        let mut bytes = Vec::new();
        self.places.append(span, &mut bytes).map_err(|error| ImportError::io(self.source, error))?;
        let mut record = RawRecord::at(self.source, bytes, span.start, line);
        record.rewrite();
        Ok(record)
    }
}
