//! Prices and costs. A cost is a whole number of picodollars, so that sums are exact and a cap is a cap.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Serialize, Serializer};

use super::Usage;

/// Picodollars in a dollar.
const DOLLAR: f64 = 1e12;

/// An amount of money: picodollars, at most 18 million dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(pub u64);

impl Cost {
    /// From dollars, rounded to the next picodollar; negative amounts and NaN are 0.
    pub fn from_usd(usd: f64) -> Self {
        // A cast from a float saturates.
        Self((usd * DOLLAR).round() as u64)
    }

    /// In dollars.
    pub fn to_usd(self) -> f64 {
        self.0 as f64 / DOLLAR
    }
}

impl Add for Cost {
    type Output = Self;

    /// The sum, at most the greatest amount there is.
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl fmt::Display for Cost {
    /// Dollars with cents, and as many digits as small amounts need.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_usd() {
            usd if usd == 0.0 || usd >= 0.01 => write!(f, "${usd:.2}"),
            usd if usd >= 0.0001 => write!(f, "${usd:.4}"),
            usd => write!(f, "${usd:.6}"),
        }
    }
}

impl Serialize for Cost {
    /// Dollars.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.to_usd())
    }
}

/// What a model charges, in dollars a million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// For tokens of the question.
    pub input: f64,
    /// For tokens of the question that the provider had cached.
    pub cached_input: f64,
    /// For tokens of the answer.
    pub output: f64,
}

impl Price {
    /// A model that costs nothing.
    pub const FREE: Self = Self { input: 0.0, cached_input: 0.0, output: 0.0 };

    /// The same in a batch, for which OpenAI takes half (platform.openai.com/docs/guides/batch).
    #[must_use]
    pub fn batched(self) -> Self {
        Self { input: self.input / 2.0, cached_input: self.cached_input / 2.0, output: self.output / 2.0 }
    }

    /// What so many tokens cost, rounded up.
    pub fn of(&self, usage: Usage) -> Cost {
        let cached = usage.cached_prompt.min(usage.prompt);
        let tokens = |count: u64, usd_per_million: f64| count as f64 * usd_per_million * (DOLLAR / 1e6);
        let pico = tokens(usage.prompt - cached, self.input)
            + tokens(cached, self.cached_input)
            + tokens(usage.completion, self.output);
        Cost(pico.ceil() as u64)
    }

    /// What so many tokens cost at most, whatever the provider had cached.
    pub fn at_most(&self, prompt: u64, completion: u64) -> Cost {
        let dearest = Self { input: self.input.max(self.cached_input), ..*self };
        dearest.of(Usage { prompt, cached_prompt: 0, completion })
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Price};
    use crate::models::Usage;

    #[test]
    fn tokens_cost_what_the_table_says() {
        let price = Price { input: 0.15, cached_input: 0.075, output: 0.6 };
        let usage = Usage { prompt: 1_000_000, cached_prompt: 500_000, completion: 100_000 };
        assert_eq!(price.of(usage).to_string(), "$0.17");
        assert_eq!(price.of(usage), Cost::from_usd(0.1725));
        assert!(price.at_most(1_000_000, 100_000) > price.of(usage));
        assert_eq!(price.of(Usage { prompt: u64::MAX, ..usage }).0, u64::MAX);
        assert_eq!(Cost::from_usd(0.000_12).to_string(), "$0.0001");
        assert_eq!(Cost::from_usd(-1.0), Cost(0));
    }
}
