//! Every file and every answer for programs starts with what it is, who made it and from what.

use serde_json::Value;

use crate::bench::{Bench, chat_line};

const HEAD: [&str; 5] = ["format", "format_version", "producer", "config_hash", "inputs_hash"];

fn assert_head(artifact: &Value, of: &str) {
    let keys: Vec<&String> = artifact.as_object().unwrap().keys().take(HEAD.len()).collect();
    assert_eq!(keys, HEAD, "{of}");
    assert!(artifact["producer"].as_str().unwrap().starts_with("recoup "), "{of}");
}

#[test]
fn artifacts_start_with_their_head() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("one", "sum", Some(false), "the sum is 5"));
    let summary = bench.json(&["run", "runs.jsonl", "--out", "out", "--json"], 0);
    assert_head(&summary, "run");
    let file =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(bench.path(name)).unwrap()).unwrap() };
    let files = ["report", "settings", "success_sft.manifest", "step_masked_sft.manifest"];
    for name in files.map(|name| format!("out/{name}.json")) {
        let artifact = file(&name);
        assert_head(&artifact, &name);
        // Whoever holds the answer finds the files that were made from the same.
        assert_eq!(artifact["inputs_hash"], summary["inputs_hash"], "{name}");
        assert_eq!(artifact["config_hash"], summary["config_hash"], "{name}");
    }
    let id = bench.json(&["ls", "--json"], 0)["id"].as_str().unwrap().to_owned();
    let commands: [&[&str]; 9] = [
        &["import", "--formats"],
        &["show", &id],
        &["label", &id, "--outcome", "success"],
        &["diagnose"],
        &["export", "--format", "atif", "--out", "atif"],
        &["stats"],
        &["verify"],
        &["gc"],
        &["forget", &id, "--yes"],
    ];
    for command in commands {
        assert_head(&bench.json(&[command, &["--json"]].concat(), 0), command[0]);
    }
    assert_head(&file("atif/export.manifest.json"), "the export's manifest");
}

#[test]
fn answers_about_environments_start_with_their_head() {
    let bench = Bench::new();
    let collect = ["collect", "--env", "quest", "--policy", "weak:wrong-variant@0.5", "--tasks", "3"];
    let commands: [&[&str]; 7] = [
        &[&collect[..], &["--dry-run"]].concat(),
        &collect,
        &["replay", "--dry-run"],
        &["replay", "--candidate", "expert", "--sweep"],
        &["replay", "--inject", "1"],
        &["env", "check", "quest", "--seeds", "1", "--cheater-seeds", "1"],
        &["env", "play", "quest"],
    ];
    for command in commands {
        let answer = match bench.output(&[command, &["--json"]].concat()) {
            // So few seeds need not admit it.
            output if matches!(output.status.code(), Some(0 | 1)) => output.stdout,
            output => panic!("{}", bench.render(&output)),
        };
        let last = String::from_utf8(answer).unwrap();
        assert_head(&serde_json::from_str(last.lines().last().unwrap()).unwrap(), &command.join(" "));
    }
    // What another policy did is another answer.
    let hash = |policy| {
        let line = ["collect", "--env", "quest", "--policy", policy, "--tasks", "1", "--dry-run", "--json"];
        bench.json(&line, 0)["config_hash"].clone()
    };
    assert_eq!(hash("expert"), hash("expert"));
    assert_ne!(hash("expert"), hash("random"));
}
