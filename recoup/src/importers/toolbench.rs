//! ToolBench DFSDT: search trees over API calls.

use super::{ImportError, Importer, Probe, Sink, Source};

/// ToolBench DFSDT: search trees over API calls.
pub(super) struct ToolBench;

impl Importer for ToolBench {
    fn format(&self) -> &'static str {
        "toolbench"
    }

    fn detect(&self, _probe: &Probe) -> bool {
        false
    }

    fn import(&self, _source: &Source, _sink: &mut dyn Sink) -> Result<(), ImportError> {
        Ok(())
    }
}
