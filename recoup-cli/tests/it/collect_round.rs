//! Collecting with a teacher, through the user's door.

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer};

const ROUND: [&str; 11] = [
    "collect",
    "--env",
    "quest",
    "--student",
    "weak:premature-stop@0.3",
    "--teacher",
    "expert",
    "--tasks",
    "16",
    "--seed",
    "7",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&ROUND[..], more].concat()
}

/// A student whose model looks around in the Hermes form, whatever it is asked.
fn scripted(bench: &Bench) {
    let answer = "Look.\n<tool_call>\n{\"name\": \"look\", \"arguments\": {}}\n</tool_call>";
    bench.write("student.jsonl", format!("{}\n", json!({ "answer": answer, "contains": "" })));
}

/// A round of that student with the expert.
fn of_model(more: &str) -> Vec<&str> {
    let round = "collect --env quest --student scripted:student.jsonl --student-form hermes --teacher expert --seed 7";
    round.split(' ').chain(more.split(' ')).collect()
}

#[test]
fn a_round_is_collected_once_and_reported() {
    let bench = Bench::new();
    insta::assert_snapshot!(bench.snapshot(&with(&["--dry-run"])));
    assert!(!bench.path(".recoup").exists());
    insta::assert_snapshot!(bench.snapshot(&with(&["--beta", "0.5", "--alone"])));
    let again = bench.json(&with(&["--beta", "0.5", "--alone", "--json", "--threads", "1"]), 0);
    assert_eq!((&again["new"], &again["requests"]), (&json!(0), &json!(34)), "{again}");
    let outcomes: u64 = again["outcomes"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert_eq!(json!(outcomes), again["requests"]);
    let second = bench.json(&with(&["--beta", "1,0.8,0.6", "--round", "2", "--json"]), 0);
    let rounds = second["report"]["rounds"].as_array().unwrap();
    assert_eq!(rounds.iter().map(|round| round["round"].as_u64().unwrap()).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(rounds[1]["mixing"], json!({ "turns": { "beta": 0.8 } }));
    let latest =
        bench.json(&with(&["--beta", "1,0.8,0.6", "--round", "2", "--aggregate", "latest", "--json"]), 0);
    assert_eq!(latest["report"]["rounds"].as_array().unwrap().len(), 1);
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let bench = Bench::new();
    let student = |more: &[&str]| bench.snapshot(&[&["collect", "--env", "quest"][..], more].concat());
    insta::assert_snapshot!("no_teacher", student(&["--student", "expert"]));
    insta::assert_snapshot!("no_model", student(&["--student", "gpt-4", "--teacher", "expert"]));
    insta::assert_snapshot!("no_form", bench.snapshot(&with(&["--student-form", "xml"])));
    insta::assert_snapshot!("no_schedule", bench.snapshot(&with(&["--beta", "2"])));
    insta::assert_snapshot!("no_filter", bench.snapshot(&with(&["--no-label-filter", "sleepy"])));
    insta::assert_snapshot!("both_mixings", bench.snapshot(&with(&["--beta", "1", "--prefix", "4"])));
    insta::assert_snapshot!("nobody", bench.snapshot(&["collect", "--env", "quest"]));
    assert!(!bench.path(".recoup").exists());
}

#[test]
fn labels_become_rows_of_dagger() {
    let bench = Bench::new();
    scripted(&bench);
    let round = of_model("--beta 0.5 --tasks 12 --max-steps 8 --json");
    let done = bench.json(&round, 0);
    let labels = &done["report"]["rounds"][0]["labels"];
    assert!(labels["accepted"].as_u64().unwrap() > 20, "{labels}");
    let rows = bench.json(&["export", "dagger", "--format", "trl", "--out", "rows", "--json"], 0);
    // Executed labels of a run are one example, which this format writes turn by turn.
    assert_eq!(rows["rows"], labels["accepted"], "{rows}");
    let text = std::fs::read_to_string(bench.path("rows/dagger.jsonl")).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["completion"][0]["role"], "assistant", "{first}");
    // A label that a filter holds back is no row.
    let off = ["export", "dagger", "--format", "trl", "--out", "off", "--no-label-filter", "loop", "--json"];
    assert!(bench.json(&off, 0)["rows"].as_u64() >= rows["rows"].as_u64());
    assert_eq!(bench.output(&["verify"]).status.code(), Some(0));
}

#[test]
fn a_run_ends_with_the_tokens_that_it_may_spend() {
    let bench = Bench::new();
    scripted(&bench);
    let collected = |tokens: &str| {
        let round = of_model("--beta 0 --tasks 4 --max-steps 8 --json --max-episode-tokens");
        bench.json(&[&round[..], &[tokens]].concat(), 0)["new"].clone()
    };
    assert_eq!(collected("1"), 4);
    let rows = bench.json_lines(&["ls", "--json"]);
    for row in &rows {
        assert_eq!(row["steps"], 1, "{row}");
        let shown = bench.json(&["show", row["id"].as_str().unwrap(), "--json"], 0);
        let run = &shown["trajectory"];
        assert_eq!(run["budget"], json!({ "steps": 8, "tokens": 1 }), "{run}");
        assert_eq!(run["leaves"][0]["outcome"]["termination"]["native"], "max_tokens", "{run}");
    }
    // Another limit, other runs; the same again, none.
    assert_eq!((collected("100000"), collected("1")), (json!(4), json!(0)));
    let time = bench.json(&of_model("--beta 0 --tasks 4 --max-episode-time 1h --json"), 0);
    assert_eq!(time["new"], 4, "{time}");
}

#[test]
fn a_stopped_process_pays_for_no_turn_twice() {
    let round = of_model("--beta 0.2 --tasks 4 --max-steps 6 --threads 1");
    let ended = |bench: &Bench| {
        let rows = bench.json_lines(&["ls", "--json", "--all"]);
        let labels: Vec<Value> = rows
            .iter()
            .map(|row| {
                let shown = bench.json(&["show", row["id"].as_str().unwrap(), "--json"], 0);
                let verdicts = shown["verdicts"].as_array().unwrap().iter();
                let mut labels: Vec<String> = verdicts
                    .filter(|it| it["content"].get("state_label").is_some())
                    .map(|it| it["id"].to_string())
                    .collect();
                labels.sort();
                json!(labels)
            })
            .collect();
        (rows, labels)
    };
    let undisturbed = Bench::new();
    scripted(&undisturbed);
    assert_eq!(undisturbed.output(&round).status.code(), Some(0));
    let asked = |output: &std::process::Output| -> (u64, u64) {
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains(" answered, ")).unwrap_or_default().to_owned();
        let numbers: Vec<u64> =
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse().ok()).collect();
        (numbers[0], numbers[1])
    };
    // Killed once its first answer is kept, before its runs are stored, and between the runs and their labels.
    for point in ["after-reply", "before-import", "after-import", "before-verdicts"] {
        let bench = Bench::new();
        scripted(&bench);
        let stopped = bench.output(&[&round[..], &["--stop-at", point]].concat());
        assert_eq!(stopped.status.code(), None, "{point}: {}", bench.render(&stopped));
        let again = bench.output(&round);
        assert_eq!(again.status.code(), Some(0), "{point}: {}", bench.render(&again));
        let (new, kept) = asked(&again);
        match point {
            "after-reply" => assert!(kept >= 1 && new > 0, "{point}: {new} new, {kept} kept"),
            _ => assert!(new == 0 && kept > 0, "{point}: {new} new, {kept} kept"),
        }
        assert_eq!(ended(&bench), ended(&undisturbed), "{point}");
        assert_eq!(bench.output(&["verify"]).status.code(), Some(0));
    }
}

#[test]
fn a_teacher_that_is_down_stops_the_round() {
    let server = FaultServer::start(|_, _| Fault::status(400, r#"{"error":{"message":"no such model"}}"#));
    let bench = Bench::new();
    let teacher = server.model("wise");
    let round = [
        "collect",
        "--env",
        "quest",
        "--student",
        "random",
        "--teacher",
        &teacher,
        "--tasks",
        "6",
        "--seed",
        "7",
    ];
    let output = bench.output(&round);
    assert_eq!(output.status.code(), Some(2), "{}", bench.render(&output));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(text.contains("the teacher failed") && text.contains("no such model"), "{text}");
    assert!(text.contains("hint: the same command goes on from there"), "{text}");
    let json = bench.output(&[&round[..], &["--json"]].concat());
    let last = String::from_utf8_lossy(&json.stdout).lines().last().unwrap_or_default().to_owned();
    let failed: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(failed["error"]["code"], "teacher-failed");
}

#[test]
fn labels_go_out_in_every_format_of_demonstrations() {
    let bench = Bench::new();
    assert_eq!(bench.output(&with(&["--beta", "0.5"])).status.code(), Some(0));
    for format in [
        "trl",
        "trl-messages",
        "trl-prompt-completion",
        "axolotl",
        "llamafactory",
        "verl",
        "openai",
        "tinker",
        "unsloth",
        "scout",
        "hf",
        "parquet",
    ] {
        let words = ["export", "dagger", "--format", format, "--out", format, "--check", "--json"];
        let answer = bench.json(&words, 0);
        assert_eq!((&answer["view"], &answer["checked"]), (&json!("dagger"), &json!(true)), "{answer}");
        // What learns some turns of a conversation and not others has no place in every format, and that is told.
        let refused = answer["refused"].as_object().unwrap();
        assert!(refused.is_empty() || refused.keys().eq(["an-assistant-message-is-not-learned"]), "{answer}");
        assert!(answer["rows"].as_u64().unwrap() >= 9, "{answer}");
    }
}

/// A server whose model says "look" in two tokens, each with the probability that it has as a student. Given tokens are
/// half as likely again to it where it takes a grammar, as llama.cpp's does; what it does not know it passes over.
fn with_tokens(takes_grammar: bool) -> FaultServer {
    FaultServer::start(move |_, asked| {
        let asked = asked.json();
        let forced = asked["grammar"].as_str().filter(|_| takes_grammar);
        let ids: Vec<u64> = match forced {
            Some(grammar) => grammar.split(['[', ']']).filter_map(|piece| piece.parse().ok()).collect(),
            None => vec![7, 8],
        };
        let logprob = if forced.is_some() { -2.0 } else { -0.5 };
        let token =
            |id: &u64| json!({ "id": id, "token": if *id == 7 { "lo" } else { "ok" }, "logprob": logprob });
        let mut tokens: Vec<Value> = ids.iter().map(token).collect();
        tokens.push(json!({ "id": 2, "token": "", "logprob": logprob }));
        let logprobs = asked["logprobs"].as_bool().map(|_| json!({ "content": tokens }));
        let choice = json!({ "index": 0, "message": { "role": "assistant", "content": "look" }, "logprobs": logprobs,
            "finish_reason": "stop" });
        let usage = json!({ "prompt_tokens": 900, "completion_tokens": 3, "total_tokens": 903 });
        Fault::Answer(json!({ "id": "x", "model": "toy", "choices": [choice], "usage": usage }).to_string())
    })
}

#[test]
fn reverse_kl_is_measured_by_a_grammar_or_its_lack_is_told() {
    for takes_grammar in [true, false] {
        let bench = Bench::new();
        let (student, teacher) = (with_tokens(true), with_tokens(takes_grammar));
        let forms = [
            "--student-form",
            "hermes",
            "--teacher-form",
            "hermes",
            "--beta",
            "0",
            "--tasks",
            "3",
            "--max-steps",
            "1",
        ];
        let names =
            ["--student", &student.model("toy"), "--teacher", &teacher.model("wise"), "--logprobs", "--json"];
        let done = bench.json(&[&["collect", "--env", "quest"][..], &forms, &names].concat(), 0);
        let round = &done["report"]["rounds"][0];
        let (shift, states) = (&round["shift"], round["labels"]["states"].as_u64().unwrap());
        if takes_grammar {
            assert_eq!(
                (&shift["reverse_kl"], &shift["tokens"]),
                (&json!(1.5), &json!(3 * states)),
                "{shift}"
            );
            let probed =
                teacher.asked().iter().filter(|asked| asked.json().get("prompt_logprobs").is_some()).count();
            assert!((1..=3).contains(&probed), "it is asked in the other way from then on: {probed}");
        } else {
            // Though the teacher would have said just the same: what it says of its own accord is no measure.
            assert_eq!(
                (&shift["reverse_kl"], &shift["unscored"]),
                (&Value::Null, &json!({ "teacher": states })),
                "{shift}"
            );
        }
    }
}
