//! A provider's batch API: sent once, collected later, found again after a stop.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::bench::Bench;
use crate::fault_server::{Asked, Fault, FaultServer, completion};

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
