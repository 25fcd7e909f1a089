//! Reflexion logs: trial results with reflections, and programming attempts.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Reflexion logs: trial results with reflections, and programming attempts.
pub(super) struct Reflexion;

impl Importer for Reflexion {
    fn format(&self) -> &'static str {
        "reflexion"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
