//! The bundled example runs: what each must show, as the script that wrote them says.

use std::collections::BTreeSet;
use std::path::Path;

use recoup::diagnosis::{DETECTORS, Diagnosed, DiagnosisConfig, diagnose};
use recoup::trajectory::Trajectory;
use serde::Deserialize;

use crate::harness::import;

/// What the script says of one run; runs of one file stand in the file's order.
#[derive(Deserialize)]
struct Expected {
    file: String,
    task: String,
    trial: u32,
    outcome: String,
    blame: Option<String>,
    detectors_fire: Vec<String>,
    detectors_silent: Vec<String>,
}

fn examples() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples")
}

/// Every run with what the script says of it and what the rules do.
fn judged() -> Vec<(Expected, Trajectory, Diagnosed)> {
    let root = examples().join("failed-runs");
    let runs: Vec<Trajectory> = import(&[&root]).runs.into_iter().map(|(run, _)| run).collect();
    let text = std::fs::read(examples().join("expected_findings.json")).unwrap();
    let mut expected: Vec<Expected> = serde_json::from_slice(&text).unwrap();
    assert_eq!(runs.len(), expected.len());
    let config = DiagnosisConfig::default();
    let diagnosed: Vec<Diagnosed> = runs
        .iter()
        .map(|run| {
            let siblings: Vec<&Trajectory> =
                runs.iter().filter(|other| other.task.key == run.task.key && other.id != run.id).collect();
            diagnose(run, &siblings, &config)
        })
        .collect();
    runs.into_iter()
        .zip(diagnosed)
        .map(|(run, diagnosed)| {
            let file = Path::new(&run.source.uri).strip_prefix(&root).unwrap().to_string_lossy().into_owned();
            let at = expected.iter().position(|expected| expected.file == file).unwrap();
            (expected.remove(at), run, diagnosed)
        })
        .collect()
}

#[test]
fn every_run_shows_what_it_was_written_to_show() {
    for (expected, run, diagnosed) in judged() {
        let name = format!("{} {}/{}", expected.file, expected.task, expected.trial);
        assert_eq!(run.outcome().status.as_str(), expected.outcome, "{name}");
        let blame = diagnosed.blame.as_ref().map(|blame| blame.party.as_str());
        assert_eq!(blame, expected.blame.as_deref(), "{name}");
        for detector in &expected.detectors_fire {
            let fires = diagnosed.findings.iter().any(|finding| finding.detector == *detector);
            assert!(fires, "{name}: {detector} is silent; {:?}", diagnosed.findings);
        }
        for detector in &expected.detectors_silent {
            let open = diagnosed
                .findings
                .iter()
                .find(|finding| finding.detector == *detector && finding.resolved_at.is_none());
            assert!(open.is_none(), "{name}: {detector} fires: {open:?}");
        }
    }
}

#[test]
fn every_detector_fires_somewhere() {
    let judged = judged();
    let fired: BTreeSet<&str> = judged
        .iter()
        .flat_map(|(_, _, diagnosed)| &diagnosed.findings)
        .map(|finding| finding.detector.as_str())
        .collect();
    let silent: Vec<&str> =
        DETECTORS.iter().map(|detector| detector.name()).filter(|name| !fired.contains(name)).collect();
    assert!(silent.is_empty(), "{silent:?}");
}
