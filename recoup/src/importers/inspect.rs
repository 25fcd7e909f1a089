//! Inspect logs: `.eval` archives and `.json`.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Inspect logs: `.eval` archives and `.json`.
pub(super) struct Inspect;

impl Importer for Inspect {
    fn format(&self) -> &'static str {
        "inspect"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
