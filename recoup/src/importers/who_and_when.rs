//! Who&When: failed multi-agent chats with the mistaken agent and step.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Who&When: failed multi-agent chats with the mistaken agent and step.
pub(super) struct WhoAndWhen;

impl Importer for WhoAndWhen {
    fn format(&self) -> &'static str {
        "who-and-when"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
