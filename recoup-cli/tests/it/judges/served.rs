//! Judges behind a server: what they cost, how little they hold, what they say wrong, and who answers for them.

use serde_json::{Value, json};

use super::{id, line, opinion, proposal};
use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer, completion};

#[test]
fn a_command_that_was_told_no_cap_spends_a_dollar_at_most() {
    let answer = || Fault::Answer(completion("Sure, fine!", "toy", Some((900, 2000))));
    let server = FaultServer::start(move |_, _| answer());
    let bench = Bench::new();
    bench.write("runs.jsonl", [line("a", "W10001", false), line("b", "W10002", false)].concat());
    // An answer is $0.20, so the first round is $0.40 and all that may be asked again $1.20 more.
    bench.write("prices.toml", "[models.toy]\ninput = 0\noutput = 100\n");
    bench.output(&["import", "runs.jsonl"]);
    let model = server.model("toy");
    let diagnose = ["diagnose", "--judge", &model, "--prices", "prices.toml", "--concurrency", "1"];
    let dry = bench.json(&[&diagnose[..], &["--dry-run", "--json"]].concat(), 0);
    assert_eq!((&dry["cost_usd"], &dry["cost_most_usd"]), (&json!(0.4), &json!(1.6)), "{dry}");
    let output = bench.output(&diagnose);
    let text = bench.render(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("about $0.40, at most $1.60 in all, never more than $1.00"), "{text}");
    assert!(text.contains("the limit of $1.00 is reached"), "{text}");
    assert_eq!(server.asked().len(), 5, "five answers are a dollar: {text}");
    let more = bench.json(&[&diagnose[..], &["--resume", "--yes", "--json"]].concat(), 0);
    assert_eq!((&more["runs"], server.asked().len()), (&json!(1), 8), "{more}");
}

#[test]
fn a_reviewer_whose_words_cannot_be_read_is_told_so_once() {
    let server = FaultServer::start(|_, asked| {
        let body = asked.json();
        let said = match (body["model"].as_str().unwrap(), body["messages"].as_array().unwrap().len()) {
            ("claude", _) => proposal("W10001", 1, "{\"order\":\"W77121\"}").to_string(),
            (_, 2) => "Sure, fine!".to_owned(),
            _ => opinion("admit", 1).to_string(),
        };
        Fault::answer(&said)
    });
    let bench = Bench::new();
    bench.write("runs.jsonl", line("a", "W10001", false));
    bench.output(&["import", "runs.jsonl"]);
    let panel = [server.model("claude"), server.model("gpt")];
    let diagnose = ["diagnose", "--json", "--judge", &panel[0], "--judge", &panel[1]];
    let done = bench.json(&diagnose, 0);
    assert_eq!(
        (&done["admitted"], &done["calls"], &done["cached"]),
        (&json!(1), &json!(3), &json!(0)),
        "{done}"
    );
    let told = server.asked()[2].json()["messages"].clone();
    assert_eq!(told[2]["content"], "Sure, fine!");
    assert!(told[3]["content"].as_str().unwrap().contains("the answer is not a JSON object"), "{told}");
    let again = bench.json(&diagnose, 0);
    assert_eq!((&again["admitted"], &again["calls"]), (&json!(1), &json!(0)), "{again}");
}

/// A server of a model with so many tokens of context, which cites what is not there at length.
fn small_server(context: u64) -> FaultServer {
    FaultServer::start(move |_, asked| {
        let body = asked.json();
        let messages = body["messages"].as_array().unwrap();
        let bytes: usize = messages.iter().map(|message| message["content"].as_str().unwrap().len()).sum();
        let tokens = bytes as u64 / 4 + body["max_tokens"].as_u64().unwrap();
        if tokens > context {
            let error = format!("Requested tokens ({tokens}) exceed context window of {context}");
            return Fault::status(400, &json!({ "error": { "message": error } }).to_string());
        }
        let mut said = proposal("W10001", 1, "W99999");
        said["explanation"] = json!("The call refunds another order. ".repeat(100));
        Fault::answer(&said.to_string())
    })
}

#[test]
fn a_run_of_any_size_is_judged_by_a_model_of_little_context() {
    let runs: String = ["a", "b", "c"]
        .map(|id| {
            let mut run: Value = serde_json::from_str(&line(id, "W10001", false)).unwrap();
            run["messages"][2]["content"] = json!(format!("{id}: {}", "refunded W77121 ".repeat(60_000)));
            format!("{run}\n")
        })
        .concat();
    for context in [2048, 4096, 8192] {
        let server = small_server(context);
        let bench = Bench::new();
        bench.write("runs.jsonl", &runs);
        bench.output(&["import", "runs.jsonl"]);
        let model = server.model("toy");
        let done = bench.json(&["diagnose", "--json", "--judge", &model, "--concurrency", "1"], 0);
        assert_eq!((&done["runs"], &done["rejected"]), (&json!(3), &json!({ "S4": 3 })), "{context}: {done}");
        let refused = server.asked().len() as u64 - done["calls"].as_u64().unwrap();
        assert!(refused <= 7, "a limit is met once and not once a run: {refused} of {context}");
    }
}

#[test]
fn a_model_that_holds_no_run_at_all_is_said_with_what_to_do() {
    let server = small_server(500);
    let bench = Bench::new();
    bench.write("runs.jsonl", line("a", "W10001", false));
    bench.output(&["import", "runs.jsonl"]);
    let error = bench.json(&["diagnose", "--json", "--judge", &server.model("toy")], 2)["error"].clone();
    assert!(error["message"].as_str().unwrap().contains("context window of 500"), "{error}");
    assert!(error["hint"].as_str().unwrap().contains("`--window`"), "{error}");
}

#[test]
fn what_each_judge_took_is_said() {
    let server = FaultServer::start(|_, asked| {
        let said = match asked.json()["model"].as_str() {
            Some("claude") => proposal("W10001", 1, "{\"order\":\"W77121\"}"),
            _ => opinion("admit", 1),
        };
        let answer = Fault::Answer(completion(&said.to_string(), "toy", Some((900, 80))));
        Fault::Slow(std::time::Duration::from_millis(60), Box::new(answer))
    });
    let bench = Bench::new();
    bench.write("runs.jsonl", line("a", "W10001", false));
    bench.write(
        "prices.toml",
        "[models.claude]\ninput = 10\noutput = 10\n[models.gpt]\ninput = 1\noutput = 1\n",
    );
    bench.output(&["import", "runs.jsonl"]);
    let panel = [server.model("claude"), server.model("gpt")];
    let diagnose = ["diagnose", "--judge", &panel[0], "--judge", &panel[1], "--prices", "prices.toml"];
    let text = bench.snapshot(&diagnose);
    assert!(
        text.contains("`claude`: 1 answered, 0 from before, 900 tokens asked and 80 answered, $0.0098"),
        "{text}"
    );
    assert!(text.contains("`gpt`: 1 answered") && text.contains("s an answer, 95 of 100 within"), "{text}");
    let again = bench.json(&[&diagnose[..], &["--json"]].concat(), 0)["judging"]["models"].clone();
    assert_eq!(
        (&again[0]["cached"], &again[0]["accepted"], &again[1]["accepted"]),
        (&json!(1), &json!(1), &json!(1))
    );
    assert!(bench.snapshot(&["stats"]).contains("S EACH MODEL"));
}

#[test]
fn who_answered_in_place_of_a_judge_is_kept_and_said_again() {
    let server = FaultServer::start(|_, _| {
        let said = proposal("W10001", 1, "{\"order\":\"W77121\"}").to_string();
        Fault::Answer(completion(&said, "other-8b", Some((900, 80))))
    });
    let bench = Bench::new();
    bench.write("runs.jsonl", line("a", "W10001", false));
    bench.output(&["import", "runs.jsonl"]);
    let model = server.model("claude");
    for _ in 0..2 {
        let text = bench.snapshot(&["diagnose", "--judge", &model]);
        assert!(text.contains("`claude` was asked, and `other-8b` answered"), "{text}");
    }
    assert_eq!(server.asked().len(), 1);
    let shown = bench.json(&["show", &id(&bench, "a"), "--json"], 0);
    let judging = shown["verdicts"]
        .as_array()
        .unwrap()
        .iter()
        .find_map(|verdict| Some(&verdict["content"]["judging"]).filter(|judging| judging.is_object()));
    assert_eq!(judging.unwrap()["members"][0]["answered_by"], json!(["other-8b"]));
    let text = bench.snapshot(&["show", &id(&bench, "a")]);
    assert!(text.contains("claude (`other-8b` answered; step 0)"), "{text}");
}

#[test]
fn a_diagnosis_that_was_killed_goes_on_and_pays_for_nothing_twice() {
    let server = FaultServer::start(|_, asked| {
        let text = asked.json()["messages"].to_string();
        let order = text.split("Please refund order ").nth(1).unwrap()[..6].to_owned();
        let answer = Fault::answer(&proposal(&order, 1, "{\"order\":\"W77121\"}").to_string());
        Fault::Slow(std::time::Duration::from_millis(30), Box::new(answer))
    });
    let bench = Bench::new();
    let runs: String =
        (0..40).map(|number| line(&format!("r{number}"), &format!("W{}", 10_001 + number), false)).collect();
    bench.write("runs.jsonl", runs);
    bench.output(&["import", "runs.jsonl"]);
    let model = server.model("toy");
    let diagnose = ["diagnose", "--json", "--resume", "--judge", &model, "--concurrency", "4"];
    let mut child = bench.command(&diagnose).stdout(std::process::Stdio::null()).spawn().unwrap();
    while server.asked().len() < 15 {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let before = server.asked().len() as u64;
    let done = bench.json(&diagnose, 0);
    assert_eq!((&done["runs"], &done["admitted"]), (&json!(40), &json!(40)), "{done}");
    // Only what was in flight when it died is asked again.
    let calls = done["calls"].as_u64().unwrap();
    assert!(before + calls <= 44, "{before} asked before, {calls} after");
    assert_eq!(server.asked().len() as u64, before + calls);
}
