//! Stopped at every failpoint, on both sides of it, and started again: nothing is lost or doubled.
#![cfg(debug_assertions)]

use std::collections::BTreeMap;
use std::path::Path;

use recoup::failpoint::{Failpoint, Side};
use serde_json::Value;

use crate::bench::{Bench, chat_line};

/// Messages of the large run: more than a commit takes.
const LARGE: usize = 20_100;

/// Which command reaches a failpoint, after an import of everything where `true`.
fn command(point: Failpoint) -> (bool, &'static [&'static str]) {
    match point {
        Failpoint::Backup
        | Failpoint::Migration
        | Failpoint::Import
        | Failpoint::ImportAhead
        | Failpoint::Join
        | Failpoint::Sketches
        | Failpoint::SplitLinks
        | Failpoint::SplitRuns => (false, &["import", "runs"]),
        Failpoint::Verdicts | Failpoint::Done | Failpoint::Rows | Failpoint::Manifest | Failpoint::Report => {
            (true, &["run", "runs", "--out", "out"])
        }
        Failpoint::Export => (true, &["export", "--format", "atif", "--out", "out"]),
        Failpoint::Reply => (true, &["ask", "scripted:answers.jsonl", "--prompts", "questions.jsonl"]),
        Failpoint::Forget | Failpoint::Forgotten | Failpoint::Sweep | Failpoint::Repack => {
            (true, &["forget", "--matching", "SECRET", "--yes"])
        }
    }
}

/// Whether only a project of an older program reaches it.
fn is_old(point: Failpoint) -> bool {
    matches!(point, Failpoint::Backup | Failpoint::Sketches)
}

fn inputs(point: Failpoint) -> Bench {
    let bench = Bench::new();
    let mut lines: String = (0..20)
        .map(|i| chat_line(&format!("r{i}"), &format!("t{}", i / 2), Some(i % 3 == 0), "done"))
        .collect();
    lines += &chat_line("secret", "t0", Some(true), "the word is SECRET");
    bench.write("runs/a-small.jsonl", lines);
    if point == Failpoint::ImportAhead {
        let turn = r#"{"role":"user","content":"again"}"#;
        let large = format!("{{\"id\":\"large\",\"messages\":[{}]}}\n", vec![turn; LARGE].join(","));
        bench.write("runs/b-large.jsonl", large);
    }
    if is_old(point) {
        let old = Path::new(env!("CARGO_MANIFEST_DIR")).join("../recoup/tests/fixtures/store/v1.sqlite");
        bench.write(".recoup/store.sqlite", std::fs::read(old).unwrap());
    }
    bench.write("answers.jsonl", "{\"answer\":\"SECRET\"}\n");
    bench.write("questions.jsonl", "\"what?\"\n");
    // Names its run in another file, so it waits for it.
    bench.write(
        "runs/c-labels.json",
        r#"{"trajectory_id":"r1","failure_summary":"s","failures":[{"failure_id":1,"step_number":1,
            "step_reason":"because","failure_category":"System Failure","category_reason":"so",
            "failed_agent":"assistant"}],"root_cause":{"failure_id":1,"reason_for_root_cause":"it"}}"#,
    );
    bench
}

/// What the project lists and what lies in the folder of outlets.
fn state(bench: &Bench) -> (Vec<Value>, BTreeMap<String, Vec<u8>>) {
    let mut files = BTreeMap::new();
    if let Ok(entries) = std::fs::read_dir(bench.path("out")) {
        for entry in entries.map(Result::unwrap) {
            let name = entry.file_name().to_string_lossy().into_owned();
            files.insert(name, std::fs::read(entry.path()).unwrap());
        }
    }
    (bench.json_lines(&["ls", "--json", "--all"]), files)
}

#[test]
fn a_command_stopped_at_any_failpoint_goes_on() {
    let mut expected = BTreeMap::new();
    for point in Failpoint::ALL {
        let (imported, arguments) = command(*point);
        for side in Side::ALL {
            let bench = inputs(*point);
            if imported {
                bench.output(&["import", "runs"]);
            }
            if arguments[0] == "forget" {
                bench.output(&["ask", "scripted:answers.jsonl", "--prompts", "questions.jsonl"]);
            }
            let name = format!("{}-{}", side.as_str(), point.as_str());
            let stopped = bench.output(&[arguments, &["--stop-at", &name]].concat());
            assert_eq!(stopped.status.code(), None, "{name} was never reached: {}", bench.render(&stopped));
            if bench.path(".recoup/store.sqlite").exists() {
                let verified = bench.output(&["verify"]);
                assert_eq!(verified.status.code(), Some(0), "{name}: {}", bench.render(&verified));
            }
            if *point == Failpoint::ImportAhead {
                let shown = bench.json_lines(&["ls", "--json", "--all"]);
                assert!(shown.iter().all(|row| row["nodes"] == 2), "{name} shows half a run");
            }
            let again = bench.output(arguments);
            assert_eq!(again.status.code(), Some(0), "{name}: {}", bench.render(&again));
            let verified = bench.output(&["verify"]);
            assert_eq!(verified.status.code(), Some(0), "{name}: {}", bench.render(&verified));
            let undisturbed = expected
                .entry((arguments, *point == Failpoint::ImportAhead, is_old(*point)))
                .or_insert_with(|| {
                    let bench = inputs(*point);
                    if imported {
                        bench.output(&["import", "runs"]);
                    }
                    assert_eq!(bench.output(arguments).status.code(), Some(0));
                    state(&bench)
                });
            assert!(state(&bench) == *undisturbed, "{name} left another state");
            if arguments[0] == "forget" {
                let file = std::fs::read(bench.path(".recoup/store.sqlite")).unwrap();
                assert!(!bench.path(".recoup/store.sqlite-wal").exists(), "{name} left a log");
                assert!(file.windows(6).all(|bytes| bytes != b"SECRET"), "{name} left its bytes");
            }
        }
    }
}
