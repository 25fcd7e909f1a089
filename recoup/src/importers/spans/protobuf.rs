//! OTLP in protobuf's binary form, translated to its JSON form, one batch a line.
//!
//! Files hold one message, or several, each behind its length: as a varint (the form of most
//! libraries) or as four bytes, the most significant first (the collector's file exporter).

mod framing;
mod message;

use std::io::{self, BufReader, Read as _, Write as _};

use self::framing::{Counted, Length};
pub(super) use self::framing::{Framing, framing};
use self::message::{RESOURCE, RESOURCE_LOGS, Value, Wire, write_message};
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::{ByteSpan, Quarantine};

/// The file as OTLP's JSON, one batch of a resource a line, in a temporary file; and the file's size. A
/// message that is none is quarantined; where its length is none, so is the rest of the file.
///
/// # Errors
/// When the file cannot be read or the sink fails.
pub(super) fn translate(
    source: &Source,
    framing: Framing,
    sink: &mut dyn Sink,
) -> Result<(Source, u64), ImportError> {
    let mut reader = Counted::new(BufReader::new(source.open()?));
    let failed = |error: io::Error| ImportError::io(source, error);
    let mut spool = tempfile::tempfile().map_err(failed)?;
    let mut writer = io::BufWriter::new(&mut spool);
    let limit = source.options().record_bytes_max;
    loop {
        let start = reader.count;
        let problem = |code: &str, reason: &str, end: u64| {
            Event::Quarantine(Quarantine {
                uri: source.uri().to_owned(),
                line: None,
                span: Some(ByteSpan { start, end }),
                code: code.to_owned(),
                reason: reason.to_owned(),
            })
        };
        let length = match reader.length(framing).map_err(failed)? {
            Length::End => break,
            Length::Bytes(length) => length,
            Length::Cut => {
                sink.event(problem("truncated", "the file ends inside a message's length", reader.count))?;
                break;
            }
            Length::Broken => {
                io::copy(&mut reader, &mut io::sink()).map_err(failed)?;
                sink.event(problem("invalid-protobuf", "from here on no messages of OTLP", reader.count))?;
                break;
            }
        };
        let mut bytes = Vec::new();
        let head = reader.count;
        (&mut reader).take(length.min(limit)).read_to_end(&mut bytes).map_err(failed)?;
        if length > limit {
            io::copy(&mut (&mut reader).take(length - limit), &mut io::sink()).map_err(failed)?;
        }
        if reader.count - head < length {
            sink.event(problem("truncated", "the file ends inside a message", reader.count))?;
            break;
        }
        if length > limit {
            let reason = format!("a message of more than {limit} bytes; raise `--max-record` to read it");
            sink.event(problem("too-large", &reason, reader.count))?;
            continue;
        }
        let line = if framing == Framing::Bare { resource(&bytes) } else { batch(&bytes) };
        let Ok(line) = line else {
            sink.event(problem("invalid-protobuf", "no message of OTLP", reader.count))?;
            continue;
        };
        writer.write_all(line.as_bytes()).and_then(|()| writer.write_all(b"\n")).map_err(failed)?;
    }
    writer.flush().map_err(failed)?;
    drop(writer);
    io::Seek::rewind(&mut spool).map_err(failed)?;
    let translated = Source::from_reader(source.uri(), spool, source.options().clone()).map_err(failed)?;
    Ok((translated, reader.count))
}

/// The batches of a message.
fn batch(bytes: &[u8]) -> Result<String, ()> {
    let mut resources = Vec::new();
    let mut wire = Wire(bytes);
    while let Some((number, value)) = wire.next()? {
        if let (1, Value::Bytes(bytes)) = (number, value) {
            resources.push(one(bytes)?);
        }
    }
    Ok(format!("{{\"resourceSpans\":[{}]}}", resources.join(",")))
}

fn resource(bytes: &[u8]) -> Result<String, ()> {
    Ok(format!("{{\"resourceSpans\":[{}]}}", one(bytes)?))
}

/// One resource's spans or log records. Which they are is seen from the first: a span begins with an
/// id, a log record with a time.
fn one(bytes: &[u8]) -> Result<String, ()> {
    let mut out = String::with_capacity(bytes.len() * 2);
    let spans = write_message(bytes, &RESOURCE, 0, &mut out);
    if spans.is_err() {
        out.clear();
        write_message(bytes, &RESOURCE_LOGS, 0, &mut out)?;
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Framing, framing, resource, translate};
    use crate::importers::{Event, Source};

    /// A field of bytes.
    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, bytes.len() as u8], bytes].concat()
    }

    fn batch() -> Vec<u8> {
        let number = field(1, b"n").into_iter().chain(field(2, &[0x18, 0xff, 0x01])).collect::<Vec<_>>();
        let ids =
            [field(1, &[7; 16]), field(2, &[8; 8]), field(5, "chät".as_bytes()), field(9, &number)].concat();
        let time = [0x39, 1, 0, 0, 0, 0, 0, 0, 0];
        field(2, &field(2, &[ids, time.to_vec()].concat()))
    }

    #[test]
    fn a_span_is_written_as_otlp_writes_it_in_json() {
        let json = resource(&batch()).unwrap();
        let span = format!(
            r#"{{"traceId":"{}","spanId":"{}","name":"chät","startTimeUnixNano":"1","attributes":[{{"key":"n","value":{{"intValue":"255"}}}}]}}"#,
            "07".repeat(16),
            "08".repeat(8)
        );
        assert_eq!(json, format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{span}]}}]}}]}}"#));
        assert!(resource(&batch()[..20]).is_err());
    }

    #[test]
    fn the_three_framings_are_told_apart() {
        let message = field(1, &batch());
        assert_eq!(framing(&message), Some(Framing::Bare));
        assert_eq!(framing(&[&[message.len() as u8], &*message].concat()), Some(Framing::Varint));
        assert_eq!(framing(&[&[0, 0, 0, message.len() as u8], &*message].concat()), Some(Framing::FourBytes));
        for other in [&b"{\"a\":1}"[..], b"\n\n{\"a\":1}", b"", b"PK\x03\x04", b"\x0a\x02\x12\x00"] {
            assert_eq!(framing(other), None);
        }
    }

    /// Lines of the translation, and codes with the first byte of what is quarantined.
    fn translated(bytes: &[u8], framing: Framing) -> (usize, Vec<(String, u64)>) {
        let source = Source::from_bytes("spans.binpb", bytes.to_vec(), Arc::default());
        let mut events: Vec<Event> = Vec::new();
        let (lines, _) = translate(&source, framing, &mut events).unwrap();
        let lines = lines.read_all(1 << 20).unwrap();
        let entries = events.into_iter().filter_map(|event| match event {
            Event::Quarantine(entry) => Some((entry.code, entry.span.unwrap().start)),
            _ => None,
        });
        (memchr::memchr_iter(b'\n', &lines).count(), entries.collect())
    }

    #[test]
    fn a_broken_message_costs_only_itself_and_a_cut_one_only_the_tail() {
        let message = field(1, &batch());
        let framed = [&[message.len() as u8], &*message].concat();
        let size = framed.len() as u64;
        let broken = [&*framed, &[3, 0xff, 0xff, 0xff], &framed].concat();
        assert_eq!(translated(&broken, Framing::Varint), (2, vec![("invalid-protobuf".to_owned(), size)]));
        for tail in [&framed[..9], &[0x80]] {
            let cut = [&*framed, tail].concat();
            assert_eq!(translated(&cut, Framing::Varint), (1, vec![("truncated".to_owned(), size)]));
        }
        let junk = [&*message, &[0xff, 1, 2, 3]].concat();
        let size = message.len() as u64;
        assert_eq!(translated(&junk, Framing::Bare), (1, vec![("invalid-protobuf".to_owned(), size)]));
    }
}
