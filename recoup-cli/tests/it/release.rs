//! A release: linked tables, a card, and what does not leave.

use serde_json::json;

use crate::bench::{Bench, chat_line};

/// Failed and solved runs in a bundled environment, replayed; and two chats, one with a secret in it.
fn project() -> Bench {
    let bench = Bench::new();
    let collect =
        ["collect", "--env", "shop", "--policy", "weak:wrong-variant@0.9", "--tasks", "12", "--seed", "3"];
    let collected = bench.output(&collect);
    assert_eq!(collected.status.code(), Some(0), "{}", bench.render(&collected));
    bench.write("runs.jsonl", chat_line("chat", "sum", Some(false), "mail mia@example.com that 2 + 2 = 5"));
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));
    let replayed = bench.output(&["replay", "--candidate", "expert", "--continuations", "2"]);
    assert!(matches!(replayed.status.code(), Some(0 | 1)), "{}", bench.render(&replayed));
    bench
}

#[test]
fn a_release_holds_runs_and_all_that_was_decided() {
    let bench = project();
    let release = bench.json(&["release", "--out", "out", "--json"], 0);
    assert_eq!(release["runs"], 13);
    assert!(release["continuations"].as_u64() > Some(0), "{release}");
    let traces = release["runs"].as_u64().unwrap() + release["continuations"].as_u64().unwrap();
    assert_eq!(release["rows"]["traces"], traces);
    for table in ["diagnoses", "candidates", "reviews", "replays"] {
        assert!(release["rows"][table].as_u64() > Some(0), "{table}: {release}");
    }
    assert!(release["statuses"]["candidates"]["accepted"].as_u64() > Some(0), "{release}");
    assert_eq!(release["licences"], json!({ "own": 13 }));
    assert_eq!(release["environments"], json!({ "none": 1, "shop": 12 }));
    assert_eq!(release["redactions"]["EMAIL"], 1);
    assert_eq!(release["refused"], json!({}));
    let card = std::fs::read_to_string(bench.path("out/README.md")).unwrap();
    for said in [
        "Membership is not training eligibility",
        "config_name: replays",
        "`shop`: 12",
        "`EMAIL`: 1",
        "## Gates",
    ] {
        assert!(card.contains(said), "{said} in {card}");
    }
    let first: Vec<Vec<u8>> = files(&bench);
    assert!(first.iter().all(|bytes| !bytes.windows(15).any(|window| window == b"mia@example.com")));
    // The same again, and into a folder of somebody else's not at all.
    bench.json(&["release", "--out", "out", "--json"], 0);
    assert!(files(&bench) == first, "another release of the same has other bytes");
    bench.write("mine/README.md", "# My own\n");
    insta::assert_snapshot!(bench.snapshot(&["release", "--out", "mine"]));
}

fn files(bench: &Bench) -> Vec<Vec<u8>> {
    let names = [
        "traces.parquet",
        "diagnoses.parquet",
        "candidates.parquet",
        "reviews.parquet",
        "replays.parquet",
        "relabels.parquet",
        "README.md",
        "release.json",
    ];
    names.iter().map(|name| std::fs::read(bench.path("out").join(name)).unwrap()).collect()
}

#[test]
fn runs_of_unknown_licence_stay_out() {
    let bench = Bench::new();
    bench.write("own.jsonl", chat_line("own", "sum", Some(true), "the sum is 4"));
    bench.write("found.jsonl", chat_line("found", "sum", Some(false), "the sum is 5"));
    assert_eq!(bench.output(&["import", "own.jsonl", "--licence", "MIT"]).status.code(), Some(0));
    assert_eq!(bench.output(&["import", "found.jsonl", "--licence", "unknown"]).status.code(), Some(0));
    let refused = bench.snapshot(&["release", "--out", "out"]);
    let id = bench.json_lines(&["ls", "--json"])[1]["id"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(refused.replace(&id, "[id]"));
    assert!(!bench.path("out").exists());
    insta::assert_snapshot!(bench.snapshot(&["release", "--out", "out", "--skip-unknown"]));
    let release = bench.json(&["release", "--out", "out", "--skip-unknown", "--json"], 1);
    assert_eq!((&release["runs"], &release["licences"]), (&json!(1), &json!({ "MIT": 1 })));
    assert_eq!(release["refused"], json!({ "unknown-licence": 1 }));
    // Training rows may be made of them.
    assert_eq!(bench.output(&["export", "--format", "trl-messages", "--out", "rows"]).status.code(), Some(0));
}

#[test]
fn a_release_of_nothing_is_refused() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("chat", "sum", Some(false), "5"));
    assert_eq!(bench.output(&["import", "runs.jsonl", "--licence", "unknown"]).status.code(), Some(0));
    let answer = bench.json(&["release", "--skip-unknown", "--out", "out", "--json"], 2);
    assert_eq!(answer["error"]["code"], "nothing-left", "{answer}");
    assert!(!bench.path("out").exists());
}
