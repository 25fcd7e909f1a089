//! Claude Code sessions.

use super::{ImportError, Importer, Probe, Sink, Source};

/// Claude Code sessions.
pub(super) struct ClaudeCode;

impl Importer for ClaudeCode {
    fn format(&self) -> &'static str {
        "claude-code"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
