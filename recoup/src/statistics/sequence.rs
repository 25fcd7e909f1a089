//! A confidence sequence: an interval that may be looked at after every outcome.
//!
//! A fixed-sample interval that is looked at again and again misses in the end. A confidence sequence
//! contains the mean at all times at once with the stated probability, so a series may stop as soon as
//! it has decided (Ville 1939).
//!
//! This one inverts Robbins' mixture martingale (Robbins 1970; as the beta-binomial boundary in Howard,
//! Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences",
//! 2021): a mean m is excluded once the outcomes are 1/α times likelier under rates drawn evenly from
//! 0..1 than under m. For pass and fail it is close to the best there is. It holds for any outcomes in
//! 0..1 whose expectation, given what came before, stays the same, but is not narrower where such
//! outcomes vary less than pass and fail do.

use statrs::function::beta::ln_beta;
use thiserror::Error;

use crate::statistics::{Bounds, Confidence};

/// Halvings of 0..1 to the last bit of a bound.
const HALVINGS: u32 = 60;

/// An outcome that is not between 0 and 1.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("an outcome of {0} is not between 0 and 1")]
pub struct OutsideUnit(pub f64);

/// Where a mean lies for certain, at the confidence of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Below the threshold.
    Below,
    /// Above the threshold.
    Above,
}

/// Outcomes so far and what they exclude.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceSequence {
    confidence: Confidence,
    outcomes: u64,
    sum: f64,
}

impl ConfidenceSequence {
    /// A sequence without outcomes.
    pub fn new(confidence: Confidence) -> Self {
        Self { confidence, outcomes: 0, sum: 0.0 }
    }

    /// Adds an outcome: 1 and 0 for pass and fail, or a score between.
    pub fn push(&mut self, outcome: f64) -> Result<(), OutsideUnit> {
        if !(0.0..=1.0).contains(&outcome) {
            return Err(OutsideUnit(outcome));
        }
        self.outcomes += 1;
        self.sum += outcome;
        Ok(())
    }

    /// Number of outcomes.
    pub fn outcomes(&self) -> u64 {
        self.outcomes
    }

    /// The means that the outcomes do not exclude; 0..1 before the first.
    pub fn bounds(&self) -> Bounds {
        if self.outcomes == 0 {
            return Bounds { low: 0.0, high: 1.0 };
        }
        let mean = self.sum / self.outcomes as f64;
        Bounds { low: self.outermost(mean, 0.0), high: self.outermost(mean, 1.0) }
    }

    /// The stopping rule: whether the mean is known to lie on one side of a threshold. A series that
    /// stops when it is, is wrong with probability at most α, whenever that happens.
    ///
    /// To compare two arms of pairs, push only the pairs that differ (1 where the treatment won) and ask
    /// about ½, as in McNemar's test: pairs that agree would only widen the interval.
    pub fn side_of(&self, threshold: f64) -> Option<Side> {
        let Bounds { low, high } = self.bounds();
        match () {
            () if low > threshold => Some(Side::Above),
            () if high < threshold => Some(Side::Below),
            () => None,
        }
    }

    /// The excluded mean nearest to the observed one on the side of `end`, or `end` where none is.
    fn outermost(&self, observed: f64, end: f64) -> f64 {
        let is_excluded = self.exclusion();
        if !is_excluded(end) {
            return end;
        }
        let (mut inner, mut outer) = (observed, end);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(inner, outer);
            if is_excluded(middle) {
                outer = middle;
            } else {
                inner = middle;
            }
        }
        outer
    }

    /// Whether a mean m is excluded: `ln B(1 + S, 1 + n − S) − S·ln m − (n − S)·ln(1 − m) ≥ ln 1/α`, for
    /// the sum S of n outcomes. The left side is convex in m and not positive at the observed mean, so
    /// it crosses once on either side.
    fn exclusion(&self) -> impl Fn(f64) -> bool {
        let (sum, rest) = (self.sum, (self.outcomes as f64 - self.sum).max(0.0));
        let least = -self.confidence.error_rate().ln() - ln_beta(1.0 + sum, 1.0 + rest);
        // 0 · ln 0 is 0: what never happened says nothing against a mean that forbids it.
        let surprise = |weight: f64, rate: f64| if weight > 0.0 { -weight * rate.ln() } else { 0.0 };
        move |mean| surprise(sum, mean) + surprise(rest, 1.0 - mean) >= least
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, proptest};

    use super::{ConfidenceSequence, OutsideUnit, Side};
    use crate::statistics::draws::{Draws, Stream};
    use crate::statistics::{Bounds, Confidence, Z_95, golden, wilson};

    #[derive(serde::Deserialize)]
    struct Golden {
        outcomes: u64,
        sum: f64,
        confidence: f64,
        low: f64,
        high: f64,
    }

    #[test]
    fn agrees_with_roots_found_by_scipy() {
        for case in golden::section::<Golden>("sequence") {
            let confidence = Confidence::new(case.confidence).unwrap();
            let ours = ConfidenceSequence { confidence, outcomes: case.outcomes, sum: case.sum }.bounds();
            let name = format!("{} of {}", case.sum, case.outcomes);
            golden::close(&name, ours.low, case.low, 1e-9);
            golden::close(&name, ours.high, case.high, 1e-9);
        }
    }

    fn sequence(outcomes: &[f64]) -> ConfidenceSequence {
        let mut sequence = ConfidenceSequence::new(Confidence::P95);
        for &outcome in outcomes {
            sequence.push(outcome).unwrap();
        }
        sequence
    }

    #[test]
    fn an_outcome_outside_is_refused_and_leaves_no_trace() {
        let mut sequence = ConfidenceSequence::new(Confidence::P95);
        for outcome in [-0.1, 1.1, f64::INFINITY] {
            assert_eq!(sequence.push(outcome), Err(OutsideUnit(outcome)));
        }
        assert!(sequence.push(f64::NAN).is_err());
        assert_eq!(sequence.outcomes(), 0);
        assert_eq!(sequence.bounds(), Bounds { low: 0.0, high: 1.0 });
    }

    #[test]
    fn nothing_is_decided_by_one_outcome_and_all_passes_decide_soon() {
        assert_eq!(sequence(&[1.0]).side_of(0.5), None);
        // 1/(n + 1) · 2ⁿ ≥ 20 first at n = 8.
        assert_eq!(sequence(&[1.0; 7]).side_of(0.5), None);
        assert_eq!(sequence(&[1.0; 8]).side_of(0.5), Some(Side::Above));
        assert_eq!(sequence(&[0.0; 8]).side_of(0.5), Some(Side::Below));
        assert!(sequence(&[1.0; 1000]).bounds().contains(1.0));
    }

    type Outcome = fn(f64) -> f64;

    /// Looks after each of 300 outcomes. The share of series that ever miss the mean stays below 5 %;
    /// for an interval made for one look it is several times that.
    #[test]
    fn holds_at_all_times_at_once() {
        let (series, length) = (500_u64, 300_u64);
        let cases: [(f64, Outcome); 4] = [
            (0.05, |u| f64::from(u < 0.05)),
            (0.3, |u| f64::from(u < 0.3)),
            (0.9, |u| f64::from(u < 0.9)),
            (1.0 / 3.0, |u| u * u),
        ];
        let (mut wilson_missed, mut widths) = (0_u64, 0.0);
        for (kind, (mean, outcome)) in cases.iter().enumerate() {
            let mut missed = 0;
            for number in 0..series {
                let draws = Draws::new(kind as u64 * series + number, Stream::Bootstrap);
                let mut sequence = ConfidenceSequence::new(Confidence::P95);
                let (mut ever, mut wilson_ever) = (false, false);
                for time in 0..length {
                    let uniform = (draws.word(time) >> 11) as f64 / (1_u64 << 53) as f64;
                    sequence.push(outcome(uniform)).unwrap();
                    ever |= sequence.exclusion()(*mean);
                    let once = wilson(sequence.sum as u64, time + 1, Z_95);
                    wilson_ever |= kind == 1 && (*mean < once.low || *mean > once.high);
                }
                let bounds = sequence.bounds();
                assert!(ever || bounds.contains(*mean));
                missed += u64::from(ever);
                wilson_missed += u64::from(wilson_ever);
                widths += (bounds.high - bounds.low) / (4 * series) as f64;
            }
            assert!(missed <= series / 20, "mean {mean}: {missed} of {series}");
        }
        assert!(wilson_missed > series / 5, "the series are too short to tell: {wilson_missed}");
        assert!(widths < 0.2, "an interval of everything would hold too: {widths}");
    }

    proptest! {
        #[test]
        fn bounds_hold_the_observed_mean_and_order_does_not_matter(
            outcomes in proptest::collection::vec(0.0_f64..=1.0, 1..40),
        ) {
            let mean = outcomes.iter().sum::<f64>() / outcomes.len() as f64;
            let bounds = sequence(&outcomes).bounds();
            prop_assert!(0.0 <= bounds.low && bounds.low <= mean && mean <= bounds.high && bounds.high <= 1.0);
            let reversed: Vec<f64> = outcomes.iter().rev().copied().collect();
            let again = sequence(&reversed).bounds();
            prop_assert!((again.low - bounds.low).abs() < 1e-9 && (again.high - bounds.high).abs() < 1e-9);
        }
    }
}
