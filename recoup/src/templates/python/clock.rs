//! `strftime` on a time that the caller gives: a template that prints today's date prints the caller's.

use std::fmt::Write as _;

use crate::calendar::days_from_civil;

/// A point of local time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalTime {
    year: i64,
    /// 1–12.
    month: u32,
    /// 1–31.
    day: u32,
    hour: u32,
    minute: u32,
    second: u32,
}

const WEEKDAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl LocalTime {
    /// Reads `2026-11-29` or `2026-11-29T22:50:01`; what follows the seconds is ignored. `None` where it
    /// is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
        let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
        let is_date = text.get(4..5) == Some("-") && text.get(7..8) == Some("-");
        let has_time = matches!(text.get(10..11), Some("T" | " "));
        let (hour, minute, second) =
            if has_time { (number(11..13)?, number(14..16)?, number(17..19)?) } else { (0, 0, 0) };
        let is_valid = (1..=12).contains(&month)
            && (1..=31).contains(&day)
            && hour < 24
            && minute < 60
            && second < 60
            && is_date;
        is_valid.then_some(Self { year: i64::from(year), month, day, hour, minute, second })
    }

    /// Days since 1970-01-01.
    fn days(self) -> i64 {
        days_from_civil(self.year, i64::from(self.month), i64::from(self.day))
    }

    /// Days since Monday, 0–6.
    fn weekday(self) -> usize {
        (self.days() + 3).rem_euclid(7) as usize
    }

    /// The day of the year, 1–366.
    fn day_of_year(self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..self }.days() + 1
    }

    /// The time in a `strftime` format, in the C locale. Directives it does not know stay as they are.
    pub(crate) fn format(self, format: &str) -> String {
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            match chars.next() {
                // `%-d`: without padding, as glibc has it.
                Some('-') => match chars.next() {
                    Some(directive) => {
                        let padded = self.directive(directive);
                        let bare = padded.trim_start_matches('0');
                        out.push_str(if bare.is_empty() { "0" } else { bare });
                    }
                    None => out.push_str("%-"),
                },
                Some(directive) => out.push_str(&self.directive(directive)),
                None => out.push('%'),
            }
        }
        out
    }

    fn directive(self, directive: char) -> String {
        let weekday = WEEKDAYS.get(self.weekday()).copied().unwrap_or_default();
        let month = MONTHS.get(self.month as usize - 1).copied().unwrap_or_default();
        let of_twelve = (self.hour + 11) % 12 + 1;
        let half = if self.hour < 12 { "AM" } else { "PM" };
        let mut out = String::new();
        let _ = match directive {
            'Y' => write!(out, "{}", self.year),
            'y' => write!(out, "{:02}", self.year.rem_euclid(100)),
            'm' => write!(out, "{:02}", self.month),
            'd' => write!(out, "{:02}", self.day),
            'e' => write!(out, "{:2}", self.day),
            'H' => write!(out, "{:02}", self.hour),
            'I' => write!(out, "{of_twelve:02}"),
            'M' => write!(out, "{:02}", self.minute),
            'S' => write!(out, "{:02}", self.second),
            'p' => out.write_str(half),
            'j' => write!(out, "{:03}", self.day_of_year()),
            'A' => out.write_str(weekday),
            'a' => out.write_str(&weekday[..3]),
            'B' => out.write_str(month),
            'b' | 'h' => out.write_str(&month[..3]),
            'F' => out.write_str(&self.format("%Y-%m-%d")),
            'D' | 'x' => out.write_str(&self.format("%m/%d/%y")),
            'T' | 'X' => out.write_str(&self.format("%H:%M:%S")),
            'R' => out.write_str(&self.format("%H:%M")),
            'c' => out.write_str(&self.format("%a %b %e %H:%M:%S %Y")),
            'n' => out.write_char('\n'),
            't' => out.write_char('\t'),
            '%' => out.write_char('%'),
            // A naive time has no zone.
            'z' | 'Z' => Ok(()),
            other => write!(out, "%{other}"),
        };
        out
    }
}

#[cfg(test)]
mod tests {
    use super::LocalTime;

    #[test]
    fn dates_are_written_as_strftime_does() {
        let time = LocalTime::parse("2026-11-09T22:05:01Z").unwrap();
        assert_eq!(time.format("%d %b %Y"), "09 Nov 2026");
        assert_eq!(time.format("%A, %B %-d, %Y %I:%M %p %j%%"), "Monday, November 9, 2026 10:05 PM 313%");
        assert_eq!(LocalTime::parse("2024-02-29").unwrap().format("%a %j"), "Thu 060");
        assert_eq!(LocalTime::parse("2024-13-01"), None);
        assert_eq!(LocalTime::parse("soon"), None);
    }
}
