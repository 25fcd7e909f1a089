//! Raw rows of the nebius SWE-agent trajectories.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Raw rows of the nebius SWE-agent trajectories.
pub(super) struct Nebius;

impl Importer for Nebius {
    fn format(&self) -> &'static str {
        "nebius"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
