//! A rate with the interval that its count supports.

use serde::{Deserialize, Serialize};

/// A rate and the bounds of its confidence interval, each between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interval {
    /// Observed rate; 0 where nothing was observed.
    pub rate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// Wilson's score interval for `successes` of `trials`, at `z` standard deviations (1.96 for 95 %).
///
/// `center ± half` with `center = (p + z²/2n) / (1 + z²/n)` and
/// `half = z/(1 + z²/n) · √(p(1 − p)/n + z²/4n²)` (Wilson 1927). It stays inside 0..1 and says
/// something at 0 of n, where the normal approximation does not. No trials: the rate is 0 and the
/// interval 0..1. More successes than trials count as all of them.
pub fn wilson(successes: u64, trials: u64, z: f64) -> Interval {
    if trials == 0 {
        return Interval { rate: 0.0, low: 0.0, high: 1.0 };
    }
    let n = trials as f64;
    let rate = successes.min(trials) as f64 / n;
    let scale = 1.0 + z * z / n;
    let center = (rate + z * z / (2.0 * n)) / scale;
    let half = z / scale * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
    // At the ends the bound is exact; rounding would leave a trace of 1e-17.
    let low = if successes == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if successes >= trials { 1.0 } else { (center + half).min(1.0) };
    Interval { rate, low, high }
}

#[cfg(test)]
mod tests {
    use super::wilson;

    #[derive(serde::Deserialize)]
    struct Golden {
        successes: u64,
        trials: u64,
        z: f64,
        low: f64,
        high: f64,
    }

    #[test]
    fn agrees_with_statsmodels() {
        let golden: Vec<Golden> =
            serde_json::from_str(include_str!("../../tests/golden/wilson.json")).unwrap();
        assert!(golden.len() > 20);
        for case in golden {
            let ours = wilson(case.successes, case.trials, case.z);
            assert!((ours.low - case.low).abs() < 1e-12, "{}/{}", case.successes, case.trials);
            assert!((ours.high - case.high).abs() < 1e-12, "{}/{}", case.successes, case.trials);
        }
    }

    #[test]
    fn nothing_observed_excludes_nothing() {
        let none = wilson(0, 0, 1.96);
        assert_eq!((none.rate, none.low, none.high), (0.0, 0.0, 1.0));
    }
}
