//! A time of a trace: comparable, and in the words of its source or as RFC 3339.

use crate::calendar::{civil_from_days, days_from_civil};

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Time {
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    nanos: i128,
    text: String,
}

impl Time {
    /// A time that a source counts in nanoseconds since 1970; `None` for zero, which stands for none.
    pub(super) fn from_nanos(nanos: i128) -> Option<Self> {
        (nanos > 0).then(|| Self { nanos, text: rfc3339(nanos) })
    }

    /// A time that a source writes as a date and a time of day, with a zone or in UTC without one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(Self { nanos: parse(text.trim())?, text: text.to_owned() })
    }

    /// What comes so long after it: `PT2M8.9S` in its variants, or a number of nanoseconds.
    pub(super) fn after(&self, took: &str) -> Option<Self> {
        let nanos = took.parse().ok().or_else(|| duration(took))?;
        Self::from_nanos(self.nanos.checked_add(nanos)?)
    }

    /// As the source writes it.
    pub(super) fn as_str(&self) -> &str {
        &self.text
    }
}

/// `2026-03-01 10:00:00.25+01:00` in its variants.
fn parse(text: &str) -> Option<i128> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let marks = text.as_bytes();
    if marks.get(4) != Some(&b'-')
        || marks.get(7) != Some(&b'-')
        || !matches!(marks.get(10)?, b'T' | b't' | b' ')
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute) = (number(11, 13)?, number(14, 16)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (second, rest) =
        if marks.get(16) == Some(&b':') { (number(17, 19)?, text.get(19..)?) } else { (0, text.get(16..)?) };
    let (fraction, zone) = match rest.strip_prefix('.') {
        None => ("", rest),
        Some(rest) => rest.split_at(rest.bytes().take_while(u8::is_ascii_digit).count()),
    };
    let nanos: i128 = format!("{fraction:0<9}").get(..9)?.parse().ok()?;
    let offset = match zone.trim() {
        "" | "Z" | "z" | "UTC" => 0,
        zone => {
            let sign = if zone.starts_with('-') { -1 } else { 1 };
            let digits: String = zone.strip_prefix(['+', '-'])?.split(':').collect();
            let (hours, minutes): (i64, i64) =
                (digits.get(..2)?.parse().ok()?, digits.get(2..4)?.parse().ok()?);
            sign * (hours * 3600 + minutes * 60)
        }
    };
    let seconds =
        days_from_civil(year, month, day) * SECONDS_PER_DAY + hour * 3600 + minute * 60 + second - offset;
    Some(i128::from(seconds) * NANOS_PER_SECOND + nanos)
}

/// Nanoseconds of a duration as ISO 8601 writes it, in days and shorter units.
fn duration(text: &str) -> Option<i128> {
    let mut rest = text.strip_prefix('P')?;
    let (mut nanos, mut is_time) = (0_i128, false);
    while !rest.is_empty() {
        if let Some(time) = rest.strip_prefix('T') {
            (rest, is_time) = (time, true);
            continue;
        }
        let digits = rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (number, unit) = rest.split_at(digits);
        let seconds: f64 = match unit.as_bytes().first()? {
            b'D' if !is_time => 86_400.0,
            b'H' if is_time => 3600.0,
            b'M' if is_time => 60.0,
            b'S' if is_time => 1.0,
            _ => return None,
        };
        let number: f64 = number.parse().ok()?;
        nanos = nanos.checked_add((number * seconds * 1e9) as i128)?;
        rest = unit.get(1..)?;
    }
    Some(nanos)
}

fn rfc3339(nanos: i128) -> String {
    let seconds = nanos.div_euclid(NANOS_PER_SECOND) as i64;
    let (days, of_day) = (seconds.div_euclid(SECONDS_PER_DAY), seconds.rem_euclid(SECONDS_PER_DAY));
    let (year, month, day) = civil_from_days(days);
    let fraction = format!(".{:09}", nanos.rem_euclid(NANOS_PER_SECOND));
    let fraction = fraction.trim_end_matches('0').trim_end_matches('.');
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}Z")
}

#[cfg(test)]
mod tests {
    use super::Time;

    #[test]
    fn nanoseconds_are_written_as_a_date_and_read_back() {
        for (nanos, text) in [
            (1_709_208_000_000_000_000, "2024-02-29T12:00:00Z"),
            (1_767_225_599_120_000_000, "2025-12-31T23:59:59.12Z"),
            (1, "1970-01-01T00:00:00.000000001Z"),
        ] {
            let time = Time::from_nanos(nanos).unwrap();
            assert_eq!(time.as_str(), text);
            assert_eq!(Time::parse(text), Some(time));
        }
        assert_eq!(Time::from_nanos(0), None);
    }

    #[test]
    fn a_duration_leads_from_start_to_end() {
        let start = Time::parse("2026-03-01T10:00:00Z").unwrap();
        let ends = ["PT1.5S", "P1DT2M", "250000000", "PT", "1.5", "PT5", "P5M", "PTxS", "PTüS"]
            .map(|took| start.after(took).map_or("none".to_owned(), |end| end.as_str().to_owned()));
        assert_eq!(
            ends,
            [
                "2026-03-01T10:00:01.5Z",
                "2026-03-02T10:02:00Z",
                "2026-03-01T10:00:00.25Z",
                "2026-03-01T10:00:00Z",
                "none",
                "none",
                "none",
                "none",
                "none"
            ]
        );
    }

    #[test]
    fn a_time_without_a_zone_is_utc() {
        let same = ["2024-02-29 12:00:00.5", "2024-02-29T12:00:00.500000Z", "2024-02-29T14:30:00.5+02:30"];
        let nanos: Vec<_> = same.iter().map(|text| Time::parse(text).unwrap().nanos).collect();
        assert!(nanos.iter().all(|at| *at == 1_709_208_000_500_000_000), "{nanos:?}");
        for other in
            ["", "yesterday", "2024-13-01 00:00:00", "2024-02-2", "ü024-02-29 12:00:00", "2024-02-29 12"]
        {
            assert_eq!(Time::parse(other), None, "{other}");
        }
    }
}
