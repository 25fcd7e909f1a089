//! The package works within its limits, and half of its states are small.

use super::{Battery, Finding, Gate};
use crate::environments::EnvironmentError;

/// Most bytes of the median state: it is copied at every fork.
const STATE_MEDIAN_MAX: usize = 2 << 10;

pub(super) struct Loads;

impl Gate for Loads {
    fn name(&self) -> &'static str {
        "loads"
    }

    fn rule(&self) -> &'static str {
        "every seed is generated, opened and played within the limits; the median state has at most 2,048 bytes"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let solved = battery.solved()?;
        let mut sizes: Vec<usize> =
            solved.iter().flat_map(|solved| &solved.states).map(|state| state.as_str().len()).collect();
        sizes.sort_unstable();
        let median = sizes.get(sizes.len() / 2).copied().unwrap_or_default();
        Ok(Finding {
            passed: median <= STATE_MEDIAN_MAX,
            figure: format!("{} seeds, {} states, median of {median} bytes", solved.len(), sizes.len()),
        })
    }
}
