use std::fs;
use std::path::Path;
use std::sync::Arc;

use recoup::importers::{Event, ImportOptions, Source, detect};

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

/// Every fixture, cut at many places and with a byte damaged at each, comes to an end without a panic,
/// and what is refused says so.
#[test]
fn a_damaged_trace_is_refused_in_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let options = Arc::new(ImportOptions { threads: 1, ..ImportOptions::default() });
    let mut refused = 0;
    for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
        let entry = entry.unwrap();
        if !entry.file_type().is_file() || entry.file_name() == "expected.snap" {
            continue;
        }
        let whole = fs::read(entry.path()).unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        let source = Source::from_bytes(name.clone(), whole.clone(), options.clone());
        let Some(importer) = detect(&source).unwrap() else { continue };
        for at in (0..whole.len()).step_by(whole.len() / 40 + 1) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x15;
            for bytes in [whole[..at].to_vec(), damaged] {
                let source = Source::from_bytes(name.clone(), bytes, options.clone());
                let mut events: Vec<Event> = Vec::new();
                match importer.import(&source, &mut events) {
                    Ok(()) => {}
                    Err(error) => assert!(!error.to_string().is_empty()),
                }
                for event in events {
                    if let Event::Quarantine(entry) = event {
                        assert!(!entry.code.is_empty() && !entry.reason.is_empty());
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 0, "some damage must be noticed");
}
