//! The settings that resampling shares: how often, at which level, from which seed.

use std::num::NonZeroU32;

use crate::statistics::Confidence;

/// Resamples that put the Monte-Carlo error of a 95 % bound near 1 % of the interval's width.
pub const DEFAULT_RESAMPLES: NonZeroU32 = NonZeroU32::MIN.saturating_add(9_999);

/// How to resample: [`Resampling::intervals`] and [`Resampling::sign_flip`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resampling {
    /// Number of resamples; each keeps eight bytes in memory.
    pub resamples: NonZeroU32,
    /// Level of the intervals.
    pub confidence: Confidence,
    /// Where the draws come from: the same seed, the same bytes.
    pub seed: u64,
}

impl Resampling {
    /// [`DEFAULT_RESAMPLES`] resamples at 95 %.
    pub fn new(seed: u64) -> Self {
        Self { resamples: DEFAULT_RESAMPLES, confidence: Confidence::P95, seed }
    }
}
