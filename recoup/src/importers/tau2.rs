//! tau2-bench results, as one file or as a directory of simulations.

use super::{ImportError, Importer, Probe, Sink, Source};

/// tau2-bench results, as one file or as a directory of simulations.
pub(super) struct Tau2;

impl Importer for Tau2 {
    fn format(&self) -> &'static str {
        "tau2"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
