//! Statistics: what a count of runs does and does not show.

mod wilson;

pub use self::wilson::{Interval, wilson};

/// Two-sided 95 % quantile of the standard normal distribution.
pub const Z_95: f64 = 1.959_963_984_540_054;
