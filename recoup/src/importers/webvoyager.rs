//! WebVoyager message lists with screenshots beside them.

use super::{ImportError, Importer, Probe, Sink, Source};

/// WebVoyager message lists with screenshots beside them.
pub(super) struct WebVoyager;

impl Importer for WebVoyager {
    fn format(&self) -> &'static str {
        "webvoyager"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
