//! The cluster bootstrap: the mean of clusters drawn with replacement, many times.
//!
//! A whole cluster is drawn at a time, so runs of one task stay together (Davison and Hinkley 1997,
//! §3.8). The intervals are Efron's percentile interval and BCa, corrected for bias and acceleration
//! (Efron 1987), the acceleration by leaving out one cluster at a time.
//!
//! Resample b draws its clusters from words `b·⌈k/2⌉ …` of the stream, two to a word, in the order of
//! their names. It adds up sums and counts, never observations.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, Normal};
use thiserror::Error;

use crate::statistics::clusters::Total;
use crate::statistics::draws::{Draws, Stream, index};
use crate::statistics::{Bounds, Clusters, Resampling};

/// Clusters below which there is no interval: the bootstrap would pretend to know their spread.
pub const LEAST_CLUSTERS: usize = 10;

/// An interval that is refused for want of clusters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no interval from {clusters} clusters, it takes at least {LEAST_CLUSTERS}")]
pub struct TooFewClusters {
    /// How many there are.
    pub clusters: usize,
}

/// What the bootstrap says of a mean.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Intervals {
    /// Quantiles of the resampled means.
    pub percentile: Bounds,
    /// Bias-corrected and accelerated.
    pub bca: Bounds,
    /// BCa's z₀: normal quantile of the share of resampled means below the mean, ties counting half.
    pub bias: f64,
    /// BCa's a: skewness of the leave-one-cluster-out means over 6√k; at most 1/6 either way.
    pub acceleration: f64,
}

impl Resampling {
    /// Intervals for the mean of the observations. Where all clusters have the same mean, both are that
    /// mean.
    pub fn intervals(&self, clusters: &Clusters) -> Result<Intervals, TooFewClusters> {
        if clusters.len() < LEAST_CLUSTERS {
            return Err(TooFewClusters { clusters: clusters.len() });
        }
        let draws = Draws::new(self.seed, Stream::Bootstrap);
        let mut means: Vec<f64> = (0..self.resamples.get())
            .map(|resample| resampled_mean(clusters.totals(), draws, resample))
            .collect();
        means.sort_unstable_by(f64::total_cmp);

        let normal = Normal::standard();
        let bias = normal.inverse_cdf(share_below(&means, clusters.grand().mean(), clusters.rounding()));
        let acceleration = acceleration(clusters);
        let bound = |level: f64| clusters.base() + quantile(&means, level);
        let (low, high) = (self.confidence.error_rate() / 2.0, 1.0 - self.confidence.error_rate() / 2.0);
        let corrected = |level: f64| {
            let shifted = bias + normal.inverse_cdf(level);
            let stretch = 1.0 - acceleration * shifted;
            // Beyond the pole of the correction nothing is left out on that side. As |a| is at most
            // 1/6, it takes a bias and level of six standard deviations together.
            let z = if stretch > 0.0 { bias + shifted / stretch } else { shifted.signum() * f64::INFINITY };
            normal.cdf(z)
        };
        Ok(Intervals {
            percentile: Bounds { low: bound(low), high: bound(high) },
            bca: Bounds { low: bound(corrected(low)), high: bound(corrected(high)) },
            bias,
            acceleration,
        })
    }
}

/// Mean, less the base, of as many clusters as there are, drawn with replacement.
fn resampled_mean(totals: &[Total], draws: Draws, resample: u32) -> f64 {
    let words = totals.len().div_ceil(2) as u64;
    let start = u64::from(resample) * words;
    // Two chains of additions, one for each half of the words, keep the processor busy.
    let (mut even, mut odd) = (Total::default(), Total::default());
    for pair in 0..totals.len() as u64 / 2 {
        let word = draws.word(start + pair);
        even.add(totals[index(word as u32, totals.len())]);
        odd.add(totals[index((word >> 32) as u32, totals.len())]);
    }
    if !totals.len().is_multiple_of(2) {
        even.add(totals[index(draws.word(start + words - 1) as u32, totals.len())]);
    }
    even.add(odd);
    even.mean()
}

/// The share of sorted means below the mean itself, ties counting half. Strictly between 0 and 1: were
/// all on one side, the share is half a resample from the end, so that the correction stays finite.
fn share_below(sorted: &[f64], mean: f64, rounding: f64) -> f64 {
    let below = sorted.partition_point(|&other| other < mean - rounding);
    let up_to = sorted.partition_point(|&other| other <= mean + rounding);
    let (twice, resamples) = ((below + up_to) as f64, sorted.len() as f64);
    twice.clamp(1.0, 2.0 * resamples - 1.0) / (2.0 * resamples)
}

/// `Σu³ / 6(Σu²)^1.5` over the deviations u of the leave-one-out means from their mean, downwards.
fn acceleration(clusters: &Clusters) -> f64 {
    let grand = clusters.grand();
    let without = |total: &Total| (grand.sum - total.sum) / (grand.count - total.count);
    let center = clusters.totals().iter().map(without).sum::<f64>() / clusters.len() as f64;
    let deviations = || clusters.totals().iter().map(|total| center - without(total));
    // The formula has no scale; dividing by the largest keeps cubes of any value in range.
    let largest = deviations().map(f64::abs).fold(0.0, f64::max);
    if largest <= clusters.rounding() / clusters.len() as f64 {
        return 0.0;
    }
    let (mut cubes, mut squares) = (0.0, 0.0);
    for deviation in deviations() {
        let scaled = deviation / largest;
        squares += scaled.powi(2);
        cubes += scaled.powi(3);
    }
    cubes / (6.0 * squares.powf(1.5))
}

/// Quantile of sorted values, linear between neighbors (type 7 of Hyndman and Fan 1996).
fn quantile(sorted: &[f64], level: f64) -> f64 {
    let place = level * (sorted.len() - 1) as f64;
    let below = place.floor();
    let (low, high) = (sorted[below as usize], sorted[place.ceil() as usize]);
    low + (high - low) * (place - below)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::{Just, Strategy, prop_assert, prop_assert_eq, proptest};

    use super::{Clusters, Intervals, Resampling, TooFewClusters, share_below};
    use crate::statistics::draws::{Draws, Stream};
    use crate::statistics::{Bounds, Confidence, golden};

    #[derive(serde::Deserialize)]
    struct Golden {
        name: String,
        clusters: Vec<String>,
        values: Vec<f64>,
        resamples: NonZeroU32,
        confidence: f64,
        seed: u64,
        percentile: Bounds,
        bca: Bounds,
        bias: f64,
        acceleration: f64,
        /// The same with scipy's own draws, so many that they hardly vary.
        independent: Independent,
    }

    #[derive(serde::Deserialize)]
    struct Independent {
        percentile: Bounds,
        bca: Bounds,
    }

    /// What scipy makes of the same resamples, to the last digits, and of its own, within the error of
    /// 10,000 draws: five standard deviations of a 2.5 % quantile are 3.5 % of the width.
    #[test]
    fn agrees_with_scipy() {
        let cases = golden::section::<Golden>("bootstrap");
        assert!(cases.len() >= 6);
        for case in cases {
            let clusters = Clusters::new(golden::observations(&case.clusters, &case.values)).unwrap();
            let confidence = Confidence::new(case.confidence).unwrap();
            let plan = Resampling { resamples: case.resamples, confidence, seed: case.seed };
            let ours = plan.intervals(&clusters).unwrap();
            golden::close(&case.name, ours.bias, case.bias, 1e-10);
            golden::close(&case.name, ours.acceleration, case.acceleration, 1e-10);
            for (ours, same_draws, own_draws) in [
                (ours.percentile, case.percentile, case.independent.percentile),
                (ours.bca, case.bca, case.independent.bca),
            ] {
                golden::close(&case.name, ours.low, same_draws.low, 1e-9);
                golden::close(&case.name, ours.high, same_draws.high, 1e-9);
                let error = 0.035 * (own_draws.high - own_draws.low);
                golden::close(&case.name, ours.low, own_draws.low, error);
                golden::close(&case.name, ours.high, own_draws.high, error);
            }
        }
    }

    fn one_each(values: &[f64]) -> Clusters {
        let names: Vec<String> = (0..values.len()).map(|i| format!("task-{i:03}")).collect();
        Clusters::new(golden::observations(&names, values)).unwrap()
    }

    #[test]
    fn nine_clusters_are_too_few() {
        let nine = Resampling::new(0).intervals(&one_each(&[0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]));
        assert_eq!(nine, Err(TooFewClusters { clusters: 9 }));
        let message = nine.unwrap_err().to_string();
        assert_eq!(message, "no interval from 9 clusters, it takes at least 10");
    }

    #[test]
    fn values_that_are_all_equal_have_an_interval_without_width() {
        for value in [0.1, 0.0, -7.3e99] {
            let Intervals { percentile, bca, bias, acceleration } =
                Resampling::new(0).intervals(&one_each(&[value; 12])).unwrap();
            let point = Bounds { low: value, high: value };
            assert_eq!((percentile, bca, bias, acceleration), (point, point, 0.0, 0.0));
        }
    }

    #[test]
    fn one_success_among_many_and_the_highest_levels_stay_in_range() {
        let mut values = vec![0.0; 500];
        values[0] = 1.0;
        for level in [0.5, 0.95, 0.999_999_999] {
            let plan = Resampling { confidence: Confidence::new(level).unwrap(), ..Resampling::new(1) };
            let ours = plan.intervals(&one_each(&values)).unwrap();
            assert!((ours.acceleration - 1.0 / 6.0).abs() < 1e-3, "{ours:?}");
            for bounds in [ours.percentile, ours.bca] {
                assert!(0.0 <= bounds.low && bounds.low <= bounds.high && bounds.high <= 1.0, "{ours:?}");
            }
            assert!(ours.bca.high >= ours.percentile.high, "skewed to the right: {ours:?}");
        }
    }

    #[test]
    fn a_mean_outside_its_resamples_has_a_finite_bias() {
        for (mean, share) in [(0.0, 1.0 / 6.0), (2.0, 0.5), (2.5, 2.0 / 3.0), (4.0, 5.0 / 6.0)] {
            golden::close("share", share_below(&[1.0, 2.0, 3.0], mean, 0.0), share, 1e-15);
        }
    }

    /// Tasks with success rates of their own: the interval holds the true rate about as often as it says,
    /// and one that takes runs for tasks does not.
    #[test]
    fn covers_as_often_as_it_says() {
        let (tasks, runs, samples) = (30_usize, 8_usize, 400_u32);
        let uniform = |position: usize| {
            (Draws::new(99, Stream::Bootstrap).word(position as u64) >> 11) as f64 / (1_u64 << 53) as f64
        };
        let names: Vec<String> = (0..tasks * runs).map(|i| format!("{i:03}")).collect();
        let (mut clustered, mut naive) = (0_u32, 0_u32);
        for sample in 0..samples {
            let start = sample as usize * tasks * (runs + 1);
            let values: Vec<f64> = (0..tasks * runs)
                .map(|run| {
                    let rate = uniform(start + run / runs);
                    f64::from(uniform(start + tasks + run) < rate)
                })
                .collect();
            let tasks = Clusters::new(values.iter().enumerate().map(|(i, &v)| (names[i / runs].as_str(), v)));
            let plan =
                Resampling { resamples: NonZeroU32::new(400).unwrap(), ..Resampling::new(u64::from(sample)) };
            let holds = |clusters: &Clusters| u32::from(plan.intervals(clusters).unwrap().bca.contains(0.5));
            clustered += holds(&tasks.unwrap());
            naive += holds(&Clusters::new(golden::observations(&names, &values)).unwrap());
        }
        // 95 % of 400 less five standard deviations and what 30 clusters cost.
        assert!(clustered >= 352, "{clustered} of {samples}");
        assert!(naive < 320, "{naive} of {samples}");
    }

    proptest! {
        #[test]
        fn order_does_not_show_and_a_seed_gives_the_same_bytes(
            (ordered, shuffled) in proptest::collection::vec((0_usize..14, -1.0_f64..1.0), 40..80)
                .prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
            seed: u64,
        ) {
            let plan = Resampling { resamples: NonZeroU32::new(200).unwrap(), ..Resampling::new(seed) };
            let intervals = |rows: Vec<(usize, f64)>| {
                let names: Vec<String> = rows.iter().map(|(name, _)| name.to_string()).collect();
                let values: Vec<f64> = rows.iter().map(|&(_, value)| value).collect();
                plan.intervals(&Clusters::new(golden::observations(&names, &values)).unwrap())
            };
            let ours = intervals(ordered);
            prop_assert_eq!(ours, intervals(shuffled));
            if let Ok(ours) = ours {
                prop_assert!(ours.percentile.low <= ours.percentile.high && ours.bca.low <= ours.bca.high);
            }
        }

        #[test]
        fn shifting_and_scaling_the_values_shifts_and_scales_the_bounds(
            values in proptest::collection::vec(-8_i32..8, 10..40), seed: u64,
        ) {
            let plan = Resampling { resamples: NonZeroU32::new(200).unwrap(), ..Resampling::new(seed) };
            let bca = |shift: f64, scale: f64| {
                let moved: Vec<f64> = values.iter().map(|&value| f64::from(value) * scale + shift).collect();
                plan.intervals(&one_each(&moved)).unwrap().bca
            };
            let (plain, moved) = (bca(0.0, 1.0), bca(3.0, 4.0));
            prop_assert!((plain.low * 4.0 + 3.0 - moved.low).abs() < 1e-9, "{:?} {:?}", plain, moved);
            prop_assert!((plain.high * 4.0 + 3.0 - moved.high).abs() < 1e-9, "{:?} {:?}", plain, moved);
        }
    }
}
