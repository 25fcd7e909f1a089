//! Records that together hold one run, as the lines of a session do.

use sha2::{Digest as _, Sha256};

use super::{Layout, RawRecord, Records, Stop};
use crate::id::hexadecimal;
use crate::importers::{Event, ImportError, Sink, Source};

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
