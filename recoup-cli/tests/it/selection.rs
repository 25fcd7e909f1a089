//! What nothing is learned from: what is kept for measuring, near-duplicates, contaminated runs.

use serde_json::{Value, json};

use crate::bench::{Bench, chat_line};

/// An answer of forty words, its own for each number, but for the last ones.
fn answer(number: u32, last: &str) -> String {
    let words: Vec<String> = (0..40).map(|at| format!("word{number}x{at}")).collect();
    format!("{} {last}", words.join(" "))
}

/// Solved runs of several tasks, two of them nearly the same, on whatever side; and the training side's ids.
fn project() -> (Bench, Vec<String>) {
    let bench = Bench::new();
    let mut lines: String = (0..12)
        .map(|number| {
            chat_line(&format!("r{number}"), &format!("task-{number}"), Some(true), &answer(number, "end"))
        })
        .collect();
    lines += &chat_line("copy-of-0", "task-0", Some(true), &answer(0, "finish"));
    lines += &chat_line("copy-of-1", "task-1", Some(true), &answer(1, "finish"));
    bench.write("runs.jsonl", lines);
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    let rows = bench.json_lines(&["ls", "--json", "--split", "train"]);
    let ids = rows.iter().map(|row| row["native_id"].as_str().unwrap().to_owned()).collect();
    (bench, ids)
}

/// The manifest of the solved runs after an export with some flags.
fn manifest(bench: &Bench, flags: &[&str]) -> Value {
    let export = ["export", "success_sft", "--format", "trl-messages", "--out", "rows", "--json"];
    bench.json(&[&export, flags].concat(), 0);
    serde_json::from_slice(&std::fs::read(bench.path("rows/success_sft.manifest.json")).unwrap()).unwrap()
}

#[test]
fn near_duplicates_are_dropped_where_asked_and_counted() {
    let (bench, training) = project();
    let copies = training.iter().filter(|name| name.starts_with("copy")).count() as u64;
    assert!(copies > 0, "{training:?}");
    let all = manifest(&bench, &[]);
    assert_eq!(all["rows"], training.len());
    let near = manifest(&bench, &["--deduplicate", "near"]);
    assert_eq!(near["excluded"]["near-duplicate"], copies);
    assert_eq!(near["rows"], training.len() as u64 - copies);
    assert_ne!(near["config_hash"], all["config_hash"]);
    let stats = bench.json(&["stats", "--json"], 0);
    assert_eq!(stats["near_duplicates"], 2);
    assert_eq!(stats["largest_component"]["of"], 12);
}

#[test]
fn contaminated_runs_teach_nothing() {
    let (bench, training) = project();
    let named = training.iter().find(|name| name.starts_with('r')).unwrap();
    let quoted = training.iter().rfind(|name| name.starts_with('r')).unwrap();
    let task = named.replacen('r', "task-", 1);
    let quote = answer(quoted[1..].parse().unwrap(), "");
    bench.write("list.jsonl", format!("{}\n", json!({ "task_id": task, "split": "test" })));
    bench.write("texts.txt", format!("the answer of the benchmark is {quote}\n"));
    let flags = ["--contaminated", "list.jsonl", "--contaminated", "texts.txt"];
    let manifest = manifest(&bench, &flags);
    assert!(manifest["excluded"]["contaminated-id"].as_u64() >= Some(1), "{manifest}");
    assert!(manifest["excluded"]["contaminated-text"].as_u64() >= Some(1), "{manifest}");
    let text = std::fs::read_to_string(bench.path("rows/success_sft.jsonl")).unwrap();
    assert!(!text.contains(&format!("solve {task}\"")) && !text.contains("the answer of the benchmark"));
    bench.write("empty.txt", "\n");
    insta::assert_snapshot!(bench.snapshot(&["run", "runs.jsonl", "--contaminated", "empty.txt"]));
    bench.write("broken.jsonl", "{\"id\": 1}\n{broken\n");
    insta::assert_snapshot!(bench.snapshot(&["run", "runs.jsonl", "--contaminated", "broken.jsonl"]));
}

#[test]
fn an_environment_or_a_harness_is_kept_for_measuring() {
    let (bench, training) = project();
    let kept = bench.json_lines(&["ls", "--json", "--split", "train"]);
    let id = kept[0]["id"].as_str().unwrap();
    assert_eq!(bench.output(&["label", id, "--environment", "shop"]).status.code(), Some(0));
    let manifest = manifest(&bench, &["--leave-out", "environment=shop", "--leave-out", "harness=none"]);
    assert_eq!(manifest["excluded"]["left-out"], 1);
    assert_eq!(manifest["rows"], training.len() - 1);
    let misspelled = bench.snapshot(&[
        "export",
        "--format",
        "trl-messages",
        "--out",
        "rows",
        "--leave-out",
        "harness=shpo",
    ]);
    assert!(misspelled.contains("warning: no run is of harness=shpo: nothing was left out"), "{misspelled}");
    insta::assert_snapshot!(bench.snapshot(&[
        "export",
        "--format",
        "trl-messages",
        "--out",
        "rows",
        "--leave-out",
        "shop"
    ]));
    bench.write("recoup.toml", "[selection]\nleave_out = [\"shop\"]\n");
    insta::assert_snapshot!(bench.snapshot(&["export", "--format", "trl-messages", "--out", "rows"]));
    bench.write("recoup.toml", "[selection]\nleave_out = [\"environment=shop\"]\ndeduplicate = \"near\"\n");
    let settings = bench.json(&["run", "runs.jsonl", "--json"], 0);
    assert!(settings["exported"]["success_sft"].as_u64() < Some(training.len() as u64), "{settings}");
}

#[test]
fn tied_tasks_that_are_too_many_are_said() {
    let bench = Bench::new();
    let line = |number: u32| {
        chat_line(&format!("r{number}"), &format!("task-{number}"), Some(true), &answer(number % 7, "end"))
    };
    // One message of a person is the same for all, the goal too; the answers of every seventh are.
    let lines: String =
        (0..14).map(|number| line(number).replace(&format!("solve task-{number}"), "solve it")).collect();
    bench.write("runs.jsonl", lines);
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--split", "strict"]));
    insta::assert_snapshot!(
        bench
            .snapshot(&["stats"])
            .lines()
            .filter(|line| line.contains("split") || line.contains("near"))
            .collect::<Vec<_>>()
            .join("\n")
    );
}
