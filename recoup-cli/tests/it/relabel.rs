//! Goals that failed runs did achieve, through the user's door.

use serde_json::{Value, json};

use crate::bench::{Bench, chat_line};
use crate::fault_server::{Fault, FaultServer};

/// A project with diagnosed runs of a policy that stops too early.
fn stopped() -> Bench {
    let bench = Bench::new();
    let collect =
        ["collect", "--env", "desk", "--policy", "weak:premature-stop@0.3", "--tasks", "8", "--seed", "3"];
    for arguments in [&collect[..], &["diagnose"]] {
        let output = bench.output(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    }
    bench
}

#[test]
fn goals_are_found_offline_and_only_once() {
    let bench = stopped();
    let done = bench.json(&["relabel", "--json"], 0);
    let accepted: u64 = done["accepted"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert!(accepted > 0 && done["new"] == done["candidates"], "{done}");
    assert_eq!(done["verified"]["passed"], done["verified"]["n"], "{done}");
    assert_eq!(done["verified_by_class"], json!({ "environment": done["verified"] }), "{done}");
    // Withheld, the environment scores what other evidence has let pass.
    let blind = bench.json(&["relabel", "--blind", "--json"], 0);
    assert_eq!(blind["verified_by_class"], json!({ "rules": blind["verified"] }), "{blind}");
    assert!(blind["verified"]["n"].as_u64() > Some(0), "{blind}");
    let again = bench.json(&["relabel", "--json"], 0);
    // What has a goal is not looked at again; of what had none nothing was kept.
    assert_eq!(
        (&again["new"], &again["accepted"]),
        (&again["rejected"]["no-proposal"], &done["accepted"]),
        "{again}"
    );
    insta::assert_snapshot!(bench.snapshot(&["relabel"]));
    // Of the first run only its own goal is listed, and it has none.
    insta::assert_snapshot!("first_run_only", bench.snapshot(&["relabel", "--limit", "1"]));
}

#[test]
fn weighted_demonstrations_are_not_written_where_their_weights_would_be_lost() {
    let bench = stopped();
    bench.json(&["relabel", "--json"], 0);
    let written = bench.json(&["export", "hindsight_sft", "--format", "trl", "--out", "rows", "--json"], 0);
    assert_eq!(written["rows"], 0, "{written}");
    assert_eq!(written["refused"], json!({ "weight-not-carried": 2 }), "{written}");
}

/// A project with one run, which succeeded.
fn solved() -> Bench {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("one", "sum", Some(true), "the sum is 4"));
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    bench
}

#[test]
fn without_failures_there_is_nothing_to_relabel() {
    let bench = solved();
    insta::assert_snapshot!(bench.snapshot(&["relabel"]));
    let done = bench.json(&["relabel", "--json"], 0);
    assert_eq!((&done["candidates"], &done["accepted"]), (&json!(0), &json!({})), "{done}");
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let bench = solved();
    insta::assert_snapshot!("no_project", Bench::new().snapshot(&["relabel"]));
    insta::assert_snapshot!("wrong_flag", bench.snapshot(&["relabel", "--blnd"]));
    insta::assert_snapshot!("dry_run_without_judges", bench.snapshot(&["relabel", "--dry-run"]));
    let three = ["relabel", "--judge", "scripted:a", "--judge", "scripted:b", "--judge", "scripted:c"];
    insta::assert_snapshot!("three_judges", bench.snapshot(&three));
}

#[test]
fn the_first_two_judges_of_the_settings_are_asked() {
    let bench = stopped();
    for name in ["one", "two"] {
        bench.write(&format!("{name}.jsonl"), "{\"answer\":\"I do not know\"}\n".repeat(200));
    }
    bench.write(
        "recoup.toml",
        "[models]\njudges = [\"scripted:one.jsonl\", \"scripted:two.jsonl\", \"scripted:missing.jsonl\"]\n",
    );
    let done = bench.json(&["relabel", "--limit", "2", "--json"], 0);
    assert!(done["calls"].as_u64().unwrap() > 0, "{done}");
    let without = bench.json(&["relabel", "--limit", "2", "--no-judge", "--json"], 0);
    assert_eq!(without["calls"], 0, "{without}");
}

#[test]
fn no_template_stands_in_for_judges_that_found_no_goal() {
    let bench = stopped();
    bench.write("one.jsonl", "{\"answer\":\"I do not know\"}\n".repeat(200));
    let judged = bench.json(&["relabel", "--blind", "--judge", "scripted:one.jsonl", "--json"], 0);
    assert_eq!(
        (&judged["accepted"], &judged["rejected"]),
        (&json!({}), &json!({ "no-proposal": 6 })),
        "{judged}"
    );
    let offline = bench.json(&["relabel", "--blind", "--json"], 0);
    assert!(offline["accepted"]["rules"].as_u64() > Some(0), "{offline}");
}

/// A project with a diagnosed run that looked an order up, and models: one proposes the goal that it achieved, one says
/// no to it and one yes.
fn looked_up() -> Bench {
    let bench = Bench::new();
    let run = json!({ "id": "one", "task_id": "task/one", "success": false, "messages": [
        { "role": "user", "content": "Cancel my order with the garden hose and refund it." },
        { "role": "assistant", "content": null, "tool_calls": [{ "id": "c1", "type": "function", "function":
            { "name": "get_order", "arguments": r##"{"order":"#W7781"}"## } }] },
        { "role": "tool", "tool_call_id": "c1",
            "content": r##"{"order":"#W7781","state":"delivered","carrier":"Borealis"}"## },
        { "role": "assistant", "content": "I cannot do that." },
    ] });
    bench.write("runs.jsonl", format!("{run}\n"));
    let goal = json!({ "goal": "Please report the state and the carrier of order #W7781.", "claims": [
        { "text": "state", "facts": [1] }, { "text": "carrier", "facts": [2] },
        { "text": "order #W7781", "facts": [0] },
    ], "valid": true, "confidence": 0.9, "reason": "it was looked up" });
    let opinion = |valid: bool| json!({ "reason": "looked at", "valid": valid, "confidence": 0.9 });
    for (name, answer) in [("proposes", goal), ("no", opinion(false)), ("yes", opinion(true))] {
        bench.write(
            &format!("{name}.jsonl"),
            format!("{}\n", json!({ "answer": answer.to_string() })).repeat(9),
        );
    }
    for arguments in [&["import", "runs.jsonl"][..], &["diagnose"]] {
        assert_eq!(bench.output(arguments).status.code(), Some(0));
    }
    bench
}

#[test]
fn a_refused_goal_is_remembered_whichever_judges_are_asked_later() {
    let judged = |bench: &Bench, judge: &str| {
        let judge = format!("scripted:{judge}.jsonl");
        let relabel = ["relabel", "--judge", "scripted:proposes.jsonl", "--judge", &judge, "--json"];
        let done = bench.json(&relabel, 0);
        (done["new"].clone(), done["accepted"].clone(), done["rejected"].clone())
    };
    let bench = looked_up();
    let refused = (json!(1), json!({}), json!({ "judge": 1 }));
    assert_eq!(judged(&bench, "no"), refused);
    assert_eq!(judged(&bench, "yes"), refused);
    // Who remembers nothing accepts it.
    assert_eq!(judged(&looked_up(), "yes"), (json!(1), json!({ "two_judges": 1 }), json!({})));
}

#[test]
fn a_goal_is_shown_with_the_places_of_its_claims() {
    for (judge, name) in [("yes", "goal_shown"), ("no", "refused_goal_shown")] {
        let bench = looked_up();
        let judge = format!("scripted:{judge}.jsonl");
        bench.json(&["relabel", "--judge", "scripted:proposes.jsonl", "--judge", &judge, "--json"], 0);
        let id = bench.json(&["ls", "--json"], 0)["id"].as_str().unwrap().to_owned();
        insta::assert_snapshot!(name, bench.snapshot(&["show", &id]));
    }
}

#[test]
fn a_judge_that_refuses_every_question_is_not_asked_about_every_run() {
    let bench = Bench::new();
    let collect = ["collect", "--env", "desk", "--policy", "weak:ungrounded-id@0.9", "--tasks", "60"];
    for arguments in [&collect[..], &["diagnose"]] {
        let output = bench.output(arguments);
        assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
    }
    let server = FaultServer::start(|_, _| Fault::status(400, r#"{"error":{"message":"no such model"}}"#));
    let model = server.model("gone");
    let arguments = ["relabel", "--judge", &model, "--concurrency", "1", "--json"];
    let done = bench.json(&arguments, 1);
    assert_eq!(server.asked().len(), 16, "{done}");
    let undecided: u64 = done["undecided"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    let by_environment = done["accepted"]["environment"].as_u64().unwrap();
    assert_eq!(undecided + by_environment, done["new"].as_u64().unwrap(), "{done}");
    assert!(undecided > 16, "{done}");
}

#[test]
fn what_is_decided_is_not_in_the_estimate() {
    let bench = stopped();
    bench.write("one.jsonl", "{\"answer\":\"I do not know\"}\n".repeat(200));
    let judged = ["relabel", "--judge", "scripted:one.jsonl", "--json"];
    let before = bench.json(&[&judged[..], &["--dry-run"]].concat(), 0);
    bench.json(&judged, 0);
    let after = bench.json(&[&judged[..], &["--dry-run"]].concat(), 0);
    let questions =
        |estimate: &Value| estimate["requests"].as_u64().unwrap() + estimate["cached"].as_u64().unwrap();
    assert!(questions(&before) > questions(&after), "{before} {after}");
}
