//! ATIF 1.4 to 1.8, the agent trajectory interchange format.

use super::{ImportError, Importer, Probe, Sink, Source};

/// ATIF 1.4 to 1.8, the agent trajectory interchange format.
pub(super) struct Atif;

impl Importer for Atif {
    fn format(&self) -> &'static str {
        "atif"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
