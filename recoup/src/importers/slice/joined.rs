//! Records that together hold one run, as the lines of a session do.

use std::io::{self, BufReader, Read as _};

use sha2::{Digest as _, Sha256};

use super::{Layout, RawRecord, Records, Stop};
use crate::id::hexadecimal;
use crate::importers::source::ReadSeek;
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::ByteSpan;

/// Shows `read` every record of a file in order, on the calling thread and not hashed. A record that
/// cannot be read is quarantined.
pub(in crate::importers) fn each_in_order(
    source: &Source,
    layout: Layout<'_>,
    sink: &mut dyn Sink,
    mut read: impl FnMut(&RawRecord, &mut dyn Sink) -> Result<(), Stop>,
) -> Result<(), ImportError> {
    let mut records = Records::new(source, layout)?;
    while let Some(item) = records.next_raw() {
        match item? {
            Ok(mut record) => {
                record.rewrite();
                record.attempt(sink, &mut read)?;
            }
            Err(quarantine) => sink.event(Event::Quarantine(quarantine))?,
        }
    }
    Ok(())
}

/// Several records that together hold one run; they are emitted like one record.
///
/// Its SHA-256 is that of the records' bytes, each followed by a line feed, and its span reaches from
/// the first record to the last.
pub(in crate::importers) struct Joined {
    record: RawRecord,
    hasher: Sha256,
}

impl Joined {
    /// Nothing but the first record's place yet.
    pub(in crate::importers) fn new(first: &RawRecord) -> Self {
        let record =
            RawRecord { bytes: Vec::new(), sha256: String::new(), losses: Vec::new(), ..first.clone() };
        Self { record, hasher: Sha256::new() }
    }

    /// Takes a record in, in file order.
    pub(in crate::importers) fn add(&mut self, record: &RawRecord) {
        self.hasher.update(&record.bytes);
        self.hasher.update(b"\n");
        self.record.span.end = record.span.end;
        for loss in &record.losses {
            if !self.record.losses.contains(loss) {
                self.record.losses.push(loss);
            }
        }
    }

    /// What stands for all of them; it holds no bytes.
    pub(in crate::importers) fn finish(self) -> RawRecord {
        RawRecord { sha256: hexadecimal(&self.hasher.finalize()), ..self.record }
    }
}

/// Reads records again by their places, for runs whose records lie among those of others.
pub(in crate::importers) struct Again<'a> {
    source: &'a Source,
    file: BufReader<Box<dyn ReadSeek>>,
    at: u64,
}

impl<'a> Again<'a> {
    /// Opens the file once more.
    pub(in crate::importers) fn open(source: &'a Source) -> Result<Self, ImportError> {
        Ok(Self { source, file: BufReader::new(source.open_seekable()?), at: 0 })
    }

    /// The record at a place, not hashed.
    pub(in crate::importers) fn record(&mut self, (span, line): Place) -> Result<RawRecord, ImportError> {
        let bytes = self.bytes(span).map_err(|error| ImportError::io(self.source, error))?;
        let mut record = RawRecord::at(self.source, bytes, span.start, line);
        record.rewrite();
        Ok(record)
    }

    fn bytes(&mut self, span: ByteSpan) -> io::Result<Vec<u8>> {
        // Relative, so that neighbouring records come from the buffer.
        self.file.seek_relative(span.start as i64 - self.at as i64)?;
        let mut bytes = vec![0; (span.end - span.start) as usize];
        self.file.read_exact(&mut bytes)?;
        self.at = span.end;
        Ok(bytes)
    }
}

/// Where a record stands: its bytes and its line.
pub(in crate::importers) type Place = (ByteSpan, u64);
