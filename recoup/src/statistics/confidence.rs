//! A confidence level, and the bounds that hold at it.

use serde::{Deserialize, Serialize};

/// How often an interval must contain the truth: a number strictly between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Confidence(f64);

impl Confidence {
    /// 95 %.
    pub const P95: Self = Self(0.95);

    /// The level, or nothing where it is not strictly between 0 and 1.
    pub fn new(level: f64) -> Option<Self> {
        (level > 0.0 && level < 1.0).then_some(Self(level))
    }

    /// The level, as 0.95.
    pub fn level(self) -> f64 {
        self.0
    }

    /// The share of intervals that may miss: 1 − level.
    pub fn error_rate(self) -> f64 {
        1.0 - self.0
    }
}

/// The ends of an interval around an estimate that is told elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Bounds {
    /// Lower bound.
    pub low: f64,
    /// Upper bound, never below the lower one.
    pub high: f64,
}

impl Bounds {
    /// Whether a value lies between the bounds or on one.
    pub fn contains(self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

#[cfg(test)]
mod tests {
    use super::Confidence;

    #[test]
    fn certainty_and_nonsense_are_no_levels() {
        for level in [0.0, 1.0, -0.5, 95.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Confidence::new(level), None, "{level}");
        }
        assert_eq!(Confidence::new(0.95), Some(Confidence::P95));
    }
}
