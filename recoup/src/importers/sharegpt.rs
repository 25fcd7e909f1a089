//! ShareGPT conversations.

use super::{ImportError, Importer, Probe, Sink, Source};

/// ShareGPT conversations.
pub(super) struct ShareGpt;

impl Importer for ShareGpt {
    fn format(&self) -> &'static str {
        "sharegpt"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
