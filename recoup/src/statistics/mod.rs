//! Statistics: what a count of runs does and does not show.
//!
//! Runs of one task resemble each other, so what is resampled, flipped and counted is the cluster (a
//! task), never the single run:
//!
//! * [`Clusters`] are observations grouped by name; [`Resampling::intervals`] draws clusters with
//!   replacement for the percentile and the BCa interval of their mean, and refuses where they are too
//!   few;
//! * [`paired_difference`] compares two treatments of the same pairs, with [`Resampling::sign_flip`] for
//!   its p-value and the design effect; [`mcnemar`] is the exact cross-check on single pass/fail pairs;
//! * [`holm`] adjusts the p-values of a family declared in advance;
//! * [`ConfidenceSequence`] may be looked at after every outcome, and is the only thing that may stop a
//!   series early; [`wilson`] is for a count fixed in advance;
//! * [`cohen_kappa`] is the agreement of two judges.
//!
//! Nothing here is random: a draw is a function of the seed and its place, so the same seed gives the
//! same bytes whatever the order of the input. The figures are checked against scipy and statsmodels
//! (`tests/golden/inference.py`).

mod bootstrap;
mod clusters;
mod confidence;
mod draws;
#[cfg(test)]
mod golden;
mod holm;
mod kappa;
mod mcnemar;
mod paired;
mod resampling;
mod sequence;
mod sign_flip;
mod wilson;

pub use self::bootstrap::{Intervals, LEAST_CLUSTERS, TooFewClusters};
pub use self::clusters::{Clusters, ClustersError, LARGEST_VALUE};
pub use self::confidence::{Bounds, Confidence};
pub(crate) use self::draws::draw_index;
pub use self::holm::holm;
pub use self::kappa::{Kappa, cohen_kappa};
pub use self::mcnemar::mcnemar;
pub use self::paired::{Pair, PairedDifference, paired_difference};
pub use self::resampling::{DEFAULT_RESAMPLES, Resampling};
pub use self::sequence::{ConfidenceSequence, OutsideUnit, Side};
pub use self::wilson::{Interval, wilson};

/// Two-sided 95 % quantile of the standard normal distribution.
pub const Z_95: f64 = 1.959_963_984_540_054;
