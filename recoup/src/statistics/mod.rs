//! Statistics: what a count of runs does and does not show.

mod wilson;

pub use self::wilson::{Interval, wilson};
