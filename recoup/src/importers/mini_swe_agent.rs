//! mini-swe-agent message lists.

use super::{ImportError, Importer, Probe, Sink, Source};

/// mini-swe-agent message lists.
pub(super) struct MiniSweAgent;

impl Importer for MiniSweAgent {
    fn format(&self) -> &'static str {
        "mini-swe-agent"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
