//! Collecting: runs of a policy in a bundled environment, kept as ordinary runs.

use crate::bench::Bench;

const COLLECT: [&str; 9] =
    ["collect", "--env", "quest", "--policy", "weak:wrong-variant@0.4", "--tasks", "24", "--seed", "7"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&COLLECT[..], more].concat()
}

#[test]
fn runs_are_collected_once() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.snapshot(&COLLECT));
    insta::assert_snapshot!(bench.snapshot(&COLLECT));
    let json = bench.json(&with(&["--json", "--threads", "1"]), 0);
    assert_eq!((json["episodes"].as_u64(), json["new"].as_u64()), (Some(24), Some(0)));
    let success = &json["success"];
    assert!(success["n"] == 24 && success["low"].as_f64() < success["rate"].as_f64(), "{json}");
    let modes = json["end_modes"].as_object().unwrap();
    assert_eq!(modes.values().filter_map(serde_json::Value::as_u64).sum::<u64>(), 24);
    assert_eq!(bench.json_lines(&["ls", "--json", "--all", "--format", "recoup"]).len(), 24);
}

#[test]
fn a_dry_run_makes_nothing() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.snapshot(&with(&["--dry-run"])));
    assert!(!bench.path(".recoup").exists());
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    let bench = Bench::new();
    let collect = |environment: &str, policy: &str, more: &[&str]| {
        bench.snapshot(&[&["collect", "--env", environment, "--policy", policy][..], more].concat())
    };
    insta::assert_snapshot!(collect("quest", "weak:sleepy@0.3", &[]));
    insta::assert_snapshot!(collect("quest", "expert", &["--family", "fly"]));
    insta::assert_snapshot!(collect("quest", "expert", &["--difficulty", "4"]));
    assert!(!bench.path(".recoup").exists());
    let unknown = bench.output(&["collect", "--env", "moon", "--policy", "expert"]);
    assert_eq!(unknown.status.code(), Some(2));
    let text = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(
        text.contains("there is no environment `moon`") && text.contains("hint: environments are"),
        "{text}"
    );
}

#[test]
fn collected_runs_are_diagnosed_shown_and_exported_like_others() {
    let bench = Bench::new();
    assert_eq!(bench.output(&COLLECT).status.code(), Some(0));
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));
    let failed = bench.json_lines(&["ls", "--json", "--outcome", "failure"]);
    assert!(!failed.is_empty() && failed.iter().all(|row| row["blame"] == "agent"), "{failed:?}");
    let id = failed[0]["id"].as_str().unwrap();
    assert_eq!(bench.output(&["show", id]).status.code(), Some(0));
    let exported = bench.json(&["export", "--format", "atif", "--out", "out", "--json"], 0);
    let files = std::fs::read_dir(bench.path("out")).unwrap().count();
    assert!(files >= 24, "{exported}");
    // Which tools only look is recorded, and comes through an export.
    let tools = |id: &str, project: &str| {
        let shown = bench.json(&["show", id, "--json", "--project", project], 0);
        let tools = shown["trajectory"]["tools"].as_array().unwrap().clone();
        let said =
            |name: &str| tools.iter().find(|tool| tool["name"] == name).map(|tool| tool["read_only"].clone());
        [said("look"), said("take")]
    };
    assert_eq!(tools(id, ".recoup"), [Some(true.into()), Some(false.into())]);
    assert_eq!(bench.output(&["import", "out", "--project", "again"]).status.code(), Some(0));
    let again = bench.json_lines(&["ls", "--json", "--project", "again"]);
    assert_eq!(tools(again[0]["id"].as_str().unwrap(), "again"), tools(id, ".recoup"));
    assert_eq!(bench.output(&["verify"]).status.code(), Some(0));
}
