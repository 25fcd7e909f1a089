//! Measuring: attribution against labels and against flips.

use crate::bench::{Bench, shared_data};

/// Two failed runs of a team, with the step and agent that people blamed.
fn labelled(bench: &Bench) {
    for (number, step) in [(1, "2"), (2, "0")] {
        let row = serde_json::json!({
            "is_correct": false, "question": "2 + 5 * 3?", "question_ID": format!("q{number}"),
            "ground_truth": "17", "mistake_agent": "Solver", "mistake_step": step, "mistake_reason": "order",
            "history": [
                { "role": "assistant", "name": "Planner", "content": "Solve 2 + 5 * 3." },
                { "role": "assistant", "name": "Planner", "content": "Multiply first, then add." },
                { "role": "user", "name": "Solver", "content": "Let's assume 2 + 5 is done first." },
            ],
        });
        bench.write(&format!("runs/{number}.json"), row.to_string());
    }
}

const EVAL: [&str; 4] = ["eval", "attribution", "--labels", "runs"];

#[test]
fn labels_are_scored_beside_floors_and_leave_no_project() {
    let bench = Bench::new();
    labelled(&bench);
    let json = bench.json(&[&EVAL[..], &["--json"]].concat(), 0);
    assert_eq!((&json["format"], &json["files"]), (&"recoup.attribution".into(), &2.into()));
    for key in
        ["exact", "within_1", "within_3", "within_5", "agent", "joint", "official_step", "official_agent"]
    {
        for part in ["k", "n", "rate", "low", "high"] {
            assert!(json[key].get(part).is_some(), "{key}.{part} in {json}");
        }
    }
    assert_eq!((&json["exact"]["k"], &json["agent"]["k"]), (&1.into(), &2.into()));
    assert_eq!((&json["unreachable"]["user"], &json["ceiling"]), (&1.into(), &0.5.into()));
    for floor in ["constant-1", "uniform", "first", "last", "most-frequent-agent", "majority-agent"] {
        for part in ["exact", "agent"] {
            assert!(json["floors"][floor].get(part).is_some(), "{floor}.{part} in {json}");
            assert!(json["differences"][floor].get(part).is_some(), "{floor}.{part} in {json}");
        }
    }
    assert!(!bench.path(".recoup").exists(), "the labelled runs went into a project of their own");
    insta::assert_snapshot!(bench.snapshot(&EVAL));
}

#[test]
fn predictions_come_from_a_file_and_those_that_are_missing_are_wrong() {
    let bench = Bench::new();
    labelled(&bench);
    let log = "Prediction for 1.json:\nAgent Name: Solver\nStep Number: 2\n";
    bench.write("log.txt", log);
    bench.write("lines.jsonl", "{\"file\":\"runs/1.json\",\"agent\":\"solver\",\"step\":2}\n");
    for file in ["log.txt", "lines.jsonl"] {
        let json = bench.json(&[&EVAL[..], &["--predictions", file, "--json"]].concat(), 0);
        assert_eq!((&json["joint"]["k"], &json["joint"]["n"]), (&1.into(), &2.into()), "{file}");
        assert_eq!((&json["predictions"]["given"], &json["predictions"]["missing"]), (&1.into(), &1.into()));
    }
    bench.write("broken.jsonl", "{\"step\":2}\n");
    let error = bench.json(&[&EVAL[..], &["--predictions", "broken.jsonl", "--json"]].concat(), 2);
    assert!(error["error"]["message"].as_str().unwrap().contains("line 1"), "{error}");
}

#[test]
fn labels_of_runs_that_were_not_read_are_said() {
    let bench = Bench::new();
    labelled(&bench);
    let label = serde_json::json!({
        "trajectory_id": "elsewhere", "root_cause": { "failure_id": 1 }, "failure_summary": "",
        "failures": [{ "failure_id": 1, "step_number": 3, "failed_agent": "Solver", "step_reason": "" }],
    });
    bench.write("runs/labels.json", serde_json::json!([label]).to_string());
    let json = bench.json(&[&EVAL[..], &["--json"]].concat(), 0);
    assert_eq!((&json["files"], &json["without_run"]), (&2.into(), &1.into()));
}

#[test]
fn labels_of_other_forms_are_scored_and_say_nothing_of_agents_they_do_not_name() {
    let bench = Bench::new();
    let say = |role: &str, text: &str| serde_json::json!({ "role": role, "content": text });
    let talk =
        [say("user", "Book it."), say("assistant", "Booked."), say("user", "No."), say("assistant", "So?")];
    let unified = |step: u64| {
        let annotation = serde_json::json!({ "critical_error_step": step, "critical_error_type": "act" });
        serde_json::json!({
            "messages": talk.clone(),
            "metadata": { "dataset": "travel", "task_id": format!("t{step}"), "reward": 0, "annotation": annotation },
        })
    };
    bench.write("unified.jsonl", format!("{}\n{}\n", unified(1), unified(3)));
    let json = bench.json(&["eval", "attribution", "--labels", "unified.jsonl", "--json"], 0);
    assert_eq!((&json["exact"]["n"], &json["sources"]["trajerrbench"]), (&2.into(), &2.into()), "{json}");
    assert_eq!(
        (&json["agent"]["n"], &json["floors"]["first"]["agent"]),
        (&0.into(), &serde_json::Value::Null)
    );
    let text = bench.snapshot(&["eval", "attribution", "--labels", "unified.jsonl"]);
    assert!(text.contains("  agent                     -\n"), "{text}");

    let run = serde_json::json!({ "id": "7", "task_id": "t7", "success": false, "messages": talk });
    bench.write("tau/runs.jsonl", format!("{run}\n"));
    let label = serde_json::json!({
        "trajectory_id": 7, "root_cause": { "failure_id": 2 }, "failure_summary": "",
        "failures": [
            { "failure_id": 1, "step_number": 4, "failed_agent": "Assistant", "step_reason": "" },
            { "failure_id": 2, "step_number": 2, "failed_agent": "Assistant", "step_reason": "" },
        ],
    });
    bench.write("labels/tau.json", serde_json::json!([label]).to_string());
    bench.write("said.jsonl", "{\"file\":\"tau/runs.jsonl\",\"agent\":\"assistant\",\"step\":1}\n");
    let given = ["--labels", "tau", "labels/tau.json", "--predictions", "said.jsonl", "--json"];
    let json = bench.json(&[&["eval", "attribution"], &given[..]].concat(), 0);
    assert_eq!((&json["joint"]["k"], &json["joint"]["n"]), (&1.into(), &1.into()), "{json}");

    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../recoup/tests/fixtures/importers");
    let table = folder.join("tracertraj/rows/input.parquet").to_string_lossy().into_owned();
    // One row of it is broken on purpose.
    let json = bench.json(&["eval", "attribution", "--labels", &table, "--json"], 1);
    assert_eq!((&json["sources"]["tracertraj"], &json["agent"]["n"]), (&4.into(), &4.into()), "{json}");
    assert_eq!((&json["unreachable"]["prompt"], &json["unreachable"]["nowhere"]), (&1.into(), &2.into()));
}

#[test]
fn judges_are_scored_by_what_they_left_in_the_project() {
    let bench = Bench::new();
    labelled(&bench);
    bench.output(&["import", "runs"]);
    let by = |who: &str| bench.json(&[&EVAL[..], &["--by", who, "--json"]].concat(), 0);
    let none = by("judge");
    assert_eq!((&none["predictions"]["missing"], &none["exact"]["k"]), (&2.into(), &0.into()), "{none}");
    let judge = |name: &str, agent: &str, step: u64, quote: &str, more: &[&str]| {
        let said = serde_json::json!({
            "citations": [{ "node": step, "quote": quote }], "decisive_step": step, "responsible_agent": agent,
            "explanation": "The order of work is wrong.", "candidate": null,
            "blame": { "party": "agent", "reason": "It is so." },
            "failure_class": { "class": "wrong_result", "recoverable": true, "severity": 0.5 },
        });
        let line = serde_json::json!({ "contains": "Solve", "answer": said.to_string() });
        bench.write(&format!("{name}.jsonl"), format!("{line}\n"));
        let model = format!("scripted:{name}.jsonl");
        let done = bench.json(&[&["diagnose", "--json", "--judge", &model], more].concat(), 0);
        assert_eq!(done["admitted"], 2, "{done}");
    };
    judge("blind", "Solver", 2, "Let's assume 2 + 5 is done first.", &[]);
    judge("told", "Planner", 1, "Multiply first, then add.", &["--with-ground-truth"]);
    let judged = by("judge");
    assert_eq!(
        (&judged["predictions"]["diagnosed"], &judged["exact"]["k"]),
        (&2.into(), &1.into()),
        "{judged}"
    );
    assert_eq!(judged["agent"]["k"], 2);
    let told = by("judge-with-ground-truth");
    assert_eq!((&told["predictions"]["diagnosed"], &told["agent"]["k"]), (&2.into(), &0.into()), "{told}");
}

#[test]
fn swept_runs_are_compared_with_the_turn_that_was_found() {
    let bench = Bench::new();
    let collect = ["collect", "--env", "desk", "--policy", "weak:wrong-variant@0.4", "--tasks", "12"];
    assert_eq!(bench.output(&collect).status.code(), Some(0));
    let sweep = ["replay", "--sweep", "--arms", "retry", "--continuations", "1"];
    assert_eq!(bench.output(&sweep).status.code(), Some(0));
    let against = ["eval", "attribution", "--against", "flips"];
    let json = bench.json(&[&against[..], &["--json"]].concat(), 0);
    for side in ["alone", "with_siblings"] {
        let desk = &json[side][0];
        assert_eq!(desk["environment"], "desk");
        assert_eq!(desk["within_1"]["n"], desk["runs"]);
        assert!(desk["policies"]["weak:wrong-variant@0.4"]["runs"].as_u64().unwrap() > 0, "{json}");
    }
    let said = bench.snapshot(&against);
    assert!(said.contains("within 3") && said.contains("each run alone"), "{said}");
}

#[test]
fn offline_attribution_beats_every_floor_on_the_public_runs() {
    let Some(runs) = shared_data("who_and_when/Who&When/Algorithm-Generated") else { return };
    let bench = Bench::new();
    let runs = runs.to_string_lossy();
    let json = bench.json(&["eval", "attribution", "--labels", &runs, "--json"], 0);
    assert_eq!(json["files"], 63);
    let rate = |value: &serde_json::Value| value["rate"].as_f64().unwrap();
    assert_eq!(json["floors"]["constant-1"]["exact"]["k"], 15.0);
    for (name, floor) in json["floors"].as_object().unwrap() {
        for part in ["exact", "agent"] {
            if !floor[part].is_null() {
                assert!(rate(&json[part]) > rate(&floor[part]), "{part} of {name}: {json}");
            }
        }
    }
}
