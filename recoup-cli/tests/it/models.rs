//! Asking models: what they answer, what they cost, and what goes wrong.

use std::process::Output;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::bench::Bench;
use crate::fault_server::{Asked, Fault, FaultServer, completion};

const PRICES: &str = "[models.toy]\ninput = 1000\noutput = 1000\n";

/// A bench with so many questions.
fn questions(count: usize) -> Bench {
    let bench = Bench::new();
    let lines: String = (0..count)
        .flat_map(|number| ["\"question ".to_owned(), number.to_string(), "\"\n".to_owned()])
        .collect();
    bench.write("questions.jsonl", lines);
    bench.write("prices.toml", PRICES);
    bench
}

fn error(bench: &Bench, arguments: &[&str]) -> Value {
    bench.json(&[arguments, &["--json"]].concat(), 2)["error"].clone()
}

#[test]
fn a_question_is_answered() {
    let server = FaultServer::start(|_, asked| {
        let question = asked.json()["messages"][1]["content"].as_str().unwrap().to_owned();
        Fault::answer(&format!("you said {question}\u{1b}[2J"))
    });
    let bench = Bench::new();
    let model = server.model("toy");
    let text = bench.output(&["ask", &model, "hello", "--system", "be brief"]);
    let stdout = String::from_utf8_lossy(&text.stdout);
    assert!(stdout.starts_with("you said hello") && !stdout.contains('\u{1b}'), "{}", bench.render(&text));
    let answer = bench.json(&["ask", &model, "hello", "--system", "be brief", "--json"], 0);
    assert_eq!((&answer["model"], &answer["usage"]["prompt"]), (&"toy".into(), &9.into()));
    assert_eq!((&answer["format"], &answer["cost_usd"]), (&"recoup.answer".into(), &Value::Null));
    assert_eq!(server.asked()[0].path, "/v1/chat/completions");
    assert!(!bench.path(".recoup").exists(), "a look at an endpoint makes no project");
}

#[test]
fn other_wires_are_spoken() {
    let server = FaultServer::start(|_, asked| {
        let body = asked.json();
        Fault::Answer(match asked.path.as_str() {
            "/v1/messages" => {
                assert_eq!(body["system"], "be brief");
                r#"{"model":"toy","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#
                    .to_owned()
            }
            "/v1/responses" => {
                assert_eq!(body["input"][0]["role"], "system");
                r#"{"model":"toy","status":"completed","output":[
                    {"type":"message","content":[{"type":"output_text","text":"hi"}]}]}"#
                    .to_owned()
            }
            other => panic!("{other}"),
        })
    });
    let bench = Bench::new();
    for wire in ["anthropic:", "openai-responses:"] {
        let name = format!("{wire}{}", server.model("toy"));
        let answer = bench.json(&["ask", &name, "hello", "--system", "be brief", "--json"], 0);
        assert_eq!(answer["text"], "hi", "{wire}");
    }
    assert!(server.asked()[0].header("anthropic-version").is_some());
}

/// Every way to fail for a while, and then an answer.
#[test]
fn what_passes_is_tried_again() {
    let limited = Fault::Raw { status: 429, headers: "Retry-After: 1".to_owned(), body: "{}".to_owned() };
    for fault in [
        limited,
        Fault::status(500, "{\"error\":{\"message\":\"oops\"}}"),
        Fault::status(503, "<html>busy</html>"),
        Fault::Hangup,
        Fault::Cut(completion("cut", "toy", None)),
        Fault::Answer("{\"choices\":".to_owned()),
        Fault::Answer(completion("twice", "toy", None).repeat(2)),
        Fault::Raw { status: 200, headers: "Content-Type: text/html".to_owned(), body: "<html>".to_owned() },
        Fault::Slow(Duration::from_millis(300), Box::new(Fault::status(502, ""))),
    ] {
        let first = fault.clone();
        let server = FaultServer::start(
            move |number, _| {
                if number == 0 { first.clone() } else { Fault::answer("at last") }
            },
        );
        let bench = Bench::new();
        let start = Instant::now();
        let answer = bench.json(&["ask", &server.model("toy"), "hello", "--json"], 0);
        assert_eq!(answer["text"], "at last", "{fault:?}");
        assert_eq!(server.asked().len(), 2, "{fault:?}");
        if matches!(&fault, Fault::Raw { status: 429, .. }) {
            assert!(start.elapsed() >= Duration::from_secs(1), "it was told to wait");
        }
    }
}

/// Every way to fail for good: the message says what happened, and nothing is made up.
#[test]
fn what_stays_wrong_is_said() {
    for (fault, code, words, asked) in [
        (
            Fault::status(401, r#"{"error":{"message":"Incorrect API key"}}"#),
            "refused",
            "Incorrect API key",
            1,
        ),
        (Fault::status(404, "not here"), "refused", "HTTP 404: not here", 1),
        (
            Fault::status(429, r#"{"error":{"code":"insufficient_quota"}}"#),
            "refused",
            "insufficient_quota",
            1,
        ),
        (Fault::status(429, "slow down"), "refused", "slow down", 6),
        (
            Fault::Raw {
                status: 302,
                headers: "Location: http://127.0.0.1:1/".to_owned(),
                body: String::new(),
            },
            "refused",
            "not followed",
            1,
        ),
        (Fault::Endless, "malformed", "more than 16777216 bytes", 2),
        (Fault::Answer("[]".to_owned()), "malformed", "not what the API promises", 2),
        (Fault::Answer("{\"choices\":[]}".to_owned()), "malformed", "no choices", 2),
        (
            Fault::Raw {
                status: 200,
                headers: "Content-Type: text/event-stream".to_owned(),
                body: "data: {}\n\n".repeat(3),
            },
            "malformed",
            "stream of events",
            2,
        ),
    ] {
        let always = fault.clone();
        let server = FaultServer::start(move |_, _| always.clone());
        let bench = Bench::new();
        let error = error(&bench, &["ask", &server.model("toy"), "hello"]);
        assert_eq!(error["code"], code, "{fault:?}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{fault:?}: {error}");
        assert_eq!(server.asked().len(), asked, "{fault:?}");
    }
}

#[test]
fn an_endpoint_that_is_down_or_too_slow_is_named() {
    let bench = Bench::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let down = error(&bench, &["ask", &format!("http://127.0.0.1:{port}/v1#toy"), "hello"]);
    assert_eq!((&down["code"], &down["origin"]), (&"unreachable".into(), &"provider".into()), "{down}");
    let server =
        FaultServer::start(|_, _| Fault::Slow(Duration::from_mins(1), Box::new(Fault::answer("late"))));
    let start = Instant::now();
    let slow = error(&bench, &["ask", &server.model("toy"), "hello", "--max-time", "1s"]);
    assert!(start.elapsed() < Duration::from_secs(10), "{slow}");
    assert_eq!(slow["code"], "timeout", "{slow}");
}

/// A server that trickles its answer, a space at a time.
#[test]
fn an_answer_that_trickles_is_asked_for_twice_and_not_for_ever() {
    let server = FaultServer::start(|_, _| {
        let pieces = vec![(Duration::from_millis(50), " ".to_owned()); 200];
        Fault::Stream { pieces, cut: false }
    });
    let bench = Bench::new();
    let start = Instant::now();
    let output = bench.output(&["ask", &server.model("toy"), "hello", "--timeout", "500ms"]);
    let text = bench.render(&output);
    assert!(start.elapsed() < Duration::from_secs(8), "{text}");
    assert_eq!((output.status.code(), server.asked().len()), (Some(2), 2), "{text}");
    assert!(text.contains("no complete answer within 1 s: it is asked once more"), "{text}");
}

#[test]
fn a_key_goes_to_its_host_and_is_never_shown() {
    const KEY: &str = "sk-planted-0123456789";
    let server = FaultServer::start(|number, asked| {
        let sent = asked.header("authorization").or(asked.header("x-api-key")).unwrap_or("none").to_owned();
        let refused = number == 0 || asked.path == "/v1/messages";
        if refused { Fault::status(401, &sent) } else { Fault::answer(&sent) }
    });
    let bench = questions(1);
    let ask = |model: &str, variable: &str| -> Output {
        let arguments = ["ask", model, "--prompts", "questions.jsonl", "--json"];
        bench.command(&arguments).env(variable, KEY).output().unwrap()
    };
    for output in [
        ask(&server.model("a"), "RECOUP_API_KEY"),
        ask(&server.model("a"), "RECOUP_API_KEY_127_0_0_1"),
        ask(&format!("anthropic:{}", server.model("a")), "RECOUP_API_KEY"),
        ask(&server.model("b"), "OPENAI_API_KEY"),
    ] {
        assert!(!bench.render(&output).contains(KEY), "{}", bench.render(&output));
    }
    let sent = |asked: &Asked| asked.header("authorization").or(asked.header("x-api-key")).map(str::to_owned);
    let keys: Vec<Option<String>> = server.asked().iter().map(sent).collect();
    let bearer = Some(format!("Bearer {KEY}"));
    assert_eq!(keys, [bearer.clone(), bearer, Some(KEY.to_owned()), None]);
    for entry in std::fs::read_dir(bench.path(".recoup")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(bytes.windows(KEY.len()).all(|window| window != KEY.as_bytes()));
    }
}

#[test]
fn a_key_that_names_no_host_goes_to_one_host_only() {
    let bench = Bench::new();
    bench.write("runs.jsonl", crate::judges::line("a", "W10001", false));
    bench.output(&["import", "runs.jsonl"]);
    let judges = ["--judge", "http://one.invalid/v1#toy", "--judge", "http://two.invalid/v1#toy"];
    let arguments = [&["diagnose", "--json", "--dry-run"][..], &judges].concat();
    let ask = |variable: &str| {
        let mut command = bench.command(&arguments);
        command.env("RECOUP_API_KEY", "sk-planted-0123456789").env(variable, "sk-planted-9876543210");
        command.output().unwrap()
    };
    let both = ask("UNUSED");
    let error: Value = serde_json::from_slice(&both.stdout).unwrap();
    assert_eq!((both.status.code(), &error["error"]["code"]), (Some(2), &"key".into()), "{error}");
    assert!(error["error"]["hint"].as_str().unwrap().contains("`RECOUP_API_KEY_TWO_INVALID`"), "{error}");
    assert_eq!(ask("RECOUP_API_KEY_TWO_INVALID").status.code(), Some(0));
}

#[test]
fn nothing_is_paid_for_twice_even_after_a_kill() {
    let server =
        FaultServer::start(|_, _| Fault::Slow(Duration::from_millis(30), Box::new(Fault::answer("yes"))));
    let bench = questions(60);
    let model = server.model("toy");
    let arguments = ["ask", &model, "--prompts", "questions.jsonl", "--json", "--concurrency", "4"];
    let mut child = bench
        .command(&arguments)
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    while server.asked().len() < 20 {
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let before = server.asked().len();
    let done = bench.json(&arguments, 0);
    let cached = done["cached"].as_u64().unwrap() as usize;
    // Only what was in flight when it died is asked again.
    assert!(before - cached <= 4, "{before} asked, {cached} kept");
    assert_eq!(server.asked().len(), before + 60 - cached);
    let again = bench.json(&arguments, 0);
    assert_eq!((&again["calls"], &again["cached"]), (&0.into(), &60.into()));
    assert_eq!(bench.json(&[&arguments[..], &["--offline"]].concat(), 0)["cached"], 60);
    assert_eq!(server.asked().len(), before + 60 - cached);
}

#[test]
fn caps_hold_and_say_so() {
    let bench = questions(50);
    // A question takes 12 tokens at $0.001 each, and could take some 1,540.
    for flag in [["--max-requests", "7"], ["--max-tokens", "1800"], ["--max-cost", "1.8"]] {
        let server = FaultServer::start(|_, _| Fault::answer("yes"));
        let model = server.model("toy");
        let project = flag[0].trim_start_matches('-');
        let arguments = [
            "ask",
            &model,
            "--prompts",
            "questions.jsonl",
            "--json",
            "--prices",
            "prices.toml",
            "--max-answer",
            "1000",
            "--project",
            project,
            "--yes",
            flag[0],
            flag[1],
        ];
        let output = bench.output(&arguments);
        assert_eq!(output.status.code(), Some(1), "{}", bench.render(&output));
        let last = String::from_utf8_lossy(&output.stdout).lines().last().unwrap().to_owned();
        let done: Value = serde_json::from_str(&last).unwrap();
        let asked = server.asked().len();
        assert!((7..50).contains(&asked), "{flag:?}: {asked}");
        assert!(done["spent"]["cost_usd"].as_f64().unwrap() <= 1.8, "{done}");
        assert!(done["spent"]["tokens"].as_u64().unwrap() <= 1800, "{done}");
        assert!(done["spent"]["requests"] == asked, "{done}");
        assert!(bench.render(&output).contains("the limit of"), "{}", bench.render(&output));
    }
    let stalled = error(
        &bench,
        &["ask", "http://127.0.0.1:1/v1#toy", "x", "--prices", "prices.toml", "--max-cost", "0"],
    );
    assert_eq!(stalled["code"], "budget", "{stalled}");
}

#[test]
fn a_command_that_would_spend_says_so_first() {
    let bench = questions(3);
    let priced =
        ["ask", "http://models.invalid/v1#toy", "--prompts", "questions.jsonl", "--prices", "prices.toml"];
    let shown = bench.json(&[&priced[..], &["--dry-run", "--json"]].concat(), 0);
    assert_eq!((&shown["requests"], &shown["hosts"][0]), (&3.into(), &"models.invalid".into()));
    assert!(shown["cost_usd"].as_f64().unwrap() > 1.0, "{shown}");
    insta::assert_snapshot!(bench.snapshot(&priced));
    insta::assert_snapshot!(bench.snapshot(&["ask", "http://models.invalid/v1#other", "hello"]));
    insta::assert_snapshot!(bench.snapshot(&["ask", "http://127.0.0.1:1/v1#other", "x", "--max-cost", "1"]));
    bench.write("typo.toml", "[models.toy]\ninptu = 1\noutput = 2\n");
    insta::assert_snapshot!(bench.snapshot(&["ask", "openai:toy", "x", "--prices", "typo.toml"]));
    insta::assert_snapshot!(bench.snapshot(&["ask", "gpt-4o", "x"]));
    let offline = error(&bench, &["ask", "http://127.0.0.1:1/v1#other", "x", "--offline"]);
    assert_eq!(offline["code"], "offline");
}

#[test]
fn a_provider_that_lies_is_named() {
    let server = FaultServer::start(|_, _| Fault::Answer(completion("yes", "gpt-oss", Some((1 << 50, 0)))));
    let bench = questions(1);
    let output = bench.output(&["ask", &server.model("toy"), "hello"]);
    let text = bench.render(&output);
    assert!(text.contains("`toy` was asked, and `gpt-oss` answered"), "{text}");
    assert!(text.contains("missing or cannot be true in 1 answers"), "{text}");
}

#[test]
fn a_count_that_is_none_costs_no_answer() {
    let server = FaultServer::start(|_, _| {
        let odd =
            completion("yes", "toy", Some((9, 3))).replace("\"prompt_tokens\":9", "\"prompt_tokens\":-1.5");
        Fault::Answer(odd)
    });
    let bench = Bench::new();
    let answer = bench.json(&["ask", &server.model("toy"), "hello", "--json"], 0);
    assert_eq!((&answer["text"], &answer["usage"]), (&"yes".into(), &Value::Null));
}

#[test]
fn a_script_answers_without_a_network() {
    let bench = questions(2);
    let script = "{\"contains\":\"question 1\",\"answer\":{\"step\":1}}\n{\"answer\":\"the first\"}\n";
    bench.write("answers.jsonl", script);
    let arguments = ["ask", "scripted:answers.jsonl", "--prompts", "questions.jsonl", "--json", "--offline"];
    let lines = bench.json_lines(&arguments);
    assert_eq!((&lines[0]["text"], &lines[1]["text"]), (&"the first".into(), &"{\"step\":1}".into()));
    assert_eq!(lines[2]["spent"]["cost_usd"], 0.0);
    assert_eq!(bench.json_lines(&arguments)[2]["cached"], 2);
    let missing = error(&bench, &["ask", "scripted:none.jsonl", "hello"]);
    assert_eq!(missing["code"], "model", "{missing}");
}

#[test]
fn a_schema_is_said_as_the_server_can_take_it() {
    let server = FaultServer::start(|_, asked| match asked.json()["response_format"]["type"].as_str() {
        Some("json_schema") => Fault::status(422, r#"{"detail":"response_format: unknown type"}"#),
        Some("json_object") => Fault::answer("{\"step\":1}"),
        other => panic!("{other:?}"),
    });
    let bench = Bench::new();
    bench.write("schema.json", r#"{"type":"object","properties":{"step":{"type":"integer"}}}"#);
    let answer = bench.json(&["ask", &server.model("toy"), "which?", "--schema", "schema.json", "--json"], 0);
    assert_eq!(answer["text"], "{\"step\":1}");
    assert_eq!(server.asked().len(), 3);
}

#[test]
fn an_answer_that_does_not_fit_its_schema_is_asked_for_once_more() {
    let server = FaultServer::start(|_, asked| {
        let messages = asked.json()["messages"].clone();
        let is_told = messages[1]["content"] == "no json at all";
        let knows = messages[0]["content"] == "who can?";
        Fault::answer(if is_told && knows { "{\"step\":1}" } else { "no json at all" })
    });
    let bench = Bench::new();
    bench.write("schema.json", r#"{"type":"object","properties":{"step":{"type":"integer"}}}"#);
    let model = server.model("toy");
    let ask = |question: &str, exit| {
        bench.json(&["ask", &model, question, "--schema", "schema.json", "--json"], exit)
    };
    let mended = ask("who can?", 0);
    assert_eq!((&mended["text"], &mended["wrong"]), (&"{\"step\":1}".into(), &Value::Null));
    let never = ask("who cannot?", 1);
    assert!(never["wrong"].as_str().unwrap().contains("it is not JSON"), "{never}");
    assert_eq!(server.asked().len(), 4);
    bench.write("questions.jsonl", "\"who can?\"\n\"who cannot?\"\n");
    let arguments = ["ask", &model, "--prompts", "questions.jsonl", "--schema", "schema.json", "--json"];
    let output = bench.output(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", bench.render(&output));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<Value> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        (&lines[0]["wrong"], &lines[2]["unfit"], &lines[2]["failed"]),
        (&Value::Null, &1.into(), &0.into())
    );
    assert!(lines[1]["wrong"].is_string(), "{lines:?}");
}

#[test]
fn forgetting_a_run_forgets_answers_that_are_about_no_run() {
    let server = FaultServer::start(|_, _| Fault::answer("PLANTED"));
    let bench = questions(1);
    bench.write("runs.jsonl", crate::bench::chat_line("one", "sum", Some(true), "the sum is 4"));
    bench.output(&["import", "runs.jsonl"]);
    bench.json(&["ask", &server.model("toy"), "--prompts", "questions.jsonl", "--json"], 0);
    bench.json(&["forget", "--matching", "sum is 4", "--yes", "--json"], 0);
    let file = std::fs::read(bench.path(".recoup/store.sqlite")).unwrap();
    assert!(file.windows(7).all(|window| window != b"PLANTED"));
}

/// Sixteen at once are refused for the same reason: that is one thing learned about the server, not sixteen.
#[test]
fn what_a_server_refuses_of_many_at_once_is_learned_once() {
    let server = FaultServer::start(|_, asked| {
        let body = asked.json();
        let answer = if body.get("temperature").is_some() {
            Fault::status(400, r#"{"error":{"message":"'temperature' does not support 0"}}"#)
        } else if body["response_format"]["json_schema"]["strict"] == true {
            Fault::status(400, r#"{"error":{"message":"response_format: not strict enough"}}"#)
        } else {
            Fault::answer(&body["response_format"].to_string())
        };
        Fault::Slow(Duration::from_millis(40), Box::new(answer))
    });
    let bench = questions(32);
    bench.write("schema.json", r#"{"type":"object"}"#);
    let model = server.model("toy");
    let arguments = ["ask", &model, "--prompts", "questions.jsonl", "--schema", "schema.json", "--json"];
    let lines = bench.json_lines(&arguments);
    for line in &lines[..32] {
        let format = line["text"].as_str().unwrap_or_else(|| panic!("{line}"));
        assert!(format.contains("json_schema") && format.contains("\"strict\":false"), "{line}");
    }
}

#[test]
fn a_key_that_is_missing_is_said_before_anything_is_sent() {
    let bench = Bench::new();
    for (model, variable) in [("openai:toy", "OPENAI_API_KEY"), ("anthropic:toy", "ANTHROPIC_API_KEY")] {
        let error = error(&bench, &["ask", model, "hello", "--yes"]);
        assert_eq!((&error["code"], &error["origin"]), (&"no-key".into(), &"user".into()), "{error}");
        assert!(error["hint"].as_str().unwrap().contains(variable), "{error}");
    }
    let dry = bench.json(&["ask", "openai:toy", "hello", "--dry-run", "--json"], 0);
    assert_eq!(dry["requests"], 1, "what would be asked can be seen without a key");
    let other = bench.output(&["ask", "http://models.invalid/v1#toy", "hello"]);
    assert!(bench.render(&other).contains("`RECOUP_API_KEY_MODELS_INVALID` or `RECOUP_API_KEY`"));
    let local = bench.output(&["ask", "http://127.0.0.1:1/v1#toy", "hello", "--max-time", "1s"]);
    assert!(!bench.render(&local).contains("no key is set"), "a server of one's own mostly wants none");
}

#[test]
fn a_key_in_a_redirect_is_struck_out() {
    const KEY: &str = "sk-planted-0123456789";
    let server = FaultServer::start(|_, _| Fault::Raw {
        status: 302,
        headers: format!("Location: http://elsewhere.invalid/?key={KEY}"),
        body: String::new(),
    });
    let bench = Bench::new();
    let output =
        bench.command(&["ask", &server.model("toy"), "hello"]).env("RECOUP_API_KEY", KEY).output().unwrap();
    let text = bench.render(&output);
    assert!(text.contains("http://elsewhere.invalid/?key=*****") && !text.contains(KEY), "{text}");
}

#[test]
fn a_slow_answer_is_hedged_where_that_is_asked_for() {
    let start_server = || {
        FaultServer::start(|number, _| {
            let answer = Fault::answer(if number == 0 { "late" } else { "soon" });
            if number == 0 { Fault::Slow(Duration::from_secs(3), Box::new(answer)) } else { answer }
        })
    };
    let bench = questions(1);
    let server = start_server();
    let model = server.model("toy");
    let plain = ["ask", &model, "--prompts", "questions.jsonl", "--json", "--prices", "prices.toml", "--yes"];
    let lines = bench.json_lines(&[&plain[..], &["--hedge", "200ms"]].concat());
    assert_eq!((&lines[0]["text"], server.asked().len()), (&"soon".into(), 2), "{lines:?}");
    assert_eq!((&lines[1]["spent"]["requests"], &lines[1]["ledger"][0]["hedged"]), (&2.into(), &1.into()));
    let again = bench.json_lines(&plain);
    assert_eq!((&again[0]["text"], &again[1]["cached"]), (&"soon".into(), &1.into()), "{again:?}");

    let server = start_server();
    let alone = bench.json(&["ask", &server.model("toy"), "hello", "--json"], 0);
    assert_eq!((&alone["text"], server.asked().len()), (&"late".into(), 1), "off where it is not asked for");
}

#[test]
fn a_script_is_not_blamed_for_counting_no_tokens() {
    let bench = Bench::new();
    bench.write("answers.jsonl", "{\"answer\":\"yes\"}\n");
    let text = bench.snapshot(&["ask", "scripted:answers.jsonl", "hello"]);
    assert!(text.contains("yes") && !text.contains("tokens that"), "{text}");
}
