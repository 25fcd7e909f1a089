//! A provider's batch API: sent once, collected later, found again after a stop.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::fault_server::{Asked, Fault, FaultServer, completion};
use crate::judges::{line, opinion, proposal};

/// A provider of batches; done when `done` says so. The last of the questions it gets fails. It may say nothing
/// to a batch that it takes.
fn provider(done: Arc<Mutex<bool>>, mute: bool) -> FaultServer {
    let (lines, metadata) = (Mutex::new(Vec::new()), Mutex::new(Value::Null));
    FaultServer::start(move |_, asked: &Asked| {
        let batch = || {
            let state = if *done.lock().unwrap() { "completed" } else { "in_progress" };
            json!({ "id": "batch_1", "status": state, "output_file_id": "out-1", "metadata": *metadata.lock().unwrap() })
        };
        let answer = match asked.path.as_str() {
            "/v1/files" => {
                assert!(asked.header("content-type").unwrap().starts_with("multipart/form-data"));
                *lines.lock().unwrap() =
                    asked.body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                json!({ "id": "file-1" })
            }
            "/v1/batches" => {
                let body = asked.json();
                assert_eq!(body["input_file_id"], "file-1");
                *metadata.lock().unwrap() = body["metadata"].clone();
                if mute {
                    return Fault::Hangup;
                }
                batch()
            }
            "/v1/batches/batch_1" => batch(),
            "/v1/batches?limit=100" => json!({ "data": [batch()] }),
            "/v1/files/out-1/content" => {
                let lines: Vec<Value> = lines.lock().unwrap().clone();
                let last = lines.len() - 1;
                let answered = lines.iter().enumerate().map(|(index, line)| {
                    let question = line["body"]["messages"][0]["content"].as_str().unwrap();
                    let body: Value =
                        serde_json::from_str(&completion(&format!("to {question}"), "toy", Some((9, 3)))).unwrap();
                    let status = if index == last { 500 } else { 200 };
                    json!({ "custom_id": line["custom_id"], "response": { "status_code": status, "body": body } })
                });
                let text: String = answered.map(|line| line.to_string() + "\n").collect();
                return Fault::Answer(format!("{text}not JSON\n"));
            }
            other => panic!("{other}"),
        };
        Fault::Answer(answer.to_string())
    })
}

fn count(server: &FaultServer, path: &str) -> usize {
    server.asked().iter().filter(|asked| asked.path == path).count()
}

#[test]
fn a_batch_is_sent_once_and_collected_later() {
    let done = Arc::new(Mutex::new(false));
    let server = provider(Arc::clone(&done), false);
    let bench = Bench::new();
    bench.write("questions.jsonl", "\"one\"\n\"two\"\n\"three\"\n");
    let model = server.model("toy");
    let arguments = ["ask", &model, "--prompts", "questions.jsonl", "--batch", "--json"];
    let sent = bench.json(&arguments, 0);
    assert_eq!((&sent["pending"], &sent["calls"]), (&3.into(), &0.into()), "{sent}");
    let waiting = bench.json(&arguments, 0);
    assert_eq!(waiting["pending"], 3);
    assert_eq!(count(&server, "/v1/batches"), 1, "nothing is sent twice");
    *done.lock().unwrap() = true;
    let landed = bench.json(&arguments, 0);
    assert_eq!((&landed["cached"], &landed["pending"]), (&2.into(), &1.into()), "{landed}");
    assert_eq!(count(&server, "/v1/batches"), 2, "the question that failed is sent again");
}

#[test]
fn a_batch_whose_id_nobody_heard_is_found_again() {
    let server = provider(Arc::new(Mutex::new(true)), true);
    let bench = Bench::new();
    bench.write("questions.jsonl", "\"one\"\n\"two\"\n");
    let model = server.model("toy");
    let arguments = ["ask", &model, "--prompts", "questions.jsonl", "--json"];
    assert_eq!(bench.output(&[&arguments[..], &["--batch"]].concat()).status.code(), Some(2));
    let found = bench.output(&[&arguments[..], &["--batch"]].concat());
    assert_eq!(count(&server, "/v1/batches?limit=100"), 1, "{}", bench.render(&found));
    let kept = bench.json(&[&arguments[..], &["--offline"]].concat(), 1);
    assert_eq!((&kept["cached"], &kept["failed"]), (&1.into(), &1.into()), "{kept}");
}

/// A provider of any number of batches whose answers are judgements, as `is_done` says.
fn judges(is_done: Arc<Mutex<bool>>) -> FaultServer {
    let batches: Mutex<Vec<Vec<Value>>> = Mutex::default();
    let uploaded: Mutex<Vec<Value>> = Mutex::default();
    FaultServer::start(move |_, asked: &Asked| {
        let number = |prefix: &str| asked.path.strip_prefix(prefix).and_then(|rest| rest.split('/').next());
        let batch = |number: &str| {
            let state = if *is_done.lock().unwrap() { "completed" } else { "in_progress" };
            json!({ "id": format!("b-{number}"), "status": state, "output_file_id": format!("out-{number}") })
        };
        let answer = if asked.path == "/v1/files" {
            *uploaded.lock().unwrap() =
                asked.body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            json!({ "id": "file-1" })
        } else if asked.path == "/v1/batches" {
            let mut batches = batches.lock().unwrap();
            batches.push(uploaded.lock().unwrap().clone());
            batch(&(batches.len() - 1).to_string())
        } else if let Some(number) = number("/v1/batches/b-") {
            batch(number)
        } else if let Some(number) = number("/v1/files/out-") {
            let lines = batches.lock().unwrap()[number.parse::<usize>().unwrap()].clone();
            let answers = lines.iter().map(|line| {
                let body: Value = serde_json::from_str(&judgement(&line["body"])).unwrap();
                json!({ "custom_id": line["custom_id"], "response": { "status_code": 200, "body": body } })
            });
            return Fault::Answer(answers.map(|line| line.to_string() + "\n").collect());
        } else {
            panic!("{}", asked.path)
        };
        Fault::Answer(answer.to_string())
    })
}

/// What `claude` proposes and `gpt` says of it: run a stands, b is not admitted, c quotes what is not there.
fn judgement(body: &Value) -> String {
    let (text, model) = (body["messages"].to_string(), body["model"].as_str().unwrap());
    let order = ["W10001", "W10002", "W10003"].into_iter().find(|order| text.contains(order)).unwrap();
    let quote = if order == "W10003" { "{\"order\":\"W99999\"}" } else { "{\"order\":\"W77121\"}" };
    let said = match (model, order) {
        ("claude", _) => proposal(order, 1, quote),
        (_, "W10001") => opinion("admit", 1),
        _ => opinion("reject", 3),
    };
    completion(&said.to_string(), model, Some((900, 80)))
}

#[test]
fn runs_are_diagnosed_by_batches() {
    let is_done = Arc::new(Mutex::new(false));
    let server = judges(Arc::clone(&is_done));
    let bench = Bench::new();
    bench.write(
        "runs.jsonl",
        [line("a", "W10001", false), line("b", "W10002", false), line("c", "W10003", false)].concat(),
    );
    bench.output(&["import", "runs.jsonl"]);
    let panel = [server.model("claude"), server.model("gpt")];
    let diagnose = ["diagnose", "--json", "--batch", "--judge", &panel[0], "--judge", &panel[1]];
    let sent = bench.json(&diagnose, 0);
    assert_eq!((&sent["runs"], &sent["judging"]["pending"]), (&json!(0), &json!(3)), "{sent}");
    assert_eq!((&sent["judging"]["waiting"], &sent["judging"]["errors"]), (&json!(0), &json!({})), "{sent}");
    let waits = bench.snapshot(&diagnose);
    assert!(waits.contains("`claude` is still at work on 1 batch\n"), "{waits}");
    assert!(waits.contains("3 runs wait for a batch; the same command, run again, goes on"), "{waits}");
    assert_eq!(count(&server, "/v1/batches"), 1, "nothing is sent twice");

    // Each round brings every run a question further: an answer, the other's opinion, an answer again.
    *is_done.lock().unwrap() = true;
    let rounds = (0..12).map(|_| bench.json(&diagnose, 0));
    let last = rounds.into_iter().find(|done| done["judging"]["pending"] == 0).unwrap();
    assert_eq!((&last["runs"], &last["admitted"]), (&json!(3), &json!(1)), "{last}");
    assert_eq!(last["rejected"], json!({ "M1": 1, "S4": 1 }));
    let costs = bench.json(&["stats", "--json"], 0)["replies"].clone();
    // Four answers about b and c each and one about a; the opinion on b is the same question each time.
    assert_eq!(
        (&costs[0]["stage"], &costs[0]["model"], &costs[0]["replies"]),
        (&json!("diagnose"), &json!("claude"), &json!(9)),
        "{costs}"
    );
    assert_eq!(costs[0]["prompt_tokens"], 9 * 900);

    let batches = count(&server, "/v1/batches");
    let resumed = bench.json(&[&diagnose[..], &["--resume"]].concat(), 0);
    assert_eq!((&resumed["runs"], count(&server, "/v1/batches")), (&json!(0), batches), "all is decided");
}

/// A provider whose batches are over at once; `refuse` says with what status and words it refuses a question.
fn refusing(refuse: impl Fn(&Value) -> Option<(u16, &'static str)> + Send + Sync + 'static) -> FaultServer {
    let (lines, metadata) = (Mutex::<Vec<Value>>::default(), Mutex::new(Value::Null));
    FaultServer::start(move |_, asked: &Asked| {
        let results = || -> (Vec<Value>, Vec<Value>) {
            let lines = lines.lock().unwrap().clone();
            let answers = lines.iter().map(|line| {
                let (status, body) = match refuse(&line["body"]) {
                    Some((status, words)) => (status, json!({ "error": { "message": words } })),
                    None => (200, serde_json::from_str(&completion("yes", "toy", Some((9, 3)))).unwrap()),
                };
                json!({ "custom_id": line["custom_id"], "response": { "status_code": status, "body": body } })
            });
            answers.partition(|line| line["response"]["status_code"] == 200)
        };
        let file =
            |lines: Vec<Value>| Fault::Answer(lines.iter().map(|line| line.to_string() + "\n").collect());
        let answer = match asked.path.as_str() {
            "/v1/files" => {
                *lines.lock().unwrap() =
                    asked.body.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
                json!({ "id": "file-1" })
            }
            "/v1/batches" => {
                *metadata.lock().unwrap() = asked.json()["metadata"].clone();
                json!({ "id": "b-1", "status": "validating" })
            }
            "/v1/batches/b-1" => json!({ "id": "b-1", "status": "completed", "output_file_id": "out",
                "error_file_id": "err", "metadata": *metadata.lock().unwrap() }),
            "/v1/files/out/content" => return file(results().0),
            "/v1/files/err/content" => return file(results().1),
            other => panic!("{other}"),
        };
        Fault::Answer(answer.to_string())
    })
}

fn one_question() -> Bench {
    let bench = Bench::new();
    bench.write("questions.jsonl", "\"one\"\n");
    bench.write("prices.toml", "[models.toy]\ninput = 1000\noutput = 1000\n");
    bench
}

const BATCH: [&str; 8] =
    ["--prompts", "questions.jsonl", "--batch", "--json", "--prices", "prices.toml", "--max-answer", "50"];

#[test]
fn what_a_provider_refuses_of_a_batch_is_left_out_of_the_next() {
    let server = refusing(|body| {
        body.get("temperature").map(|_| (400, "'temperature' does not support 0 with this model"))
    });
    let (bench, model) = (one_question(), server.model("toy"));
    let arguments = [&["ask", &model][..], &BATCH].concat();
    bench.json(&arguments, 0);
    let told = bench.output(&arguments);
    assert!(bench.render(&told).contains("'temperature' does not support 0"), "{}", bench.render(&told));
    let done = bench.json(&arguments, 0);
    assert_eq!((&done["cached"], &done["pending"]), (&1.into(), &0.into()), "{done}");
    assert_eq!(count(&server, "/v1/batches"), 2);
    let costs = bench.json(&["stats", "--json"], 0)["replies"][0].clone();
    assert_eq!(
        costs["cost_picodollars"], 6_000_000_000_u64,
        "12 tokens at $0.001, half of it in a batch: {costs}"
    );
}

/// What is said of one question in a batch, once the batch has ended without an answer to it.
fn refused_answer(server: &FaultServer) -> String {
    let (bench, model) = (one_question(), server.model("toy"));
    let arguments = [&["ask", &model][..], &BATCH].concat();
    bench.json(&arguments, 0);
    let output = bench.output(&arguments);
    assert_eq!(output.status.code(), Some(1), "{}", bench.render(&output));
    String::from_utf8_lossy(&output.stdout).lines().next().unwrap().to_owned()
}

#[test]
fn a_question_that_a_provider_refuses_for_good_fails_with_its_reason() {
    let server = refusing(|_| Some((400, "this is against our policy")));
    let answer = refused_answer(&server);
    assert!(answer.contains("HTTP 400: this is against our policy"), "{answer}");
    assert_eq!(count(&server, "/v1/batches"), 1, "it is not sent again in the same breath");
}

#[test]
fn a_batch_that_a_provider_does_not_take_fails_with_its_reason() {
    let server = FaultServer::start(|number, asked: &Asked| {
        let answer = match asked.path.as_str() {
            // An upload is tried again, at the provider's pace.
            "/v1/files" if number == 0 => return Fault::status(503, "busy"),
            "/v1/files" => json!({ "id": "file-1" }),
            "/v1/batches" => json!({ "id": "b-1", "status": "validating" }),
            _ => json!({ "id": "b-1", "status": "failed", "errors": { "data": [
                { "code": "model_not_found", "message": "The model `toy` takes no batches.", "line": 1 }] } }),
        };
        Fault::Answer(answer.to_string())
    });
    let answer = refused_answer(&server);
    assert!(answer.contains("The model `toy` takes no batches."), "{answer}");
}
