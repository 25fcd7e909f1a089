//! Counts of the session family against `expected_counts.json`, folder by folder.

use std::path::Path;

use recoup::trajectory::{Role, Status};
use serde_json::Value;

use crate::harness::{Imported, import, shared_data};

#[test]
fn print() {
    for folder in ["reflexion", "adp", "webvoyager", "claude-code-log", "codex"] {
        let Some(path) = shared_data(folder) else { return };
        let i = import(&[&path]);
        eprintln!("{folder}: runs {} nodes {} steps {} calls {} results {} S {} F {} U {}", i.runs.len(), i.node_count(), i.step_count(), i.tool_call_count(), i.tool_result_count(), i.outcome_count(Status::Success), i.outcome_count(Status::Failure), i.outcome_count(Status::Unknown));
        let mut by = std::collections::BTreeMap::new();
        for r in i.trajectories() { *by.entry(r.source.format.clone()).or_insert(0) += 1; }
        eprintln!("  {by:?}\n  losses {:?}\n  quarantined {:?}\n  unrec {:?} problems {:?}", i.losses, i.quarantined, i.unrecognized, i.problems);
    }
}
