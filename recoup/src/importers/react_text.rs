//! ReAct transcripts in plain text.

use super::{ImportError, Importer, Probe, Sink, Source};

/// ReAct transcripts in plain text.
pub(super) struct ReactText;

impl Importer for ReactText {
    fn format(&self) -> &'static str {
        "react-text"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
