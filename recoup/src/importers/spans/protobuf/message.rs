//! Messages of OTLP in protobuf's binary form, written as JSON. Field numbers are those of
//! `opentelemetry-proto` 1.

use std::fmt::Write as _;

use crate::canonical::write_string;
use crate::id::hexadecimal;

/// Nesting of values that is followed.
const DEPTH_MAX: usize = 64;

/// How a field is written in JSON.
#[derive(Clone, Copy)]
pub(super) enum Form {
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
pub(super) type Field = (u64, &'static str, Form);

pub(super) static RESOURCE: [Field; 2] =
    [(1, "resource", Form::Message(&ATTRIBUTES)), (2, "scopeSpans", Form::List(&SCOPE_SPANS))];
pub(super) static RESOURCE_LOGS: [Field; 2] =
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
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, one after the other.
pub(super) struct Wire<'a>(pub(super) &'a [u8]);

impl<'a> Wire<'a> {
    /// The next field; `Err` where the bytes are no message.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Value<'a>)>, ()> {
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

    /// The next number of variable length.
    pub(super) fn varint(&mut self) -> Result<u64, ()> {
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

    /// The next bytes.
    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], ()> {
        let taken = self.0.get(..count).ok_or(())?;
        self.0 = &self.0[count..];
        Ok(taken)
    }
}

/// Writes a message as a JSON object. Fields that are not listed are left out.
pub(super) fn write_message(
    bytes: &[u8],
    fields: &[Field],
    depth: usize,
    out: &mut String,
) -> Result<(), ()> {
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

#[cfg(test)]
mod tests {
    use super::write_base64;

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
