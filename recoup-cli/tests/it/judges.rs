//! Judges through the user's door: scripted models, so nothing leaves and every answer is known.

mod served;

use serde_json::{Value, json};

use crate::bench::Bench;

/// A failed run in which an order is refunded that nobody named.
pub fn line(id: &str, order: &str, success: bool) -> String {
    let call = json!({ "id": "c1", "type": "function",
        "function": { "name": "refund", "arguments": "{\"order\":\"W77121\"}" } });
    let row = json!({
        "id": id, "task_id": format!("desk-{id}"), "success": success,
        "tools": [{ "type": "function", "function": { "name": "refund", "description": "Refunds.",
            "parameters": { "type": "object", "properties": { "order": { "type": "string" } }, "required": ["order"] } } }],
        "messages": [
            { "role": "user", "content": format!("Please refund order {order}.") },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "tool_call_id": "c1", "content": "refunded W77121" },
            { "role": "assistant", "content": "Your order is refunded." },
        ],
    });
    format!("{row}\n")
}

/// What the proposer says of a run.
pub fn proposal(order: &str, step: u64, quote: &str) -> Value {
    json!({
        "citations": [{ "node": 1, "quote": quote }],
        "decisive_step": step, "responsible_agent": "assistant",
        "explanation": format!("The call refunds another order than {order}."),
        "candidate": { "tool": "refund", "arguments": format!("{{\"order\":\"{order}\"}}"), "rationale": "The order asked for." },
        "blame": { "party": "agent", "reason": "It took another number." },
        "failure_class": { "class": "hallucination", "recoverable": true, "severity": 0.6 },
    })
}

pub fn opinion(verdict: &str, step: u64) -> Value {
    let word = json!({ "reason": "the record shows it", "verdict": verdict });
    json!({ "decisive_step": step, "M1": word, "M2": word, "M3": word, "M4": word })
}

fn script(lines: &[(&str, Value)]) -> String {
    let line = |(contains, answer): &(&str, Value)| {
        json!({ "contains": contains, "answer": answer.to_string() }).to_string() + "\n"
    };
    lines.iter().map(line).collect()
}

/// Four runs: one diagnosis stands, one is refused by the panel, one quotes what is not there, one
/// succeeded.
fn desk() -> Bench {
    let bench = Bench::new();
    let runs = [
        line("a", "W10001", false),
        line("b", "W10002", false),
        line("c", "W10003", false),
        line("d", "W77121", true),
    ];
    bench.write("runs.jsonl", runs.concat());
    let quote = "{\"order\":\"W77121\"}";
    bench.write(
        "claude-judge.jsonl",
        script(&[
            ("W10001", proposal("W10001", 1, quote)),
            ("W10002", proposal("W10002", 1, quote)),
            ("W10003", proposal("W10003", 1, "{\"order\":\"W99999\"}")),
        ]),
    );
    bench.write(
        "gpt-judge.jsonl",
        script(&[("W10001", opinion("admit", 1)), ("W10002", opinion("reject", 3))]),
    );
    bench
}

const PANEL: [&str; 4] = ["--judge", "scripted:claude-judge.jsonl", "--judge", "scripted:gpt-judge.jsonl"];

fn id(bench: &Bench, native: &str) -> String {
    let rows = bench.json_lines(&["ls", "--json"]);
    rows.iter().find(|row| row["native_id"] == native).unwrap()["id"].as_str().unwrap().to_owned()
}

#[test]
fn a_panel_diagnoses_and_every_figure_is_there() {
    let bench = desk();
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    let done = bench.json(&[&["diagnose", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!(done["format"], "recoup.diagnosing");
    assert_eq!(
        (&done["runs"], &done["diagnosed"], &done["admitted"]),
        (&json!(3), &json!(3), &json!(1)),
        "{done}"
    );
    assert_eq!(done["rejected"], json!({ "M1": 1, "S4": 1 }));
    // Run a: an answer and an opinion. Run b: four answers, the same opinion on each. Run c: four answers.
    assert_eq!(
        (&done["calls"], &done["cached"], &done["cost_usd"]),
        (&json!(11), &json!(3), &json!(0.0)),
        "{done}"
    );
    assert_eq!(done["judging"]["refused_answers"], json!({ "M1": 4, "S4": 4 }));
    assert_eq!(done["judging"]["disagreements"], 1);

    let shown = bench.json(&["show", &id(&bench, "a"), "--json"], 0);
    let verdicts = shown["verdicts"].as_array().unwrap();
    let diagnosis = verdicts.iter().find(|verdict| verdict["content"]["diagnosis"].is_object()).unwrap();
    assert_eq!(diagnosis["producer"]["name"], "judge");
    assert_eq!(diagnosis["content"]["diagnosis"]["admitted"], true);
    let text = bench.snapshot(&["show", &id(&bench, "a")]);
    assert!(text.contains("⟦{\"order\":\"W77121\"}⟧"), "the citation is marked: {text}");
    assert!(text.contains("admitted after 1 answer by scripted:claude-judge@"), "{text}");

    let refused = bench.json(&["show", &id(&bench, "c"), "--json"], 0);
    let kinds: Vec<bool> = refused["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|verdict| verdict["content"]["rejected_answer"]["gate"] == "S4")
        .collect();
    assert_eq!(kinds.iter().filter(|is_one| **is_one).count(), 4, "every refused answer is kept");
}

#[test]
fn a_second_call_pays_for_nothing_and_resume_asks_nothing() {
    let bench = desk();
    bench.output(&["import", "runs.jsonl"]);
    let first = bench.json(&[&["diagnose", "--json"], &PANEL[..]].concat(), 0);
    let again = bench.json(&[&["diagnose", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!((&again["calls"], &again["admitted"]), (&json!(0), &first["admitted"]), "{again}");
    assert_eq!(again["cached"].as_u64(), Some(14), "every question is answered from before: {first}");
    let resumed = bench.json(&[&["diagnose", "--json", "--resume"], &PANEL[..]].concat(), 0);
    assert_eq!((&resumed["runs"], &resumed["calls"], &resumed["cached"]), (&json!(0), &json!(0), &json!(0)));
    let stats = |bench: &Bench| bench.json(&["verify", "--json"], 0)["verdicts"].clone();
    let before = stats(&bench);
    bench.json(&[&["diagnose", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!(stats(&bench), before, "the same answers are the same verdicts");
}

#[test]
fn runs_are_chosen_by_name_number_and_sample() {
    let bench = desk();
    bench.output(&["import", "runs.jsonl"]);
    let runs = |flags: &[&str]| {
        bench.json(&[&["diagnose", "--json"], &PANEL[..], flags].concat(), 0)["runs"].as_u64().unwrap()
    };
    assert_eq!(runs(&["--only", &id(&bench, "b")]), 1);
    assert_eq!(runs(&["--only", &id(&bench, "d")]), 0, "a success has nothing to diagnose");
    assert_eq!(runs(&["--limit", "2"]), 2);
    assert_eq!(runs(&["--sample", "1"]), 1);
    assert_eq!(runs(&["--sample", "9"]), 3);
    let alone = bench.output(&["diagnose", "--limit", "2"]);
    assert_eq!(alone.status.code(), Some(2), "a limit on judges without judges");
}

#[test]
fn a_run_that_is_named_is_looked_at_again_by_rules() {
    let bench = desk();
    bench.output(&["import", "runs.jsonl"]);
    bench.output(&["diagnose"]);
    assert_eq!(bench.json(&["diagnose", "--json", "--resume"], 0)["runs"], 0, "nothing is new");
    let verdicts = || bench.json(&["verify", "--json"], 0)["verdicts"].clone();
    let before = verdicts();
    let again = bench.json(&["diagnose", "--json", "--only", &id(&bench, "b")], 0);
    assert_eq!((&again["runs"], &again["diagnosed"]), (&json!(1), &json!(1)), "{again}");
    assert_eq!(verdicts(), before, "the same rules say the same");
}

#[test]
fn a_dry_run_counts_and_asks_nothing() {
    let bench = desk();
    bench.output(&["import", "runs.jsonl"]);
    let estimate = bench.json(&[&["diagnose", "--dry-run", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!((&estimate["requests"], &estimate["runs"]), (&json!(6), &json!(3)), "{estimate}");
    assert!(bench.json_lines(&["ls", "--json"]).iter().all(|row| row["decisive_node"].is_null()));
}

#[test]
fn a_dry_run_of_the_main_job_writes_nothing_out() {
    let bench = desk();
    let answers = bench.json_lines(&[&["run", "runs.jsonl", "--dry-run", "--json"], &PANEL[..]].concat());
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!((&answers[0]["requests"], &answers[0]["runs"]), (&json!(6), &json!(3)));
    assert!(!bench.path("recoup-out").exists());
    let alone = bench.output(&["run", "runs.jsonl", "--dry-run"]);
    assert_eq!(alone.status.code(), Some(2), "{}", bench.render(&alone));
    assert!(!bench.path("recoup-out").exists());
}

#[test]
fn a_script_without_an_answer_decides_nothing_and_says_so() {
    let bench = desk();
    bench.output(&["import", "runs.jsonl"]);
    bench.write("empty.jsonl", script(&[("no such run", json!({}))]));
    let output = bench.output(&["diagnose", "--judge", "scripted:empty.jsonl"]);
    assert_eq!(output.status.code(), Some(2), "{}", bench.render(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no answer"), "{}", bench.render(&output));
    bench.write("half.jsonl", script(&[("W10001", proposal("W10001", 1, "{\"order\":\"W77121\"}"))]));
    let half = bench.json(&["diagnose", "--json", "--judge", "scripted:half.jsonl"], 1);
    assert_eq!((&half["runs"], &half["admitted"]), (&json!(1), &json!(1)));
    assert_eq!(half["judging"]["errors"].as_object().unwrap().len(), 2, "{half}");
}

#[test]
fn the_main_job_uses_judges_and_without_one_nothing_changes() {
    let (with, without) = (desk(), desk());
    let judged = with.json(&[&["run", "runs.jsonl", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!(judged["judged"]["admitted"], 1, "{judged}");
    let plain = without.json(&["run", "runs.jsonl", "--json"], 0);
    assert!(plain.get("judged").is_none());
    let report = |bench: &Bench| -> Value {
        serde_json::from_slice(&std::fs::read(bench.path("recoup-out/report.json")).unwrap()).unwrap()
    };
    let judges = &report(&with)["judges"];
    assert_eq!((&judges["admitted"]["k"], &judges["admitted"]["n"]), (&json!(1), &json!(3)));
    assert_eq!(judges["gates"]["S4"], json!({ "admitted": 2, "rejected": 1, "abstained": 0, "decided": 1 }));
    assert_eq!(judges["gates"]["M1"]["decided"], 1);
    assert_eq!(judges["disagreements"]["items"][0]["judges"], json!([0, 1]));
    assert!(report(&without).get("judges").is_none());
    for name in ["report.html", "report.md"] {
        let text = std::fs::read_to_string(with.path("recoup-out").join(name)).unwrap();
        assert!(text.contains("What the judges say") && text.contains("recoup review"), "{name}");
        assert!(
            !std::fs::read_to_string(without.path("recoup-out").join(name)).unwrap().contains("judges say")
        );
    }
    let again = with.json(&[&["run", "runs.jsonl", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!(again["judged"]["runs"], 0, "what was judged is not judged again");
}

#[test]
fn a_person_reviews_blind_and_measures_the_judges() {
    let bench = desk();
    bench.output(&[&["run", "runs.jsonl"], &PANEL[..]].concat());
    let blind = bench.json_lines(&["review", "--json", "--sample", "10", "--stratify", "judged"]);
    assert_eq!(blind.len(), 4, "three judged runs and the count");
    assert_eq!(bench.json_lines(&["review", "--json", "--sample", "10", "--stratify"]), blind);
    for shown in &blind[..3] {
        let text = shown["text"].as_str().unwrap();
        assert!(text.contains("Please refund") && text.contains("step 0"), "{text}");
        assert!(
            !text.contains("decisive")
                && !text.contains("reward")
                && !text.contains("failure")
                && !text.contains('⟦')
        );
    }
    let (a, b, c) = (id(&bench, "a"), id(&bench, "b"), id(&bench, "c"));
    let answers = [(&a, "step 0"), (&b, "node 3"), (&c, "step 0")]
        .map(|(run, answer)| format!("{}\n", json!({ "run": run, "answer": answer })));
    bench.write("answers.jsonl", answers.concat());
    let reviewed = bench.json(&["review", "--answers", "answers.jsonl", "--json"], 0);
    assert_eq!((&reviewed["recorded"], &reviewed["with_step"]), (&json!(3), &json!(3)));
    let quality = &reviewed["quality"];
    assert_eq!(
        (&quality["true_positive"]["k"], &quality["true_positive"]["n"]),
        (&json!(1), &json!(2)),
        "{quality}"
    );
    assert_eq!((&quality["true_negative"]["k"], &quality["true_negative"]["n"]), (&json!(1), &json!(1)));
    assert_eq!(bench.json_lines(&["review", "--json"]).len(), 1, "nobody is asked twice");
    let done = bench.json(&[&["diagnose", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!(done["judging"]["quality"]["labelled"], 3, "judging prints how far it can be believed");

    bench.write("bad.jsonl", format!("{}\n", json!({ "run": a, "answer": "step 99" })));
    let bad = bench.output(&["review", "--answers", "bad.jsonl"]);
    assert_eq!(bad.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("line 1: `step 99`"), "{}", bench.render(&bad));
}

#[test]
fn repeats_show_how_sure_a_judge_is() {
    let bench = Bench::new();
    bench.write("runs.jsonl", line("a", "W10001", false));
    bench.output(&["import", "runs.jsonl"]);
    let quote = "{\"order\":\"W77121\"}";
    // In order, each once: the second judgement of the run names another step.
    let answers = [proposal("W10001", 1, quote), proposal("W10001", 3, quote)];
    bench.write(
        "judge.jsonl",
        answers.map(|answer| format!("{}\n", json!({ "answer": answer.to_string() }))).concat(),
    );
    let done = bench.json(
        &["diagnose", "--json", "--judge", "scripted:judge.jsonl", "--repeats", "2", "--concurrency", "1"],
        0,
    );
    assert_eq!((&done["runs"], &done["calls"]), (&json!(1), &json!(2)), "{done}");
    bench.write("answers.jsonl", format!("{}\n", json!({ "run": id(&bench, "a"), "answer": "step 0" })));
    let reviewed = bench.json(&["review", "--answers", "answers.jsonl", "--json"], 0);
    assert_eq!(
        (&reviewed["quality"]["flips"]["k"], &reviewed["quality"]["flips"]["n"]),
        (&json!(1), &json!(1)),
        "{reviewed}"
    );
    assert_eq!(bench.json_lines(&["ls", "--json"])[0]["decisive_node"], 1, "the first judgement counts");
}

#[test]
fn the_same_answers_give_the_same_bytes_however_many_are_asked_at_once() {
    let outputs: Vec<[Vec<u8>; 2]> = ["1", "8"]
        .iter()
        .map(|concurrency| {
            let bench = desk();
            let output =
                bench.output(&[&["run", "runs.jsonl", "--concurrency", concurrency], &PANEL[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
            ["report.json", "report.html"]
                .map(|name| std::fs::read(bench.path("recoup-out").join(name)).unwrap())
        })
        .collect();
    assert!(outputs[0] == outputs[1]);
}

#[test]
fn runs_are_counted_once_however_often_they_are_judged() {
    let bench = desk();
    bench.output(&["import", "runs.jsonl"]);
    bench.write("empty.jsonl", script(&[("no such run", json!({}))]));
    let judge = ["diagnose", "--json", "--judge", "scripted:empty.jsonl", "--repeats", "4"];
    let output = bench.output(&judge);
    assert_eq!(output.status.code(), Some(2), "{}", bench.render(&output));
    bench.write("half.jsonl", script(&[("W10001", proposal("W10001", 1, "{\"order\":\"W77121\"}"))]));
    let half = ["diagnose", "--json", "--judge", "scripted:half.jsonl", "--repeats", "4"];
    let done = bench.json(&half, 1);
    let errors: u64 = done["judging"]["errors"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!((&done["runs"], errors), (&json!(1), 2), "{done}");
    let stopped = bench.json(
        &["diagnose", "--json", "--judge", "scripted:half.jsonl", "--repeats", "9", "--max-requests", "0"],
        1,
    );
    assert_eq!(stopped["judging"]["waiting"], 3, "{stopped}");
}

#[test]
fn the_report_counts_gates_by_the_judging_in_force() {
    let bench = Bench::new();
    bench.write("runs.jsonl", line("a", "W10001", false));
    bench.output(&["import", "runs.jsonl"]);
    // Both say that it was not the agent, so that nothing stands but whose it was.
    for (name, party) in [("claude-judge", "verifier"), ("gpt-judge", "environment")] {
        let mut said = proposal("W10001", 1, "{\"order\":\"W77121\"}");
        (said["decisive_step"], said["responsible_agent"]) = (Value::Null, Value::Null);
        (said["candidate"], said["failure_class"]) = (Value::Null, Value::Null);
        said["blame"] = json!({ "party": party, "reason": "It took another number." });
        bench.write(&format!("{name}.jsonl"), script(&[("W10001", said)]));
        let judge = format!("scripted:{name}.jsonl");
        let done = bench.json(&["diagnose", "--json", "--judge", &judge, "--only", &id(&bench, "a")], 0);
        assert_eq!(done["admitted"], 1, "{done}");
    }
    bench.json(&["run", "runs.jsonl", "--json"], 0);
    let report: Value =
        serde_json::from_slice(&std::fs::read(bench.path("recoup-out/report.json")).unwrap()).unwrap();
    let gates = report["judges"]["gates"].as_object().unwrap();
    assert!(!gates.is_empty());
    for (gate, count) in gates {
        let words = ["admitted", "abstained"].map(|word| count[word].as_u64().unwrap());
        assert_eq!(words.iter().sum::<u64>(), 1, "{gate}: {count}");
    }
}

#[test]
fn no_judge_overrules_what_the_harness_says_of_the_end() {
    let bench = Bench::new();
    let call =
        json!({ "id": "c1", "name": "refund", "arguments": { "order": "W77121" }, "requestor": "assistant" });
    let run = json!({
        "id": "a", "task_id": "t1", "termination_reason": "infrastructure_error", "reward_info": { "reward": 0.0 },
        "messages": [
            { "role": "user", "content": "Please refund order W10001." },
            { "role": "assistant", "content": null, "tool_calls": [call] },
            { "role": "tool", "id": "c1", "content": "refunded W77121" },
        ],
    });
    bench.write("runs.jsonl", format!("{run}\n"));
    bench.output(&["import", "runs.jsonl"]);
    let mut said = proposal("W10001", 1, "{\"order\":\"W77121\"}");
    said["candidate"] = Value::Null;
    bench.write("claude-judge.jsonl", script(&[("W10001", said)]));
    bench.write("gpt-judge.jsonl", script(&[("W10001", opinion("admit", 1))]));
    let id = id(&bench, "a");
    let done = bench.json(&[&["diagnose", "--json", "--only", &id], &PANEL[..]].concat(), 0);
    assert_eq!((&done["admitted"], &done["rejected"]), (&json!(0), &json!({ "S2": 1 })), "{done}");
    bench.output(&["label", &id, "--outcome", "failure"]);
    bench.output(&["diagnose"]);
    assert_eq!(bench.json_lines(&["ls", "--json"])[0]["blame"], "infrastructure");
}

#[test]
fn one_judge_alone_changes_nobodys_blame_and_says_that_it_is_alone() {
    let bench = Bench::new();
    bench.write("runs.jsonl", [line("a", "W10001", false), line("b", "W10002", false)].concat());
    bench.output(&["import", "runs.jsonl"]);
    let quote = "{\"order\":\"W77121\"}";
    let mut others = proposal("W10002", 1, quote);
    (others["decisive_step"], others["responsible_agent"]) = (Value::Null, Value::Null);
    (others["candidate"], others["failure_class"]) = (Value::Null, Value::Null);
    others["blame"] = json!({ "party": "environment", "reason": "It took another number." });
    bench.write(
        "claude-judge.jsonl",
        script(&[("W10001", proposal("W10001", 1, quote)), ("W10002", others.clone())]),
    );
    bench.write("gpt-judge.jsonl", script(&[("", opinion("admit", 1))]));
    let blame = |bench: &Bench| {
        let rows = bench.json_lines(&["ls", "--json"]);
        rows.into_iter().find(|row| row["native_id"] == "b").unwrap()["blame"].clone()
    };
    bench.json(&[&["diagnose", "--json"], &PANEL[..2]].concat(), 0);
    assert_eq!(blame(&bench), "agent");
    let text = bench.snapshot(&["show", &id(&bench, "a")]);
    assert!(text.contains("(step 0) alone: nobody looked at its reasons"), "{text}");
    assert!(text.contains("the gates S1 to S9 admitted it, and no other judge was asked"), "{text}");
    bench.json(&[&["diagnose", "--json"], &PANEL[..]].concat(), 0);
    assert_eq!(blame(&bench), "environment");
    let text = bench.snapshot(&["show", &id(&bench, "a")]);
    assert!(text.contains("every gate and every other judge admitted it"), "{text}");
}
