//! A value of a column as JSON text.

use std::fmt::Write as _;

use parquet::basic::{LogicalType, TimeUnit};
use parquet::data_type::Decimal;
use parquet::record::Field;
use parquet::schema::types::Type;

use super::super::cell::write_text;
use crate::calendar::civil_from_days;
use crate::canonical::{write_float, write_string};
use crate::importers::data_url;

const MICROSECONDS_PER_DAY: i64 = 86_400_000_000;

/// The text of a row while it grows.
pub(super) struct Text {
    pub(super) out: String,
    /// What JSON has no word for.
    pub(super) losses: Vec<&'static str>,
    limit: u64,
}

impl Text {
    /// Text that grows little beyond `limit` bytes.
    pub(super) fn new(limit: u64) -> Self {
        Self { out: String::new(), losses: Vec::new(), limit }
    }

    /// True once it is longer than allowed; nothing more is written then.
    pub(super) fn is_full(&self) -> bool {
        self.out.len() as u64 > self.limit
    }

    /// Appends a column's value; a text that is a JSON object or array stands as that value.
    pub(super) fn column(&mut self, value: &Field, kind: &Type) {
        match value {
            Field::Str(text) if !self.is_full() => write_text(&mut self.out, text),
            Field::Long(nanoseconds) if is_nanoseconds(kind) => self.instant(nanoseconds.div_euclid(1000)),
            value => self.value(value),
        }
    }

    fn value(&mut self, value: &Field) {
        if self.is_full() {
            return;
        }
        match value {
            Field::Null => self.out.push_str("null"),
            Field::Bool(value) => self.shown(value),
            Field::Byte(value) => self.shown(value),
            Field::Short(value) => self.shown(value),
            Field::Int(value) => self.shown(value),
            Field::Long(value) => self.shown(value),
            Field::UByte(value) => self.shown(value),
            Field::UShort(value) => self.shown(value),
            Field::UInt(value) => self.shown(value),
            Field::ULong(value) => self.shown(value),
            Field::Float16(value) => self.number(f64::from(value.to_f32())),
            // As short as its own precision allows, not as a double's would.
            Field::Float(value) => self.number(value.to_string().parse().unwrap_or(f64::NAN)),
            Field::Double(value) => self.number(*value),
            Field::Decimal(value) => self.decimal(value),
            Field::Str(text) => write_string(&mut self.out, text),
            Field::Bytes(bytes) => self.bytes(bytes.data()),
            Field::Date(days) => self.quoted(date(i64::from(*days))),
            Field::TimeMillis(value) => self.quoted(time_of_day(i64::from(*value) * 1000)),
            Field::TimeMicros(value) => self.quoted(time_of_day(*value)),
            Field::TimestampMillis(value) => self.instant(value.saturating_mul(1000)),
            Field::TimestampMicros(value) => self.instant(*value),
            Field::Group(row) => {
                self.members(row.get_column_iter().map(|(name, value)| (name.as_str(), value)));
            }
            Field::ListInternal(list) => self.list(list.elements().iter(), Self::value),
            Field::MapInternal(map) => {
                let keys: Option<Vec<&str>> = map.entries().iter().map(|(key, _)| text_of(key)).collect();
                match keys {
                    Some(keys) => {
                        self.members(keys.into_iter().zip(map.entries().iter().map(|(_, value)| value)))
                    }
                    None => self.list(map.entries().iter(), |text, (key, value)| {
                        text.list([key, value].into_iter(), Self::value);
                    }),
                }
            }
        }
    }

    fn members<'a>(&mut self, members: impl Iterator<Item = (&'a str, &'a Field)>) {
        self.out.push('{');
        for (index, (name, value)) in members.enumerate() {
            self.out.push_str(if index > 0 { "," } else { "" });
            write_string(&mut self.out, name);
            self.out.push(':');
            self.value(value);
        }
        self.out.push('}');
    }

    fn list<'a, T: 'a>(&mut self, items: impl Iterator<Item = &'a T>, write: impl Fn(&mut Self, &'a T)) {
        self.out.push('[');
        for (index, item) in items.enumerate() {
            self.out.push_str(if index > 0 { "," } else { "" });
            write(self, item);
        }
        self.out.push(']');
    }

    fn shown(&mut self, value: impl std::fmt::Display) {
        let _ = write!(self.out, "{value}");
    }

    fn quoted(&mut self, text: impl std::fmt::Display) {
        let _ = write!(self.out, "\"{text}\"");
    }

    fn number(&mut self, value: f64) {
        if value.is_finite() {
            write_float(&mut self.out, value);
        } else {
            self.lose("a number that is not finite became null");
            self.out.push_str("null");
        }
    }

    /// Bytes that old writers did not mark as text, or bytes.
    fn bytes(&mut self, bytes: &[u8]) {
        match std::str::from_utf8(bytes) {
            Ok(text) => write_string(&mut self.out, text),
            Err(_) => {
                self.lose("bytes became a data URL");
                write_string(&mut self.out, &data_url::encode("application/octet-stream", bytes));
            }
        }
    }

    fn decimal(&mut self, value: &Decimal) {
        match decimal(value.data(), value.scale()) {
            Some(text) => self.out.push_str(&text),
            None => {
                self.lose("a decimal too long to read became null");
                self.out.push_str("null");
            }
        }
    }

    /// Microseconds since 1970.
    fn instant(&mut self, microseconds: i64) {
        let day = date(microseconds.div_euclid(MICROSECONDS_PER_DAY));
        let time = time_of_day(microseconds.rem_euclid(MICROSECONDS_PER_DAY));
        self.quoted(format_args!("{day}T{time}Z"));
    }

    fn lose(&mut self, what: &'static str) {
        if !self.losses.contains(&what) {
            self.losses.push(what);
        }
    }
}

fn text_of(key: &Field) -> Option<&str> {
    match key {
        Field::Str(text) => Some(text),
        Field::Bytes(bytes) => std::str::from_utf8(bytes.data()).ok(),
        _ => None,
    }
}

/// True for instants that older readers would take for plain numbers.
fn is_nanoseconds(kind: &Type) -> bool {
    match kind.get_basic_info().logical_type_ref() {
        Some(LogicalType::Timestamp(time)) => time.unit == TimeUnit::NANOS,
        _ => false,
    }
}

fn date(days: i64) -> String {
    let (year, month, day) = civil_from_days(days);
    format!("{year:04}-{month:02}-{day:02}")
}

fn time_of_day(microseconds: i64) -> String {
    let (seconds, fraction) = (microseconds.div_euclid(1_000_000), microseconds.rem_euclid(1_000_000));
    let clock = format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
    if fraction == 0 { clock } else { format!("{clock}.{fraction:06}") }
}

/// A big-endian two's complement number with `scale` digits behind the point.
fn decimal(bytes: &[u8], scale: i32) -> Option<String> {
    let sign = if bytes.first()? & 0x80 == 0 { 0 } else { 0xff };
    let mut wide = [sign; 16];
    let start = wide.len().checked_sub(bytes.len())?;
    wide.get_mut(start..)?.copy_from_slice(bytes);
    let value = i128::from_be_bytes(wide);
    let scale = usize::try_from(scale).ok().filter(|scale| *scale <= 40)?;
    let digits = format!("{:0width$}", value.unsigned_abs(), width = scale + 1);
    let (whole, fraction) = digits.split_at(digits.len() - scale);
    let sign = if value < 0 { "-" } else { "" };
    Some(if scale == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") })
}

#[cfg(test)]
mod tests {
    use parquet::data_type::ByteArray;
    use parquet::record::Field;

    use super::{Text, decimal};

    fn json(value: &Field) -> String {
        let mut text = Text::new(1 << 20);
        text.value(value);
        text.out
    }

    #[test]
    fn every_kind_of_value_has_a_text() {
        for (value, text) in [
            (Field::Float(0.1), "0.1"),
            (Field::Double(f64::NAN), "null"),
            (Field::ULong(u64::MAX), "18446744073709551615"),
            (Field::Date(-1), r#""1969-12-31""#),
            (Field::TimestampMillis(1_541_186_529_153), r#""2018-11-02T19:22:09.153000Z""#),
            (Field::TimestampMicros(i64::MIN), r#""-290308-12-21T19:59:05.224192Z""#),
            (Field::TimestampMillis(i64::MAX), r#""294247-01-10T04:00:54.775807Z""#),
            (Field::TimeMillis(14_611), r#""00:00:14.611000""#),
            (Field::Bytes(ByteArray::from("text")), r#""text""#),
            (Field::Bytes(ByteArray::from(vec![0xff])), r#""data:application/octet-stream;base64,/w==""#),
            (Field::Str("{\"a\":1}".to_owned()), r#""{\"a\":1}""#),
        ] {
            assert_eq!(json(&value), text);
        }
    }

    #[test]
    fn decimals_have_their_point() {
        assert_eq!(decimal(&[0xff, 0x85], 2).as_deref(), Some("-1.23"));
        assert_eq!(decimal(&[5], 3).as_deref(), Some("0.005"));
        assert_eq!(decimal(&[5], 0).as_deref(), Some("5"));
        assert_eq!(decimal(&[1; 17], 0), None);
        assert_eq!(decimal(&[], 0), None);
        assert_eq!(decimal(&[1], -1), None);
    }

    #[test]
    fn a_row_stops_growing_at_its_limit() {
        let mut text = Text::new(4);
        for _ in 0..100 {
            text.value(&Field::Str("long".to_owned()));
        }
        assert!(text.is_full());
        assert_eq!(text.out, r#""long""#);
    }
}
