//! OpenHands V0: event lists and `output.jsonl` with either history shape.

use super::{ImportError, Importer, Probe, Sink, Source};

/// OpenHands V0: event lists and `output.jsonl` with either history shape.
pub(super) struct OpenHands;

impl Importer for OpenHands {
    fn format(&self) -> &'static str {
        "openhands"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
