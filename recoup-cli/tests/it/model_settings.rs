//! `[models]` in the settings file: flags over the environment over the file.

use serde_json::json;

use crate::bench::{Bench, chat_line};
use crate::fault_server::{Fault, FaultServer};

/// A failed run, and a judge that answers every question with a word that is no answer.
fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("runs.jsonl", chat_line("one", "sum", Some(false), "the sum is 5"));
    for name in ["flag", "variable", "file"] {
        bench.write(&format!("{name}.jsonl"), "{\"answer\":\"I do not know\"}\n".repeat(8));
    }
    assert_eq!(bench.output(&["import", "runs.jsonl"]).status.code(), Some(0));
    bench
}

#[test]
fn judges_come_from_flags_then_the_environment_then_the_file() {
    let bench = bench();
    let panel = |arguments: &[&str], variable: Option<&str>| {
        let mut command = bench.command(&[&["diagnose", "--json"], arguments].concat());
        command.envs(variable.map(|value| ("RECOUP_JUDGE", value)));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", bench.render(&output));
        let done: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        done["judging"]["panel"].clone()
    };
    bench.write("recoup.toml", "[models]\njudges = [\"scripted:file.jsonl\"]\nconcurrency = 2\n");
    let is_named =
        |panel: &serde_json::Value, name: &str| panel[0].as_str().is_some_and(|model| model.contains(name));
    let variable = Some("scripted:variable.jsonl");
    assert!(is_named(&panel(&[], None), "file"));
    assert!(is_named(&panel(&[], variable), "variable"));
    assert!(is_named(&panel(&["--judge", "scripted:flag.jsonl"], variable), "flag"));
    assert_eq!(panel(&["--no-judge"], variable), json!(null));
    let limited = bench.json(&["diagnose", "--limit", "1", "--json"], 0);
    assert!(is_named(&limited["judging"]["panel"], "file"), "judges of the file can be limited by flags");
    let without = bench.output(&["diagnose", "--limit", "1", "--no-judge"]);
    assert_eq!(without.status.code(), Some(2), "{}", bench.render(&without));
}

#[test]
fn the_main_job_uses_the_judges_of_the_file() {
    let bench = bench();
    bench.write("recoup.toml", "[models]\njudges = [\"scripted:file.jsonl\"]\nmax_answer = 50\n");
    let run = bench.json(&["run", "runs.jsonl", "--json"], 0);
    assert_eq!(run["judged"]["rejected"], json!({ "S1": 1 }), "{run}");
}

#[test]
fn caps_and_prices_of_the_file_hold_and_flags_go_before_them() {
    let server = FaultServer::start(|_, _| Fault::answer("yes"));
    let bench = Bench::new();
    bench.write("questions.jsonl", "\"one\"\n\"two\"\n\"three\"\n");
    bench.write("dear.toml", "[models.toy]\ninput = 1000\noutput = 1000\n");
    bench.write("recoup.toml", "[models]\nmax_requests = 2\nprices = \"dear.toml\"\nmax_cost = 50\n");
    let model = server.model("toy");
    let ask = ["ask", &model, "--prompts", "questions.jsonl", "--json", "--concurrency", "1"];
    let capped = bench.json(&ask, 1);
    assert_eq!((&capped["calls"], &capped["failed"]), (&json!(2), &json!(1)), "{capped}");
    assert!(capped["spent"]["cost_usd"].as_f64() > Some(0.0), "{capped}");
    let more = bench.json(&[&ask[..], &["--max-requests", "5"]].concat(), 0);
    assert_eq!((&more["calls"], &more["cached"]), (&json!(1), &json!(2)), "{more}");
}

#[test]
fn a_key_or_value_that_is_none_is_an_error_with_a_hint() {
    let bench = Bench::new();
    for (line, words) in [("max_cots = 1", "max_cots"), ("concurrency = 9999", "from 1 to 1024")] {
        bench.write("recoup.toml", format!("[models]\n{line}\n"));
        let error = bench.json(&["ls", "--json"], 2)["error"].clone();
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert!(error["hint"].as_str().unwrap().contains("`max_cost`"), "{error}");
    }
}
