//! The main job on the bundled examples and on the shared traces.

use std::collections::BTreeMap;
use std::path::Path;

use crate::bench::{Bench, shared_data};

fn examples() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/failed-runs").to_string_lossy().into_owned()
}

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
        })
        .collect()
}

#[test]
fn the_examples_give_a_report_and_training_files() {
    let bench = Bench::new();
    let summary = bench.json(&["run", &examples(), "--json"], 0);
    assert_eq!(summary["quarantined"], 0);
    assert!(summary["diagnosed"].as_u64() > Some(20), "{summary}");
    assert!(summary["exported"]["success_sft"].as_u64() > Some(0), "{summary}");
    assert!(summary["exported"]["step_masked_sft"].as_u64() > Some(0), "{summary}");
    assert!(summary["exported"]["goal_contrast"].as_u64() > Some(0), "{summary}");
    let training = ["success_sft.jsonl", "step_masked_sft.jsonl", "goal_contrast.parquet"];
    for name in ["report.html", "report.json", "report.md"].into_iter().chain(training) {
        assert!(bench.path("recoup-out").join(name).is_file(), "{name}");
    }
}

#[test]
fn the_same_input_gives_the_same_bytes_whatever_the_thread_count() {
    let runs: Vec<_> = ["1", "2", "8"]
        .iter()
        .map(|threads| {
            let bench = Bench::new();
            let output = bench.output(&["run", &examples(), "--threads", threads]);
            assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
            files(&bench.path("recoup-out"))
        })
        .collect();
    for other in &runs[1..] {
        assert_eq!(runs[0].keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
        for (name, bytes) in &runs[0] {
            assert!(other[name] == *bytes, "{name} differs");
        }
    }
}

#[test]
fn a_second_call_does_only_what_is_new() {
    let bench = Bench::new();
    bench.json(&["run", &examples(), "--json"], 0);
    let before = files(&bench.path("recoup-out"));
    let second = bench.json(&["run", &examples(), "--json"], 0);
    assert_eq!(second["new"], 0);
    assert_eq!(second["diagnosed_new"], 0);
    let after = files(&bench.path("recoup-out"));
    for (name, bytes) in before {
        assert!(name.starts_with("report.") || after[&name] == bytes, "{name} differs");
    }
}

#[test]
fn the_shared_traces_are_all_read() {
    let Some(folder) = shared_data("") else { return };
    let bench = Bench::new();
    // Exit code 1: one folder holds lines that are broken on purpose.
    let summary = bench.json(&["run", &folder.to_string_lossy(), "--json"], 1);
    assert_eq!(summary["formats"]["tau-bench"]["nodes"], 5308);
    assert_eq!(summary["formats"]["tau-bench"]["outcomes"]["failure"], 116);
    assert!(summary["trajectories"].as_u64() > Some(1700), "{summary}");
}

#[test]
fn a_partial_file_of_a_killed_call_is_removed() {
    let bench = Bench::new();
    bench.write("recoup-out/.recoup-partial-x1", "half");
    bench.json(&["run", &examples(), "--json"], 0);
    assert!(!bench.path("recoup-out/.recoup-partial-x1").exists());
}

#[test]
fn a_report_file_is_no_unrecognized_file() {
    let bench = Bench::new();
    let summary = bench.json(&["run", &examples(), "--json"], 0);
    // The README of the examples.
    assert_eq!(summary["unrecognized"], 1, "{summary}");
}

#[test]
fn views_are_chosen_in_the_settings_file_and_over_it_by_flags() {
    let bench = Bench::new();
    bench.write("recoup.toml", "[views]\nprevention_target = \"reflection\"\n");
    let refused = bench.output(&["run", &examples()]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("reflection+action") && said.contains("after_recovery"), "{said}");
    bench.write("recoup.toml", "[views]\ndiagnosis_answer = \"benchmark\"\n");
    let hash = |arguments: &[&str]| bench.json(arguments, 0)["config_hash"].to_string();
    let examples = examples();
    let run = |more: &[&'static str]| {
        let arguments = [&["run", examples.as_str(), "--json"], more].concat();
        let hash = hash(&arguments);
        (hash, std::fs::read_to_string(bench.path("recoup-out/diagnosis_sft.jsonl")).unwrap())
    };
    let (benchmark, rows) = run(&[]);
    assert!(rows.lines().all(|row| row.contains("Step Number: ")), "{rows}");
    let (full, rows) = run(&["--diagnosis-answer", "full"]);
    assert!(
        rows.lines().all(|row| row.contains("decisive_step") && !row.contains("Step Number: ")),
        "{rows}"
    );
    assert_ne!(benchmark, full);
    assert!(!rows.is_empty());
}
