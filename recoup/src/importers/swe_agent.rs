//! SWE-agent `.traj`, old and new.

use super::{ImportError, Importer, Probe, Sink, Source};

/// SWE-agent `.traj`, old and new.
pub(super) struct SweAgent;

impl Importer for SweAgent {
    fn format(&self) -> &'static str {
        "swe-agent"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
