//! Schedules: how often the teacher acts in each round, as data.
//!
//! * a list: `1,0.8,0.6`, whose last value goes on;
//! * a line: `linear:1,0.2` starts at 1 and falls by 0.2 a round, `linear:1,0.2,0.6` not below 0.6.

use std::fmt;
use std::str::FromStr;

/// The probability that a turn is the teacher's, by round.
#[derive(Clone, Debug, PartialEq)]
pub enum Schedule {
    /// One value a round; the last goes on.
    List(Vec<f64>),
    /// `max(floor, first − fall · (round − 1))`.
    Linear {
        /// In the first round.
        first: f64,
        /// What it falls by from a round to the next.
        fall: f64,
        /// What it does not fall below.
        floor: f64,
    },
}

/// The most turns that a student acts for before the teacher takes over, by round; the last value goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes(Vec<u64>);

/// A text that is no schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no schedule: {reason}")]
pub struct ScheduleError {
    text: String,
    reason: &'static str,
}

impl Default for Schedule {
    /// max(0.6, 1 − 0.2 (i − 1)): 1, 0.8, 0.6, 0.6, …
    fn default() -> Self {
        Self::Linear { first: 1.0, fall: 0.2, floor: 0.6 }
    }
}

impl Schedule {
    /// The probability in a round, from 1.
    pub fn beta(&self, round: u32) -> f64 {
        match self {
            Self::List(values) => nth(values, round).unwrap_or(0.0),
            Self::Linear { first, fall, floor } => {
                // In thousandths of a thousandth, so that 1 − 0.2 · 2 is 0.6 and not its neighbor.
                let value = first - fall * f64::from(round.saturating_sub(1));
                ((value * 1e9).round() / 1e9).clamp(*floor, 1.0)
            }
        }
    }
}

impl Default for Prefixes {
    /// 2, 4, 8, 16, 32: recoup's own; the paper's numbers are not published.
    fn default() -> Self {
        Self(vec![2, 4, 8, 16, 32])
    }
}

impl Prefixes {
    /// The most turns in a round, from 1.
    pub fn most(&self, round: u32) -> u64 {
        nth(&self.0, round).unwrap_or(0)
    }
}

fn nth<T: Copy>(values: &[T], round: u32) -> Option<T> {
    values.get(round.saturating_sub(1) as usize).or(values.last()).copied()
}

impl FromStr for Schedule {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let fail = |reason| ScheduleError { text: text.to_owned(), reason };
        let numbers = |list: &str| -> Result<Vec<f64>, ScheduleError> {
            let number = |word: &str| word.trim().parse::<f64>().ok().filter(|it| (0.0..=1.0).contains(it));
            let all: Option<Vec<f64>> = list.split(',').map(number).collect();
            all.ok_or_else(|| fail("a probability is a number from 0 to 1"))
        };
        let Some(line) = text.strip_prefix("linear:") else { return Ok(Self::List(numbers(text)?)) };
        match numbers(line)?[..] {
            [first, fall] => Ok(Self::Linear { first, fall, floor: 0.0 }),
            [first, fall, floor] if floor <= first => Ok(Self::Linear { first, fall, floor }),
            [_, _, _] => Err(fail("the floor is above the first value")),
            _ => Err(fail("a line is `linear:FIRST,FALL` or `linear:FIRST,FALL,FLOOR`")),
        }
    }
}

impl FromStr for Prefixes {
    type Err = ScheduleError;

    fn from_str(text: &str) -> Result<Self, ScheduleError> {
        let all: Option<Vec<u64>> = text.split(',').map(|word| word.trim().parse().ok()).collect();
        all.map(Self).ok_or_else(|| ScheduleError {
            text: text.to_owned(),
            reason: "it takes numbers of turns, as `2,4,8`",
        })
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(values) => {
                f.write_str(&values.iter().map(f64::to_string).collect::<Vec<_>>().join(","))
            }
            Self::Linear { first, fall, floor } => write!(f, "linear:{first},{fall},{floor}"),
        }
    }
}

impl fmt::Display for Prefixes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::{Prefixes, Schedule};

    fn betas(schedule: &Schedule) -> Vec<f64> {
        (1..=5).map(|round| schedule.beta(round)).collect()
    }

    #[test]
    fn the_usual_schedule_is_that_of_the_paper() {
        assert_eq!(betas(&Schedule::default()), [1.0, 0.8, 0.6, 0.6, 0.6]);
        let prefixes: Vec<u64> = (1..=6).map(|round| Prefixes::default().most(round)).collect();
        assert_eq!(prefixes, [2, 4, 8, 16, 32, 32]);
    }

    #[test]
    fn schedules_are_data() {
        for (text, expected) in [
            ("1,0.5", [1.0, 0.5, 0.5, 0.5, 0.5]),
            ("0.3", [0.3; 5]),
            ("linear:1,0.3", [1.0, 0.7, 0.4, 0.1, 0.0]),
            ("linear:0.9,0.2,0.5", [0.9, 0.7, 0.5, 0.5, 0.5]),
        ] {
            let schedule: Schedule = text.parse().unwrap();
            assert_eq!(betas(&schedule), expected, "{text}");
            assert_eq!(schedule.to_string().parse::<Schedule>().unwrap(), schedule);
        }
        for wrong in ["", "2", "1;0.5", "linear:1", "linear:0.5,0.1,0.6", "1,nan", "-0.1"] {
            assert!(wrong.parse::<Schedule>().is_err(), "{wrong}");
        }
        assert!("2,x".parse::<Prefixes>().is_err());
    }
}
