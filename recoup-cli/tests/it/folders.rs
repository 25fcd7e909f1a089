//! Runs re-executed in environments that are folders: packages in workers, and bridges.

use std::path::PathBuf;

use crate::bench::Bench;

/// The folder of an environment that the library's tests use.
fn fixture(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../recoup/tests/fixtures/environments")).join(name)
}

/// Copies the dials, with a line behind the program.
fn put_dials(bench: &Bench, folder: &str, more: &str) {
    for (file, more) in [("environment.toml", ""), ("environment.star", more)] {
        let text = std::fs::read_to_string(fixture("dials").join(file)).unwrap();
        bench.write(&format!("{folder}/{file}"), text + more);
    }
}

/// A project with runs in the dials, some of which have failed; their number.
fn collected(bench: &Bench) -> u64 {
    put_dials(bench, "dials", "");
    let collect =
        ["collect", "--env", "dials", "--policy", "weak:skip-step@0.3", "--tasks", "12", "--seed", "3"];
    let output = bench.output(&collect);
    assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("--environment dials=dials"), "{told}");
    let failed = bench.json_lines(&["ls", "--json", "--outcome", "failure"]).len() as u64;
    assert!(failed > 0);
    failed
}

const REPLAY: [&str; 6] = ["replay", "--sweep", "--candidate", "expert", "--arms", "retry,repair"];

#[test]
fn a_package_in_a_folder_is_replayed_in_a_worker() {
    let bench = Bench::new();
    let failed = collected(&bench);
    let without = bench.json(&[&REPLAY[..], &["--json"]].concat(), 0);
    assert_eq!(without["reasons"]["unknown-environment"].as_u64(), Some(failed), "{without}");
    let hinted = bench.render(&bench.output(&REPLAY));
    assert!(hinted.contains("`--environment NAME=DIR`"), "{hinted}");

    let with = bench.json(&[&REPLAY[..], &["--environment", "dials=dials", "--json"]].concat(), 0);
    assert_eq!((with["pairs"].as_u64(), with["unsupported"].as_u64()), (Some(failed), Some(0)), "{with}");
    assert!(with["arms"]["repair"]["passed"].as_u64() > with["arms"]["retry"]["passed"].as_u64(), "{with}");

    // The settings file says the same.
    bench.write("recoup.toml", "[environments]\ndials = \"dials\"\n");
    let again = bench.json(&[&REPLAY[..], &["--json"]].concat(), 0);
    assert_eq!((&again["new"], &again["arms"]), (&0.into(), &with["arms"]), "{again}");
}

#[test]
fn a_changed_package_is_an_error_on_the_record_and_the_others_go_on() {
    let bench = Bench::new();
    let failed = collected(&bench);
    let quest = ["collect", "--env", "quest", "--policy", "weak:wrong-variant@0.4", "--tasks", "12"];
    assert_eq!(bench.output(&quest).status.code(), Some(0));
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));
    let replay = ["replay", "--candidate", "expert", "--arms", "retry,repair", "--json"];
    put_dials(&bench, "changed", "\n# Another one.\n");
    let json = bench.json(&[&replay[..], &["--environment", "dials=changed"]].concat(), 0);
    assert_eq!(json["reasons"]["environment-version"].as_u64(), Some(failed), "{json}");
    assert!(json["pairs"].as_u64() > Some(0), "{json}");

    let other = bench.json(&[&replay[..], &["--environment", "quest=dials"]].concat(), 0);
    assert!(other["reasons"]["environment-load"].as_u64() > Some(0), "{other}");
    let nowhere = bench.json(&["replay", "--environment", "dials=nowhere", "--json"], 2);
    assert_eq!(nowhere["error"]["code"], "no-environment");
    assert_eq!(bench.output(&["replay", "--environment", "dials"]).status.code(), Some(2));
}

#[test]
fn the_main_job_replays_in_folders_that_are_named_later() {
    let bench = Bench::new();
    let failed = collected(&bench);
    let export = ["export", "--format", "atif", "--out", "runs", "--no-redact"];
    assert_eq!(bench.output(&export).status.code(), Some(0));
    let run = ["run", "runs", "--project", "other", "--json"];
    assert_eq!(bench.json(&run, 0)["replayed"], 0);
    let with = [&run[..], &["--environment", "dials=dials"]].concat();
    assert_eq!(bench.json(&with, 0)["replayed"].as_u64(), Some(failed));
    assert_eq!(bench.json(&with, 0)["replayed"], 0);
}

#[test]
fn a_bridge_in_a_folder_is_replayed_where_it_is_trusted() {
    let bench = Bench::new();
    let folder = fixture("bad-children/well-behaved").to_string_lossy().into_owned();
    let add = r#"{"tool":"add","arguments":{}}"#;
    let policy = format!("scripted:[{add},{add}]");
    let collect = ["collect", "--env", &folder, "--policy", &policy, "--tasks", "2", "--trust"];
    let output = bench.output(&collect);
    assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    let rows = bench.json_lines(&["ls", "--json", "--outcome", "failure"]);
    let line = |row: &serde_json::Value| format!("{{\"run\":{},\"step\":1,\"action\":{add}}}\n", row["id"]);
    bench.write("adds.jsonl", rows.iter().map(line).collect::<String>());
    let environment = format!("well-behaved={folder}");
    let whole = ["replay", "--candidate", "adds.jsonl", "--policy", &policy, "--environment", &environment];
    let replay = [&whole[..], &["--json"]].concat();
    let refused = bench.json(&replay, 0);
    assert_eq!(refused["reasons"]["environment-unsupported"], 2, "{refused}");
    let trusted = bench.json(&[&replay[..], &["--trust"]].concat(), 0);
    assert_eq!((&trusted["pairs"], &trusted["unsupported"]), (&2.into(), &0.into()), "{trusted}");
    assert_eq!(trusted["arms"]["repair"]["n"], 2, "{trusted}");
}
