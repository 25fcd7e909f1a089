//! OTLP in protobuf's binary form, translated to its JSON form, one batch a line.
//!
//! Files hold one message, or several, each behind its length: as a varint (the form of most
//! libraries) or as four bytes, the most significant first (the collector's file exporter). Field
//! numbers are those of `opentelemetry-proto` 1.

use std::fmt::Write as _;
use std::io::{self, BufReader, Read, Write as _};

use crate::canonical::write_string;
use crate::id::hexadecimal;
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::{ByteSpan, Quarantine};

/// Nesting of values that is followed.
const DEPTH_MAX: usize = 64;

/// How a field is written in JSON.
#[derive(Clone, Copy)]
enum Form {
    Text,
    /// Bytes, as hexadecimal digits.
    Hex,
    /// Bytes, as base64.
    Base64,
    /// An integer of 64 bits, as a string of digits.
    Integer,
    /// A small integer or an enumeration.
    Number,
    Double,
    Bool,
    Message(&'static [Field]),
    List(&'static [Field]),
}

/// A field of a message: number, name in JSON, form.
type Field = (u64, &'static str, Form);

static RESOURCE: [Field; 2] =
    [(1, "resource", Form::Message(&ATTRIBUTES)), (2, "scopeSpans", Form::List(&SCOPE_SPANS))];
static RESOURCE_LOGS: [Field; 2] =
    [(1, "resource", Form::Message(&ATTRIBUTES)), (2, "scopeLogs", Form::List(&SCOPE_LOGS))];
static ATTRIBUTES: [Field; 1] = [(1, "attributes", Form::List(&KEY_VALUE))];
static SCOPE_SPANS: [Field; 2] = [(1, "scope", Form::Message(&SCOPE)), (2, "spans", Form::List(&SPAN))];
static SCOPE_LOGS: [Field; 2] =
    [(1, "scope", Form::Message(&SCOPE)), (2, "logRecords", Form::List(&LOG_RECORD))];
static SCOPE: [Field; 2] = [(1, "name", Form::Text), (2, "version", Form::Text)];
static KEY_VALUE: [Field; 2] = [(1, "key", Form::Text), (2, "value", Form::Message(&ANY_VALUE))];
static ANY_VALUE: [Field; 7] = [
    (1, "stringValue", Form::Text),
    (2, "boolValue", Form::Bool),
    (3, "intValue", Form::Integer),
    (4, "doubleValue", Form::Double),
    (5, "arrayValue", Form::Message(&ARRAY_VALUE)),
    (6, "kvlistValue", Form::Message(&KVLIST_VALUE)),
    (7, "bytesValue", Form::Base64),
];
static SPAN: [Field; 12] = [
    (1, "traceId", Form::Hex),
    (2, "spanId", Form::Hex),
    (4, "parentSpanId", Form::Hex),
    (5, "name", Form::Text),
    (6, "kind", Form::Number),
    (7, "startTimeUnixNano", Form::Integer),
    (8, "endTimeUnixNano", Form::Integer),
    (9, "attributes", Form::List(&KEY_VALUE)),
    (10, "droppedAttributesCount", Form::Number),
    (11, "events", Form::List(&EVENT)),
    (13, "links", Form::List(&LINK)),
    (15, "status", Form::Message(&STATUS)),
];
static EVENT: [Field; 3] =
    [(1, "timeUnixNano", Form::Integer), (2, "name", Form::Text), (3, "attributes", Form::List(&KEY_VALUE))];
static LOG_RECORD: [Field; 8] = [
    (1, "timeUnixNano", Form::Integer),
    (2, "severityNumber", Form::Number),
    (5, "body", Form::Message(&ANY_VALUE)),
    (6, "attributes", Form::List(&KEY_VALUE)),
    (9, "traceId", Form::Hex),
    (10, "spanId", Form::Hex),
    (11, "observedTimeUnixNano", Form::Integer),
    (12, "eventName", Form::Text),
];
static ARRAY_VALUE: [Field; 1] = [(1, "values", Form::List(&ANY_VALUE))];
static KVLIST_VALUE: [Field; 1] = [(1, "values", Form::List(&KEY_VALUE))];
static LINK: [Field; 2] = [(1, "traceId", Form::Hex), (2, "spanId", Form::Hex)];
static STATUS: [Field; 2] = [(2, "message", Form::Text), (3, "code", Form::Number)];

/// A field's value on the wire.
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, one after the other.
struct Wire<'a>(&'a [u8]);

impl<'a> Wire<'a> {
    /// The next field; `Err` where the bytes are no message.
    fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, ()> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().map_err(|_| ())?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(usize::try_from(length).map_err(|_| ())?)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().map_err(|_| ())?))),
            _ => return Err(()),
        };
        Ok(Some((tag >> 3, value)))
    }

    fn varint(&mut self) -> Result<u64, ()> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.take(1)?.first().ok_or(())?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], ()> {
        let taken = self.0.get(..count).ok_or(())?;
        self.0 = &self.0[count..];
        Ok(taken)
    }
}

/// Writes a message as a JSON object. Fields that are not listed are left out.
fn write_message(bytes: &[u8], fields: &[Field], depth: usize, out: &mut String) -> Result<(), ()> {
    // Elements of a list need not follow each other.
    let mut lists: Vec<(&str, String)> = Vec::new();
    out.push('{');
    let mut wire = Wire(bytes);
    let mut first = true;
    while let Some((number, value)) = wire.next()? {
        let Some((_, name, form)) = fields.iter().find(|(known, ..)| *known == number) else { continue };
        if let Form::List(inner) = form {
            let Value::Bytes(bytes) = value else { return Err(()) };
            let at = lists.iter().position(|(list, _)| list == name).unwrap_or_else(|| {
                lists.push((name, String::new()));
                lists.len() - 1
            });
            let Some((_, list)) = lists.get_mut(at) else { return Err(()) };
            list.push_str(if list.is_empty() { "" } else { "," });
            write_nested(bytes, inner, depth, list)?;
            continue;
        }
        out.push_str(if std::mem::take(&mut first) { "\"" } else { ",\"" });
        out.push_str(name);
        out.push_str("\":");
        write_value(&value, *form, depth, out)?;
    }
    for (name, list) in lists {
        out.push_str(if std::mem::take(&mut first) { "" } else { "," });
        let _ = write!(out, "\"{name}\":[{list}]");
    }
    out.push('}');
    Ok(())
}

fn write_nested(bytes: &[u8], fields: &[Field], depth: usize, out: &mut String) -> Result<(), ()> {
    if depth >= DEPTH_MAX {
        out.push_str("{}");
        return Ok(());
    }
    write_message(bytes, fields, depth + 1, out)
}

fn write_value(value: &Value<'_>, form: Form, depth: usize, out: &mut String) -> Result<(), ()> {
    match (form, value) {
        (Form::Text, Value::Bytes(bytes)) => write_string(out, &String::from_utf8_lossy(bytes)),
        (Form::Hex, Value::Bytes(bytes)) => write_string(out, &hexadecimal(bytes)),
        (Form::Base64, Value::Bytes(bytes)) => {
            out.push('"');
            write_base64(bytes, out);
            out.push('"');
        }
        (Form::Integer, Value::Number(number)) => {
            let _ = write!(out, "\"{}\"", *number as i64);
        }
        (Form::Number, Value::Number(number)) => {
            let _ = write!(out, "{number}");
        }
        (Form::Bool, Value::Number(number)) => out.push_str(if *number == 0 { "false" } else { "true" }),
        (Form::Double, Value::Number(bits)) => match f64::from_bits(*bits) {
            number if number.is_finite() => {
                let _ = write!(out, "{number:?}");
            }
            _ => out.push_str("null"),
        },
        (Form::Message(fields), Value::Bytes(bytes)) => write_nested(bytes, fields, depth, out)?,
        _ => return Err(()),
    }
    Ok(())
}

fn write_base64(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            out.push(if digit <= group.len() { char::from(DIGITS[index]) } else { '=' });
        }
    }
}

/// How the messages of a file follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// One message, whose fields are the batches.
    Bare,
    /// A varint before each.
    Varint,
    /// Four bytes before each.
    FourBytes,
}

/// How the messages follow each other in a file of OTLP messages, seen from its first bytes; `None` for
/// any other file.
pub(super) fn framing(head: &[u8]) -> Option<Framing> {
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
    let mut reader = Counted { reader: BufReader::new(source.open()?), count: 0 };
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

/// A reader that knows how far it is.
struct Counted<R> {
    reader: R,
    count: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.count += read as u64;
        Ok(read)
    }
}

impl<R: Read> Counted<R> {
    /// How long the next message is.
    fn length(&mut self, framing: Framing) -> io::Result<Length> {
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
enum Length {
    Bytes(u64),
    /// The file's end.
    End,
    /// The file's end within the length.
    Cut,
    /// No length.
    Broken,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Framing, framing, resource, translate, write_base64};
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

    #[test]
    fn base64_is_padded() {
        let encoded = |bytes: &[u8]| {
            let mut out = String::new();
            write_base64(bytes, &mut out);
            out
        };
        assert_eq!(
            [encoded(b"abc"), encoded(b"ab"), encoded(b"a"), encoded(b"")],
            ["YWJj", "YWI=", "YQ==", ""]
        );
    }
}
