//! Codex rollout sessions.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Codex rollout sessions.
pub(super) struct Codex;

impl Importer for Codex {
    fn format(&self) -> &'static str {
        "codex"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
