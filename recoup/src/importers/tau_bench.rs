//! tau-bench result files: an array of scored chats.

use super::{ImportError, Importer, Probe, Sink, Source};

/// tau-bench result files: an array of scored chats.
pub(super) struct TauBench;

impl Importer for TauBench {
    fn format(&self) -> &'static str {
        "tau-bench"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
