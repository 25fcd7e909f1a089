//! What is recognized as a trace and what is not.

use std::sync::Arc;

use recoup::importers::{Event, Source, detect};

fn recognized(name: &str, text: &str) -> Option<&'static str> {
    let source = Source::from_bytes(name, text.as_bytes().to_vec(), Arc::default());
    detect(&source).unwrap().map(recoup::importers::Importer::format)
}

#[test]
fn what_stands_beside_traces_is_left_alone() {
    let files = [
        (
            "flights.json",
            r#"{"HAT001":{"flight_number":"HAT001","origin":"PHL","dates":{"2024-05-16":{"status":"landed"}}}}"#,
        ),
        (
            "report.json",
            r#"{"patch_exists":true,"resolved":true,"tests_status":{"FAIL_TO_PASS":{"success":[],"failure":[]}}}"#,
        ),
        ("report.json", r#"{"a__b-1":{"resolved":true}}"#),
        ("all_preds.jsonl", r#"{"model_name_or_path":"m","instance_id":"a__b-1","model_patch":"diff"}"#),
        (
            "results.json",
            r#"{"a__b-1":{"model_name_or_path":"m","instance_id":"a__b-1","model_patch":"diff"}}"#,
        ),
        ("summaries.json", r#"[{"id":1,"epoch":1,"input":"q","target":"a","scores":{"s":{"value":"C"}}}]"#),
        ("config.json", r#"{"version":2,"status":"ok","history":[],"trajectory":[]}"#),
        ("tree.json", r#"{"tree":{"tree":{"name":"root","children":[]}},"win":true}"#),
        ("git.json", r#"[{"id":1,"timestamp":"t","source":"origin","message":"m"}]"#),
        ("package.json", r#"{"name":"x","version":"1.0.0","scripts":{"test":"t"}}"#),
        ("empty.json", ""),
        ("a.traj", "not json at all"),
    ];
    for (name, text) in files {
        assert_eq!(recognized(name, text), None, "{name}: {text}");
    }
}

/// A line larger than what a probe sees does not make the file one document.
#[test]
fn lines_may_be_larger_than_the_probe() {
    let long = "word ".repeat(400_000);
    let line = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{long}\"}}]}}\n");
    let source = Source::from_bytes("big.jsonl", line.repeat(2).into_bytes(), Arc::default());
    let importer = detect(&source).unwrap().expect("a chat file");
    let mut events: Vec<Event> = Vec::new();
    importer.import(&source, &mut events).unwrap();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Trajectory(_))).count(), 2);
}
