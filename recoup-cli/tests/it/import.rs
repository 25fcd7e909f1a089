//! Importing: counts, outcomes from elsewhere, growing files.

use serde_json::json;

use crate::bench::{Bench, chat_line};

#[test]
fn an_import_is_idempotent_and_a_grown_file_adds_only_its_new_lines() {
    let bench = Bench::new();
    let first = chat_line("a", "t", Some(true), "x");
    bench.write("runs.jsonl", &first);
    assert_eq!(bench.json(&["import", "runs.jsonl", "--json"], 0)["new"], 1);
    assert_eq!(bench.json(&["import", "runs.jsonl", "--json"], 0)["new"], 0);
    bench.write("runs.jsonl", first + &chat_line("b", "t", Some(false), "y"));
    let summary = bench.json(&["import", "runs.jsonl", "--json"], 0);
    assert_eq!((summary["new"].as_u64(), summary["duplicates"].as_u64()), (Some(1), Some(1)));
}

#[test]
fn a_moved_file_adds_nothing() {
    let bench = Bench::new();
    let row = "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"assistant\",\"content\":\"x\"}]}\n";
    bench.write("a/runs.jsonl", row);
    bench.write("b/other.jsonl", row);
    assert_eq!(bench.json(&["import", "a", "--json"], 0)["new"], 1);
    assert_eq!(bench.json(&["import", "b", "--json"], 0)["new"], 0);
}

#[test]
fn the_summary_has_the_promised_keys() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t", Some(false), "x"));
    for command in ["import", "run"] {
        let summary = bench.json(&[command, "runs.jsonl", "--json"], 0);
        for key in [
            "files",
            "trajectories",
            "new",
            "duplicates",
            "nodes",
            "tool_calls",
            "tool_results",
            "quarantined",
            "outcomes",
            "blame",
            "formats",
            "diagnosed",
            "exported",
            "report",
        ] {
            assert!(summary.get(key).is_some(), "{key} of {command} in {summary}");
        }
        assert_eq!(summary["formats"]["openai-chat"]["nodes"], 2);
        assert_eq!(summary["outcomes"]["failure"], 1);
    }
}

#[test]
fn outcomes_come_from_a_file() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t1", None, "x") + &chat_line("b", "t2", None, "y"));
    bench.write("outcomes.csv", "run_id,success\na,true\n");
    bench.write(
        "outcomes.jsonl",
        "{\"task_id\":\"t2\",\"outcome\":\"failure\"}\n{\"task_id\":\"t9\",\"outcome\":\"failure\"}\n",
    );
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--outcomes", "outcomes.csv"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--outcomes", "outcomes.jsonl"]));
    let outcome = |native: &str| {
        let rows = bench.json_lines(&["ls", "--json"]);
        rows.iter().find(|row| row["native_id"] == native).unwrap()["outcome"].clone()
    };
    assert_eq!((outcome("a"), outcome("b")), ("success".into(), "failure".into()));
}

/// The runs by their own ids, each with its outcome.
fn outcomes(bench: &Bench) -> String {
    let rows = bench.json_lines(&["ls", "--json"]);
    let said: Vec<String> =
        rows.iter().map(|row| format!("{} {}", row["native_id"], row["outcome"]).replace('"', "")).collect();
    said.join(", ")
}

#[test]
fn half_a_task_key_names_only_runs_that_are_read_with_the_outcomes() {
    let bench = Bench::new();
    bench.write("airline.jsonl", chat_line("a", "airline/7", Some(true), "x"));
    bench.write("retail.jsonl", chat_line("r", "retail/7", None, "y"));
    bench.write("retail.csv", "task_id,outcome\n7,failure\n");
    assert_eq!(bench.output(&["import", "airline.jsonl"]).status.code(), Some(0));
    bench.json(&["import", "retail.jsonl", "--outcomes", "retail.csv", "--json"], 0);
    assert_eq!(outcomes(&bench), "a success, r failure");
    // Read together, it may mean either; the whole key names one, also of runs that were read before.
    bench.write("7.csv", "task_id,outcome\n7,success\n");
    let both = ["import", "airline.jsonl", "retail.jsonl", "--outcomes", "7.csv"];
    insta::assert_snapshot!(bench.snapshot(&both));
    bench.write("whole.csv", "task_id,outcome\nairline/7,failure\n");
    bench.json(&["import", "retail.jsonl", "--outcomes", "whole.csv", "--json"], 0);
    assert_eq!(outcomes(&bench), "a failure, r failure");
}

#[test]
fn failure_is_assumed_of_the_runs_that_are_read_and_no_others() {
    let bench = Bench::new();
    bench.write("old.jsonl", chat_line("old", "t1", None, "x"));
    bench.write("new.jsonl", chat_line("new", "t2", None, "y"));
    assert_eq!(bench.output(&["import", "old.jsonl"]).status.code(), Some(0));
    bench.json(&["import", "new.jsonl", "--assume", "failure", "--json"], 0);
    assert_eq!(outcomes(&bench), "old unknown, new failure");
    // What the infrastructure ended has no outcome, whatever is assumed of the others.
    let history = |id: &str, status: &str| {
        json!({
            "instance_id": id,
            "info": { "exit_status": status, "submission": "" },
            "messages": [{ "role": "user", "content": id }, { "role": "assistant", "content": "x" }],
            "trajectory_format": "mini-swe-agent-1",
        })
        .to_string()
    };
    bench.write("a.traj.json", history("broken", "APIError"));
    bench.write("b.traj.json", history("whole", "Submitted"));
    let summary = bench.json(&["import", "a.traj.json", "b.traj.json", "--assume", "failure", "--json"], 0);
    assert_eq!(summary["outcomes"], json!({ "success": 0, "failure": 1, "unknown": 1 }), "{summary}");
}

#[test]
fn an_outcome_file_that_says_nothing_is_refused() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t1", None, "x"));
    bench.write("outcomes.csv", "run_id,success\na,perhaps\n");
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--outcomes", "outcomes.csv"]));
}

#[test]
fn an_assumed_failure_gives_way_to_any_other_word() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t1", None, "x"));
    let summary = bench.json(&["import", "runs.jsonl", "--assume", "failure", "--json"], 0);
    assert_eq!(summary["outcomes"]["failure"], 1);
    let id = bench.json_lines(&["ls", "--json"])[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(bench.output(&["label", &id, "--outcome", "success"]).status.code(), Some(0));
    assert_eq!(bench.json_lines(&["ls", "--json"])[0]["outcome"], "success");
}

#[test]
fn a_dry_run_writes_nothing() {
    let bench = Bench::new();
    bench.write("runs/a.jsonl", chat_line("a", "t1", None, "x"));
    bench.write("runs/notes.md", "# notes\n");
    insta::assert_snapshot!(bench.snapshot(&["import", "runs", "--dry-run"]));
    assert!(!bench.path(".recoup").exists());
}

#[test]
fn formats_are_listed() {
    let text = Bench::new().snapshot(&["import", "--formats"]);
    for format in ["openai-chat", "inspect", "swe-agent", "atif", "codex"] {
        assert!(text.contains(format), "{format} in {text}");
    }
}

#[test]
fn what_recoup_wrote_is_not_read_back() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t", Some(true), "x"));
    assert_eq!(bench.json(&["run", ".", "--json"], 0)["new"], 1);
    let second = bench.json(&["run", ".", "--json"], 0);
    assert_eq!((second["trajectories"].as_u64(), second["new"].as_u64()), (Some(1), Some(0)));
}

#[test]
fn counted_outcomes_are_those_that_stand() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t1", None, "x"));
    bench.write("outcomes.csv", "run_id;success\na;true\n");
    for _ in 0..2 {
        let summary = bench.json(&["import", "runs.jsonl", "--outcomes", "outcomes.csv", "--json"], 0);
        assert_eq!(summary["outcomes"]["success"], 1, "{summary}");
        assert_eq!(summary["outcomes"]["unknown"], 0, "{summary}");
    }
    assert_eq!(bench.json(&["import", "runs.jsonl", "--json"], 0)["outcomes"]["success"], 1);
}

#[test]
fn several_scorers_are_named_until_one_is_chosen() {
    let bench = Bench::new();
    let row = json!({
        "id": "a", "reward": 1.0, "score": 0.0,
        "messages": [{ "role": "user", "content": "q" }, { "role": "assistant", "content": "x" }],
    });
    bench.write("runs.jsonl", format!("{row}\n"));
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl"]));
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--score", "rewrad"]));
    let summary = bench.json(&["import", "runs.jsonl", "--score", "reward", "--json"], 0);
    assert_eq!(summary["outcomes"]["success"], 1);
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--success-at", "NaN"]));
}

#[test]
fn quiet_says_that_something_was_left_out() {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("a", "t", None, "x") + "{broken\n");
    insta::assert_snapshot!(bench.snapshot(&["import", "runs.jsonl", "--quiet"]));
}

/// People's answer is for nobody to see who judges, step or no step.
#[test]
fn an_agent_that_people_blame_is_not_shown_where_they_name_no_step() {
    let bench = Bench::new();
    let row = |id: &str, step: serde_json::Value| {
        json!({
            "id": id, "mistake_step": step, "mistake_agent": "PLANTED-AGENT", "mistake_reason": "PLANTED-REASON",
            "messages": [{ "role": "user", "content": "solve" }, { "role": "assistant", "content": "5" }],
        })
    };
    bench.write("runs.jsonl", format!("{}\n{}\n", row("a", json!(1)), row("b", json!(null))));
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    for run in bench.json_lines(&["ls", "--json"]) {
        let shown = bench.json(&["show", run["id"].as_str().unwrap(), "--json"], 0);
        assert!(!shown["trajectory"].to_string().contains("PLANTED"), "{shown}");
    }
}

#[test]
fn labels_whose_runs_are_elsewhere_are_said() {
    let bench = Bench::new();
    let label = json!([{
        "trajectory_id": "elsewhere", "LLM": "m", "task_type": "alfworld", "critical_failure_step": 1,
        "critical_failure_module": "plan", "step_annotations": [],
    }]);
    bench.write("labels.json", label.to_string());
    bench.write("runs.jsonl", chat_line("a", "t", Some(false), "x"));
    let output = bench.output(&["import", "labels.json", "runs.jsonl"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("labels name 1 run not in the project, and wait: `elsewhere`"), "{said}");
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn a_trial_that_stands_in_two_files_is_one_run() {
    let bench = Bench::new();
    let trial = json!({
        "id": "00000000-0000-4000-8000-000000000001", "trial_name": "a.1-of-1.now", "task_id": "a@v1",
        "instruction": "Do a.", "is_resolved": true, "failure_mode": "agent_timeout", "parser_results": {"t": "passed"},
    });
    bench.write("run/results.json", json!({"id": "r", "results": [trial]}).to_string());
    bench.write("run/a@v1/a.1-of-1.now/results.json", trial.to_string());
    bench.write("run/nested/a@v1/a.1-of-1.now/results.json", trial.to_string());
    let summary = bench.json(&["import", "run", "--json"], 0);
    assert_eq!((summary["new"].as_u64(), summary["duplicates"].as_u64()), (Some(1), Some(2)));
}
