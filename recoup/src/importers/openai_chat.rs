//! OpenAI chat messages, as JSON lines or a JSON array.

use super::{ImportError, Importer, Probe, Sink, Source};

/// OpenAI chat messages, as JSON lines or a JSON array.
pub(super) struct OpenAiChat;

impl Importer for OpenAiChat {
    fn format(&self) -> &'static str {
        "openai-chat"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
