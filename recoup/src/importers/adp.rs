//! Agent Data Protocol, standardized trajectories.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Agent Data Protocol, standardized trajectories.
pub(super) struct Adp;

impl Importer for Adp {
    fn format(&self) -> &'static str {
        "adp"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
