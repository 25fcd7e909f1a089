//! AgentRx ground truth: failure labels for runs that stand in other files.

use super::{ImportError, Importer, Probe, Sink, Source};

/// AgentRx ground truth: failure labels for runs that stand in other files.
pub(super) struct AgentRx;

impl Importer for AgentRx {
    fn format(&self) -> &'static str {
        "agentrx"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
