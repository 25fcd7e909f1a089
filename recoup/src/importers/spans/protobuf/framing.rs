//! How messages follow each other in a file: bare, or each behind its length.

use std::io::{self, Read};

use super::message::{Value, Wire};

/// How the messages of a file follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::importers::spans) enum Framing {
    /// One message, whose fields are the batches.
    Bare,
    /// A varint before each.
    Varint,
    /// Four bytes before each.
    FourBytes,
}

/// How the messages follow each other in a file of OTLP messages, seen from its first bytes; `None` for
/// any other file.
pub(in crate::importers::spans) fn framing(head: &[u8]) -> Option<Framing> {
    if head.first() == Some(&0x0a) && is_batch(head) {
        return Some(Framing::Bare);
    }
    let mut wire = Wire(head);
    if wire.varint().is_ok_and(|length| length > 0) && is_batch(wire.0) {
        return Some(Framing::Varint);
    }
    (head.first() == Some(&0) && head.get(4..).is_some_and(is_batch)).then_some(Framing::FourBytes)
}

/// True where a batch begins whose first span has ids of the right sizes, or whose first log record
/// a time.
fn is_batch(bytes: &[u8]) -> bool {
    let down = |bytes, wanted: u64| -> Option<&[u8]> {
        let mut wire = Wire(bytes);
        loop {
            let tag = wire.varint().ok()?;
            let length = (tag & 7 == 2).then(|| wire.varint().ok())??;
            // The head may end before the field does.
            let length = usize::try_from(length).ok()?;
            if tag >> 3 == wanted {
                return wire.0.get(..length.min(wire.0.len()));
            }
            wire.take(length).ok()?;
        }
    };
    let record = down(bytes, 1).and_then(|batch| down(batch, 2)).and_then(|scope| down(scope, 2));
    record.is_some_and(|record| {
        let is_span = record.starts_with(&[0x0a, 16]) && record.get(18..20) == Some(&[0x12, 8]);
        is_span || is_log_record(record)
    })
}

/// True for fields of a log record up to one of its times.
fn is_log_record(bytes: &[u8]) -> bool {
    let mut wire = Wire(bytes);
    while let Ok(Some((number, value))) = wire.next() {
        match (number, value) {
            (1 | 11, Value::Number(_)) => return true,
            (2, Value::Number(_)) | (3 | 5 | 6 | 9 | 10 | 12, Value::Bytes(_)) => {}
            _ => return false,
        }
    }
    false
}

/// A reader that knows how far it is.
pub(super) struct Counted<R> {
    reader: R,
    /// Bytes passed.
    pub(super) count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.count += read as u64;
        Ok(read)
    }
}

impl<R: Read> Counted<R> {
    /// One that stands at the beginning.
    pub(super) fn new(reader: R) -> Self {
        Self { reader, count: 0 }
    }

    /// How long the next message is.
    pub(super) fn length(&mut self, framing: Framing) -> io::Result<Length> {
        match framing {
            Framing::Bare => match self.varint()? {
                Length::Bytes(tag) if tag & 7 != 2 => Ok(Length::Broken),
                Length::Bytes(_) => Ok(match self.varint()? {
                    Length::End => Length::Cut,
                    length => length,
                }),
                other => Ok(other),
            },
            Framing::Varint => self.varint(),
            Framing::FourBytes => self.four_bytes(),
        }
    }

    fn varint(&mut self) -> io::Result<Length> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            if self.read(&mut byte)? == 0 {
                return Ok(if shift == 0 { Length::End } else { Length::Cut });
            }
            number |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(Length::Bytes(number));
            }
        }
        Ok(Length::Broken)
    }

    fn four_bytes(&mut self) -> io::Result<Length> {
        let mut bytes = [0; 4];
        let mut filled = 0;
        while filled < 4 {
            match self.read(&mut bytes[filled..])? {
                0 => return Ok(if filled == 0 { Length::End } else { Length::Cut }),
                read => filled += read,
            }
        }
        Ok(Length::Bytes(u64::from(u32::from_be_bytes(bytes))))
    }
}

/// What stands where a length is due.
pub(super) enum Length {
    Bytes(u64),
    /// The file's end.
    End,
    /// The file's end within the length.
    Cut,
    /// No length.
    Broken,
}
