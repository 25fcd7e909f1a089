//! The sign-flip test: how often a mean as far from 0 would come up if signs were chance.
//!
//! For a paired difference, the null hypothesis is that the two treatments could have been exchanged in
//! any cluster. Then each cluster's sum of differences is as likely with the other sign, and the p-value
//! is the share of sign patterns whose total is at least as far from 0 (Fisher 1935). It is preferred
//! here to a p-value read off the bootstrap because it is exact at any number of clusters, also below
//! the number that an interval takes, and does not inherit the bootstrap's optimism with few clusters.

use crate::statistics::draws::{Draws, Stream};
use crate::statistics::{Clusters, Resampling};

impl Resampling {
    /// Two-sided p-value of the hypothesis that the clusters' sums are symmetric around 0.
    ///
    /// All sign patterns are tried where there are no more than resamples. Otherwise they are drawn, and
    /// the data count as one of the draws, so that the test stays valid and p is never 0 (Phipson and
    /// Smyth 2010).
    pub fn sign_flip(&self, clusters: &Clusters) -> f64 {
        // Sums are kept without the base; the test is about 0.
        let sums: Vec<f64> =
            clusters.totals().iter().map(|total| total.sum + total.count * clusters.base()).collect();
        let observed = sums.iter().sum::<f64>().abs();
        // Equal totals added in another order differ by rounding; they are ties.
        let threshold = observed - 1e-12 * sums.iter().map(|sum| sum.abs()).sum::<f64>();
        let is_as_far = |total: f64| u64::from(total.abs() >= threshold);

        let resamples = u64::from(self.resamples.get());
        let patterns = u32::try_from(sums.len()).ok().and_then(|clusters| 1_u64.checked_shl(clusters));
        if let Some(patterns) = patterns.filter(|&patterns| patterns <= resamples) {
            let far: u64 = (0..patterns).map(|pattern| is_as_far(flipped_total(&sums, |_| pattern))).sum();
            return far as f64 / patterns as f64;
        }
        let draws = Draws::new(self.seed, Stream::SignFlip);
        let words = sums.len().div_ceil(64) as u64;
        let far: u64 = (0..resamples)
            .map(|resample| is_as_far(flipped_total(&sums, |word| draws.word(resample * words + word))))
            .sum();
        (far + 1) as f64 / (resamples + 1) as f64
    }
}

/// The total of the sums after those with a set bit changed sign; 64 sums share a word.
fn flipped_total(sums: &[f64], word: impl Fn(u64) -> u64) -> f64 {
    let mut total = 0.0;
    for (position, chunk) in sums.chunks(64).enumerate() {
        let bits = word(position as u64);
        for (bit, sum) in chunk.iter().enumerate() {
            // The sign is the highest bit of a double; no branch to mispredict.
            total += f64::from_bits(sum.to_bits() ^ (bits >> bit << 63));
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    use super::{Clusters, Resampling};
    use crate::statistics::golden;

    #[derive(serde::Deserialize)]
    struct Golden {
        name: String,
        clusters: Vec<String>,
        differences: Vec<f64>,
        seed: u64,
        /// By all sign patterns, or by so many draws that p hardly varies.
        p: f64,
        /// By our draws, where not all patterns are tried.
        p_by_draws: Option<f64>,
    }

    #[test]
    fn agrees_with_scipy() {
        let cases = golden::section::<Golden>("sign_flip");
        assert!(cases.iter().any(|case| case.p_by_draws.is_none()));
        assert!(cases.iter().any(|case| case.p_by_draws.is_some()));
        for case in cases {
            let clusters = Clusters::new(golden::observations(&case.clusters, &case.differences)).unwrap();
            let ours = Resampling::new(case.seed).sign_flip(&clusters);
            golden::close(&case.name, ours, case.p_by_draws.unwrap_or(case.p), 1e-12);
            // Five standard deviations of a share of 10,000 draws.
            golden::close(&case.name, ours, case.p, 0.05 * (case.p * (1.0 - case.p)).sqrt());
        }
    }

    fn p(sums: &[f64]) -> f64 {
        let names: Vec<String> = (0..sums.len()).map(|i| format!("{i:03}")).collect();
        Resampling::new(7).sign_flip(&Clusters::new(golden::observations(&names, sums)).unwrap())
    }

    #[test]
    fn few_clusters_cannot_show_much() {
        assert_eq!((p(&[1.0]), p(&[1.0, 1.0, 1.0]), p(&[0.0; 100])), (1.0, 0.25, 1.0));
    }

    #[test]
    fn many_clusters_of_one_sign_leave_only_the_data_themselves() {
        golden::close("all alike", p(&[0.1; 100]), 1.0 / 10_001.0, 1e-18);
    }

    proptest! {
        #[test]
        fn exchanging_the_treatments_changes_nothing(
            sums in proptest::collection::vec(-3_i32..=3, 1..40),
        ) {
            let sums: Vec<f64> = sums.into_iter().map(f64::from).collect();
            let exchanged: Vec<f64> = sums.iter().map(|sum| -sum).collect();
            prop_assert_eq!(p(&sums).to_bits(), p(&exchanged).to_bits());
            prop_assert!(p(&sums) > 0.0 && p(&sums) <= 1.0);
        }
    }
}
