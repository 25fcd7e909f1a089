//! Replaying: failed runs re-executed, repairs proved by matched arms.

use crate::bench::Bench;

/// A project with collected runs that are diagnosed.
fn collected(policy: &str) -> Bench {
    let bench = Bench::new();
    let collect = ["collect", "--env", "quest", "--policy", policy, "--tasks", "24", "--seed", "7"];
    assert_eq!(bench.output(&collect).status.code(), Some(0));
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));
    bench
}

#[test]
fn arms_are_compared_with_intervals() {
    let bench = collected("weak:wrong-variant@0.4");
    insta::assert_snapshot!(bench.snapshot(&["replay", "--candidate", "expert", "--dry-run"]));
    let json = bench.json(&["replay", "--candidate", "expert", "--json", "--threads", "2"], 0);
    for key in ["pairs", "tasks", "unsupported", "arms", "differences", "design_effect"] {
        assert!(json.get(key).is_some(), "{key} in {json}");
    }
    for arm in ["retry", "resample", "reconsider", "guided", "repair"] {
        for key in ["passed", "n", "rate", "low", "high"] {
            assert!(json["arms"][arm].get(key).is_some(), "{arm}.{key} in {json}");
        }
    }
    for difference in ["repair-retry", "repair-resample", "guided-retry", "guided-reconsider"] {
        for key in ["points", "low", "high", "p", "p_holm"] {
            assert!(json["differences"][difference].get(key).is_some(), "{difference}.{key} in {json}");
        }
    }
    // Again, from the store, on one thread.
    let again = bench.json(&["replay", "--candidate", "expert", "--json", "--threads", "1"], 0);
    assert_eq!((&again["arms"], &again["new"]), (&json["arms"], &0.into()));
    insta::assert_snapshot!(bench.snapshot(&["replay", "--candidate", "expert"]));
    let failed = bench.json_lines(&["ls", "--json", "--outcome", "failure"]);
    let shown = bench.output(&["show", failed[0]["id"].as_str().unwrap()]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("proved: ") && shown.contains("retry "), "{shown}");
}

#[test]
fn curves_say_which_step_decided() {
    let bench = collected("weak:premature-stop@0.2");
    let json = bench.json(&["replay", "--sweep", "--candidate", "expert", "--limit", "5", "--json"], 0);
    assert!(
        json["decisive"].as_u64() > Some(0) && json["decisive"].as_u64() <= json["sweeps"].as_u64(),
        "{json}"
    );
    let failed = bench.json_lines(&["ls", "--json", "--outcome", "failure"]);
    let shown = bench.output(&["show", failed[0]["id"].as_str().unwrap()]);
    assert!(String::from_utf8(shown.stdout).unwrap().contains("sweep "));
}

#[test]
fn faults_are_put_in_and_marked() {
    let bench = collected("expert");
    let json = bench.json(&["replay", "--inject", "12", "--policy", "weak:skip-step@0.1", "--json"], 0);
    assert!(json["tried"] == 12 && json["kept"].as_u64() > Some(0), "{json}");
    let apart = bench.json_lines(&["ls", "--json", "--continuations", "--outcome", "failure"]);
    assert_eq!(Some(apart.len() as u64), json["kept"].as_u64());
    assert!(bench.json_lines(&["ls", "--json", "--outcome", "failure"]).is_empty());
}

#[test]
fn a_file_proposes_and_says_what_is_wrong_with_it() {
    let bench = collected("weak:wrong-variant@0.4");
    let failed = bench.json_lines(&["ls", "--json", "--outcome", "failure"]);
    let id = failed[0]["id"].as_str().unwrap();
    bench.write(
        "good.jsonl",
        format!("{{\"run\":\"{}\",\"step\":0,\"action\":{{\"say\":\"done\"}}}}\n", &id[..12]),
    );
    let json = bench.json(&["replay", id, "--candidate", "good.jsonl", "--arms", "repair", "--json"], 0);
    assert_eq!((&json["pairs"], &json["arms"]["repair"]["passed"]), (&1.into(), &0.into()), "{json}");
    bench.write("bad.jsonl", "{\"run\":\"ab\",\"action\":{\"say\":1}}\n");
    insta::assert_snapshot!(bench.snapshot(&["replay", "--candidate", "bad.jsonl"]));
    insta::assert_snapshot!(bench.snapshot(&["replay", "--candidate", "nowhere.jsonl"]));
    insta::assert_snapshot!(bench.snapshot(&["replay", "--policy", "weak:sleepy@0.1"]));
}

#[test]
fn the_main_job_replays_what_it_knows() {
    let bench = collected("weak:wrong-variant@0.4");
    let export = ["export", "--format", "atif", "--out", "runs", "--no-redact"];
    assert_eq!(bench.output(&export).status.code(), Some(0));
    let json = bench.json(&["run", "runs", "--project", "other", "--json"], 0);
    let failed = bench.json_lines(&["ls", "--json", "--outcome", "failure"]).len() as u64;
    assert_eq!(json["replayed"].as_u64(), Some(failed), "{json}");
    let page = std::fs::read_to_string(bench.path("recoup-out/report.html")).unwrap();
    assert!(page.contains("id=replay") && page.contains("Paired differences"));
    let report = std::fs::read_to_string(bench.path("recoup-out/report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert!(report["replay"]["groups"][0]["pairs"].as_u64() > Some(0), "{}", report["replay"]);
    assert!(!report["replay"]["curves"]["items"].as_array().unwrap().is_empty());
}

#[test]
fn a_successful_run_of_the_task_proposes_where_the_rules_do_not() {
    let bench = Bench::new();
    let collect = ["collect", "--env", "quest", "--policy", "weak:premature-stop@0.1", "--seed", "7"];
    let trials = [&collect[..], &["--tasks", "8", "--trials", "4", "--difficulty", "1"]].concat();
    assert_eq!(bench.output(&trials).status.code(), Some(0));
    assert_eq!(bench.output(&["diagnose"]).status.code(), Some(0));
    let replay = ["replay", "--arms", "retry,repair", "--continuations", "1", "--json"];
    let json = bench.json(&replay, 0);
    let sources = &json["groups"][0]["candidates"];
    assert!(sources.as_array().unwrap().contains(&"sibling".into()), "{json}");
    let by_rules = json["groups"][0].clone();
    assert!(json["arms"]["repair"]["passed"].as_u64() > json["arms"]["retry"]["passed"].as_u64(), "{json}");

    // What the expert proposes stands beside it, in what is printed and in the report.
    let expert = bench.json(&[&replay[..], &["--candidate", "expert"]].concat(), 0);
    assert_eq!(expert["groups"][0]["candidates"], serde_json::json!(["expert"]), "{expert}");
    assert_ne!(expert["groups"][0]["config_hash"], by_rules["config_hash"]);
    let export = ["export", "--format", "atif", "--out", "runs"];
    assert_eq!(bench.output(&export).status.code(), Some(0));
    assert_eq!(bench.output(&["run", "runs"]).status.code(), Some(0));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(bench.path("recoup-out/report.json")).unwrap()).unwrap();
    let groups = report["replay"]["groups"].as_array().unwrap();
    let of = |source: &str| groups.iter().any(|group| group["candidates"][0] == *source);
    assert!(of("expert") && groups.iter().any(|group| group["config_hash"] == by_rules["config_hash"]));
    let page = std::fs::read_to_string(bench.path("recoup-out/report.html")).unwrap();
    assert!(page.contains("repairs by the expert") && page.contains("what the expert proposed"));
}
