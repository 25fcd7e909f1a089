//! Chat-shaped formats: tau-bench, tau2, Who&When and ATIF.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use recoup::trajectory::{Part, Role, Status, TerminationKind};
use serde_json::Value;

use crate::harness::{Imported, import, shared_data};

/// Totals of a folder in `expected_counts.json`.
fn expected(folder: &str) -> Value {
    let path = shared_data("expected_counts.json").expect("counts lie beside the traces");
    let counts: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    counts["totals"][folder].clone()
}

fn assert_count(expected: &Value, field: &str, actual: usize) {
    assert_eq!(expected[field].as_u64(), Some(actual as u64), "{field}");
}

/// Imports a folder; every run must be of `format` and nothing may be quarantined.
fn import_folder(path: &Path, format: &str) -> Imported {
    let imported = import(&[path]);
    assert_eq!(imported.quarantined, []);
    assert_eq!(imported.problems, []);
    for run in imported.trajectories() {
        assert_eq!(run.source.format, format, "{}", run.source.uri);
    }
    imported
}

#[test]
fn tau_bench_gives_its_counts() {
    let Some(path) = shared_data("tau-bench") else { return };
    let (imported, expected) = (import_folder(&path, "tau-bench"), expected("tau-bench"));
    assert_count(&expected, "trajectories", imported.runs.len());
    assert_count(&expected, "messages", imported.node_count());
    assert_count(&expected, "tool_calls", imported.tool_call_count());
    assert_count(&expected, "tool_results", imported.tool_result_count());
    assert_count(&expected, "failures", imported.outcome_count(Status::Failure));
    let tasks: BTreeSet<&str> = imported.trajectories().map(|run| run.task.key.0.as_str()).collect();
    assert_count(&expected, "unique_tasks", tasks.len());
    assert!(tasks.contains("tau-bench/airline/7"), "{tasks:?}");
    // The environment's own data and its policy are no traces.
    assert_eq!(imported.unrecognized.len(), 5, "{:?}", imported.unrecognized);
    assert!(imported.losses.is_empty(), "{:?}", imported.losses);
    let ends =
        |kind| imported.trajectories().filter(|run| run.outcome().termination_kind() == Some(kind)).count();
    assert_eq!(ends(TerminationKind::StepLimit), 5);
    assert_eq!(ends(TerminationKind::UserStop), 147);
    assert_eq!(ends(TerminationKind::Completed), 48);
}

/// The traps of spec F01, counted on the real runs.
#[test]
fn tau_bench_keeps_repeated_ids_and_empty_results() {
    let Some(path) = shared_data("tau-bench") else { return };
    let imported = import_folder(&path, "tau-bench");
    let (mut empty, mut repeats, mut runs_with_repeats) = (0, 0, 0);
    for run in imported.trajectories() {
        let mut ids = BTreeSet::new();
        let before = repeats;
        for node in &run.nodes {
            assert_eq!(node.occurrence.sampled, node.role == Role::Assistant);
            for (_, call) in node.tool_calls() {
                repeats += usize::from(!ids.insert(call.call_id.clone()));
            }
            for (_, result) in node.tool_results() {
                empty += usize::from(result.parts == [Part::text("")]);
            }
        }
        runs_with_repeats += usize::from(repeats > before);
    }
    assert_eq!((empty, repeats, runs_with_repeats), (92, 73, 49));
}

#[test]
fn tau2_voice_runs_are_valid_and_empty() {
    let Some(path) = shared_data("tau2") else { return };
    let (imported, expected) = (import_folder(&path, "tau2"), expected("tau2"));
    assert_count(&expected, "trajectories", imported.runs.len());
    assert_eq!(imported.unrecognized.len(), 1, "the licence: {:?}", imported.unrecognized);
    // The published ticks have lost their words: they are counted, and there is no message to read.
    let ticks = imported.trajectories().map(|run| run.extra["tick_count"].as_str().parse::<usize>().unwrap());
    assert_count(&expected, "ticks", ticks.sum());
    assert_eq!(imported.node_count(), 0);
    for run in imported.trajectories() {
        assert_eq!(run.outcome().termination_kind(), Some(TerminationKind::UserStop));
        assert_eq!(run.outcome().status, Status::Unknown, "no reward is published");
        // `results.json` lies in the folder above and names the domain.
        let environment = run.environment.as_ref().unwrap();
        assert!(run.task.key.0.starts_with(&format!("tau2/{}/", environment.name)), "{}", run.task.key);
    }
}

#[test]
fn a_tau2_simulation_alone_is_a_source() {
    let Some(path) = shared_data("tau2") else { return };
    let folder = path.join("tests/test_voice/test_interaction_metrics/testdata/experiment/simulations");
    let file = folder.join("49b22f0c-4a56-41c5-922f-bc2a56e53a23.json");
    let (alone, beside) = (import(&[&file]), import(&[path.as_path()]));
    let alone = &alone.runs[0].0;
    assert_eq!(alone.task.key.0, "tau2/40");
    assert!(beside.trajectories().any(|run| run.key == alone.key), "the run is the same, its record shorter");
}

#[test]
fn who_and_when_gives_its_counts_and_labels() {
    let Some(path) = shared_data("who_and_when") else { return };
    let (imported, expected) = (import_folder(&path, "who-and-when"), expected("who_and_when"));
    assert_count(&expected, "trajectories", imported.runs.len());
    assert_count(&expected, "messages", imported.node_count());
    assert_count(&expected, "tool_calls", imported.tool_call_count());
    assert_count(&expected, "tool_results", imported.tool_result_count());
    assert_count(&expected, "failures", imported.outcome_count(Status::Failure));
    let mut blamed = 0;
    for (run, labels) in &imported.runs {
        let [label] = labels.as_slice() else { panic!("{}: {labels:?}", run.source.uri) };
        let node = &run.nodes[label.node.expect("a step within the run")];
        blamed += usize::from(label.agent.as_deref() == Some(node.agent.as_str()));
        assert!(run.hidden.gold.is_some());
    }
    // In one file people blame an expert for a step that is the terminal's.
    assert_eq!(blamed, imported.runs.len() - 1);
}

#[test]
fn atif_gives_its_counts() {
    let Some(path) = shared_data("derived_atif") else { return };
    let (imported, expected) = (import_folder(&path, "atif"), expected("derived_atif"));
    assert_count(&expected, "trajectories", imported.runs.len());
    assert_count(&expected, "tool_calls", imported.tool_call_count());
    // A step of ATIF is a turn and its observation: two messages here, the turn sampled.
    assert_count(&expected, "steps", imported.step_count());
    assert_eq!(imported.node_count(), imported.step_count() + imported.tool_result_count());
    assert!(imported.losses.is_empty(), "{:?}", imported.losses);
}
