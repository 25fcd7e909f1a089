//! Observations grouped into named clusters, reduced to what resampling needs.

use std::collections::BTreeMap;

use thiserror::Error;

/// The largest magnitude of an observation. Cubes of what lies below still fit a double.
pub const LARGEST_VALUE: f64 = 1e100;

/// Observations that are no sample.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ClustersError {
    /// There is nothing to take a mean of.
    #[error("there are no observations")]
    Empty,
    /// A value is not a number, infinite or beyond [`LARGEST_VALUE`].
    #[error("cluster `{cluster}`: {value} is not a number between -1e100 and 1e100")]
    Value {
        /// Name of the cluster.
        cluster: String,
        /// The value.
        value: f64,
    },
}

/// Observations grouped by the name of what they share: the task of a run.
///
/// The mean is over observations, so a cluster weighs what it counts. Nothing depends on the order the
/// observations came in, not even the last bit of a sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Clusters {
    totals: Vec<Total>,
    grand: Total,
    /// What all sums leave off: the observation nearest to 0, or 0 between observations of both signs.
    /// Observations that are all equal then have sums of exactly 0 and are recognized.
    base: f64,
    range: f64,
    /// Sum of squared deviations of the observations from their mean.
    squares: f64,
}

/// A cluster's observations, in sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Total {
    /// Sum of the observations, each less the base.
    pub(super) sum: f64,
    /// Their number.
    pub(super) count: f64,
}

impl Clusters {
    /// Groups `(cluster, value)` observations.
    pub fn new<'a>(observations: impl IntoIterator<Item = (&'a str, f64)>) -> Result<Self, ClustersError> {
        let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
        for (cluster, value) in observations {
            if value.is_nan() || value.abs() > LARGEST_VALUE {
                return Err(ClustersError::Value { cluster: cluster.to_owned(), value });
            }
            (lowest, highest) = (lowest.min(value), highest.max(value));
            groups.entry(cluster).or_default().push(value);
        }
        if groups.is_empty() {
            return Err(ClustersError::Empty);
        }
        let base = 0.0_f64.clamp(lowest, highest);
        // Sums in ascending order are the same whatever the order of the input.
        for values in groups.values_mut() {
            for value in values.iter_mut() {
                *value -= base;
            }
            values.sort_unstable_by(f64::total_cmp);
        }
        let totals: Vec<Total> = groups
            .values()
            .map(|values| Total { sum: values.iter().sum(), count: values.len() as f64 })
            .collect();
        let grand = Total {
            sum: totals.iter().map(|total| total.sum).sum(),
            count: totals.iter().map(|total| total.count).sum(),
        };
        let mean = grand.mean();
        let squares = groups.values().flatten().map(|value| (value - mean).powi(2)).sum();
        Ok(Self { totals, grand, base, range: highest - lowest, squares })
    }

    /// The mean of the observations.
    pub fn mean(&self) -> f64 {
        self.base + self.grand.mean()
    }

    /// Number of clusters, at least 1.
    #[allow(clippy::len_without_is_empty, reason = "never empty")]
    pub fn len(&self) -> usize {
        self.totals.len()
    }

    /// Number of observations, at least 1.
    pub fn observations(&self) -> u64 {
        self.grand.count as u64
    }

    /// The design effect of the mean, Var_cluster / Var_iid: by how much its variance grows because
    /// observations of a cluster resemble each other. 1 where each cluster has one observation.
    ///
    /// Var_cluster is the cluster-robust variance with its small-sample factor,
    /// `k/(k − 1) · Σ(sᵢ − nᵢ·mean)² / n²` over the sums and counts of k clusters; Var_iid is `s²/n`
    /// (Kish 1965; Liang and Zeger 1986). None where it is not defined: a single cluster, or
    /// observations that are all equal.
    pub fn design_effect(&self) -> Option<f64> {
        let (k, n) = (self.totals.len() as f64, self.grand.count);
        if self.totals.len() < 2 || self.squares <= 0.0 {
            return None;
        }
        let mean = self.grand.mean();
        let between: f64 = self.totals.iter().map(|total| (total.sum - total.count * mean).powi(2)).sum();
        let clustered = k / (k - 1.0) * between / (n * n);
        let independent = self.squares / (n * (n - 1.0));
        Some(clustered / independent)
    }

    pub(super) fn totals(&self) -> &[Total] {
        &self.totals
    }

    pub(super) fn grand(&self) -> Total {
        self.grand
    }

    pub(super) fn base(&self) -> f64 {
        self.base
    }

    /// Means closer than this differ by rounding only.
    pub(super) fn rounding(&self) -> f64 {
        self.range * 1e-12
    }
}

impl Total {
    /// Mean of the observations, less the base.
    pub(super) fn mean(self) -> f64 {
        self.sum / self.count
    }

    /// Takes in the observations of another cluster.
    #[inline]
    pub(super) fn add(&mut self, other: Self) {
        self.sum += other.sum;
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Just, Strategy, prop_assert_eq, proptest};

    use super::{Clusters, ClustersError};
    use crate::statistics::golden;

    #[derive(serde::Deserialize)]
    struct Golden {
        name: String,
        clusters: Vec<String>,
        values: Vec<f64>,
        mean: f64,
        design_effect: f64,
    }

    #[test]
    fn design_effects_agree_with_statsmodels() {
        for case in golden::section::<Golden>("bootstrap") {
            let clusters = Clusters::new(golden::observations(&case.clusters, &case.values)).unwrap();
            golden::close(&case.name, clusters.mean(), case.mean, 1e-12);
            golden::close(&case.name, clusters.design_effect().unwrap(), case.design_effect, 1e-9);
        }
    }

    #[test]
    fn what_is_no_number_is_refused_by_name() {
        assert_eq!(Clusters::new([]), Err(ClustersError::Empty));
        for value in [f64::NAN, f64::INFINITY, -1e101] {
            let refused = Clusters::new([("a", 1.0), ("b", value)]).unwrap_err();
            assert!(refused.to_string().starts_with("cluster `b`: "), "{refused}");
        }
    }

    #[test]
    fn no_spread_and_no_second_cluster_have_no_design_effect() {
        assert_eq!(Clusters::new([("a", 0.1), ("b", 0.1), ("b", 0.1)]).unwrap().design_effect(), None);
        assert_eq!(Clusters::new([("a", 0.1), ("a", 0.2)]).unwrap().design_effect(), None);
        // Twins: every observation counted twice doubles the variance, but for the factor of a small sample.
        let (names, values): (Vec<String>, Vec<f64>) =
            (0..100).map(|i| (format!("{}", i / 2), f64::from(i / 2))).unzip();
        let twins = Clusters::new(golden::observations(&names, &values)).unwrap();
        assert!((twins.design_effect().unwrap() - 2.0 * 99.0 / 98.0).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_order_of_observations_does_not_show(
            (ordered, shuffled) in proptest::collection::vec((0_usize..20, -1e3_f64..1e3), 1..60)
                .prop_flat_map(|rows| (Just(rows.clone()), Just(rows).prop_shuffle())),
        ) {
            let group = |rows: Vec<(usize, f64)>| {
                let (names, values): (Vec<String>, Vec<f64>) =
                    rows.into_iter().map(|(name, value)| (name.to_string(), value)).unzip();
                Clusters::new(golden::observations(&names, &values)).unwrap()
            };
            prop_assert_eq!(group(ordered), group(shuffled));
        }

        #[test]
        fn clusters_of_one_have_a_design_effect_of_one(
            values in proptest::collection::vec(-1e3_f64..1e3, 2..50),
        ) {
            let names: Vec<String> = (0..values.len()).map(|name| name.to_string()).collect();
            let clusters = Clusters::new(golden::observations(&names, &values)).unwrap();
            if let Some(effect) = clusters.design_effect() {
                assert!((effect - 1.0).abs() < 1e-9, "{effect}");
            }
        }
    }
}
