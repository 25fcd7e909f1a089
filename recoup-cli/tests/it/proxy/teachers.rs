//! What teachers may take, and teachers that are not told all or speak another API.

use recoup::verdict::{Actor, RefusalCode, StateLabel};
use serde_json::{Value, json};

use super::{Got, Proxy, assistant, chat, counting, labels, runs, scripted, user};
use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer, completion};

const PATH: &str = "/v1/chat/completions";
const TASK: (&str, &str) = ("x-recoup-task", "desk/trip-1");

/// A proxy between the two, with more flags.
fn between(bench: &Bench, student: &FaultServer, teacher: &FaultServer, more: &[&str]) -> Proxy {
    let (url, model) = (student.url(), teacher.model("wise"));
    Proxy::start(bench, &[&["--upstream", &url, "--teacher", &model], more].concat())
}

/// Every turn is the teacher's.
const TAKES_ALL: [&str; 4] = ["--mode", "mix", "--beta", "1"];

/// A turn of a session, whose history has so many turns.
fn turn(proxy: &Proxy, turns: usize) -> Got {
    let mut history = vec![user("start")];
    for turn in 0..turns {
        history.extend([assistant(&format!("answer {}", 2 * turn + 1)), user(&format!("turn {turn}"))]);
    }
    proxy.post(PATH, &[TASK, ("x-recoup-session", "s")], &chat(&history))
}

/// Waits until the proxy has counted so many labels, missing ones included.
fn await_labels(proxy: &Proxy, count: u64) {
    for _ in 0..200 {
        let came =
            proxy.metric("recoup_proxy_labels_total") + proxy.metric("recoup_proxy_labels_missing_total");
        if came >= count {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    panic!("the labels did not come");
}

fn labels_of(bench: &Bench) -> Vec<StateLabel> {
    labels(bench, &runs(bench)[0])
}

fn wise() -> FaultServer {
    FaultServer::start(|_, _| Fault::Answer(completion("lesson", "wise", Some((40, 10)))))
}

#[test]
fn a_cap_on_requests_costs_labels_and_never_the_student() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), wise());
    let proxy = between(&bench, &student, &teacher, &["--max-requests", "2"]);
    for turns in 0..4 {
        assert_eq!(turn(&proxy, turns).status, 200);
        await_labels(&proxy, turns as u64 + 1);
    }
    assert_eq!((teacher.asked().len(), proxy.metric("recoup_proxy_teacher_requests_total")), (2, 2));
    assert_eq!(
        (proxy.metric("recoup_proxy_teacher_capped"), proxy.metric("recoup_proxy_teacher_tokens_total")),
        (1, 100)
    );
    let done = proxy.stop();
    assert_eq!((&done["spent"]["requests"], &done["ended"]["degraded"]), (&2.into(), &2.into()));
    let labels = labels_of(&bench);
    assert!(labels[1].action.is_some());
    let refused = labels[3].refused.as_ref().unwrap();
    assert_eq!(
        (refused.code, refused.reason.as_str()),
        (RefusalCode::Missing, "the limit of 2 requests is reached")
    );
}

#[test]
fn a_cap_on_cost_holds_however_many_labels_are_under_way() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), wise());
    let prices = bench.write("prices.toml", "[models.wise]\ninput = 100\noutput = 100\n");
    // An answer is set aside for with 50 tokens, half a cent, and a question with a tenth of that: two fit at a time.
    let flags = ["--prices", prices.to_str().unwrap(), "--max-cost", "0.03"];
    let proxy = between(&bench, &student, &teacher, &flags);
    std::thread::scope(|scope| {
        for session in 0..12 {
            let proxy = &proxy;
            scope.spawn(move || {
                let body = json!({ "model": "toy", "max_tokens": 50, "messages": [user(&format!("start {session}"))] });
                let got = proxy.post(PATH, &[TASK], body.to_string().as_bytes());
                assert_eq!(got.status, 200);
            });
        }
    });
    await_labels(&proxy, 12);
    let done = proxy.stop();
    let (cost, asked) = (done["spent"]["cost_usd"].as_f64().unwrap(), teacher.asked().len());
    // Fifty tokens at $100 a million.
    assert!((cost - 0.005 * asked as f64).abs() < 1e-9 && cost <= 0.03 && asked >= 4, "{cost} for {asked}");
    let costs: Vec<Option<f64>> =
        runs(&bench).iter().flat_map(|run| labels(&bench, run)).map(|label| label.cost.usd).collect();
    assert_eq!(costs.iter().filter(|cost| **cost == Some(0.005)).count(), asked);
}

#[test]
fn a_turn_of_the_teacher_beyond_a_cap_is_refused_in_the_clients_api() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), wise());
    let proxy = between(&bench, &student, &teacher, &[&TAKES_ALL[..], &["--max-tokens", "5000"]].concat());
    // What is set aside for an answer without a limit leaves no room for another.
    let body = json!({ "model": "toy", "max_tokens": 4940, "messages": [user("hi")] });
    assert_eq!(proxy.post(PATH, &[TASK], body.to_string().as_bytes()).status, 200);
    let got = proxy.post(PATH, &[TASK], body.to_string().as_bytes());
    let said = got.json();
    assert_eq!((got.status, &said["error"]["type"]), (402, &"insufficient_quota".into()));
    assert_eq!(said["error"]["message"], "recoup: the limit of 5000 tokens is reached");
    let got = proxy.post("/v1/messages", &[TASK], body.to_string().as_bytes());
    assert_eq!((got.status, &got.json()["error"]["type"]), (402, &"billing_error".into()));
    assert!(student.asked().is_empty(), "there is no silent swap");
    let done = proxy.stop();
    assert_eq!((&done["ended"]["capped"], &done["ended"]["pure_teacher"]), (&2.into(), &1.into()));
    let outcomes: Vec<Value> =
        runs(&bench).iter().map(|run| run.extra["interleaved"].to_value()["outcome"].clone()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == "capped").count(), 2, "{outcomes:?}");
}

const CALL: &str = r#"{"id":"x","model":"wise-1","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant",
    "content":"I go.","tool_calls":[{"id":"t1","type":"function","function":{"name":"go","arguments":"{\"to\":\"mia@example.com\"}"}}]}}],
    "usage":{"prompt_tokens":40,"completion_tokens":10,"total_tokens":50}}"#;

/// A request of Anthropic's API that holds a person's address.
fn message(stream: bool) -> Value {
    json!({ "model": "toy", "max_tokens": 50, "system": "Be brief.", "stream": stream,
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "Go to mia@example.com." }] },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t0", "name": "go", "input": { "to": "x" } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t0", "content": "a wall" }] },
        ],
        "tools": [{ "name": "go", "description": "Goes.", "input_schema": { "type": "object", "properties": { "to": { "type": "string" } } } }] })
}

/// A teacher of OpenAI's API that calls with whatever stands for the address.
fn caller() -> FaultServer {
    FaultServer::start(|_, asked| {
        let shown = asked.json()["messages"][1]["content"].as_str().unwrap().to_owned();
        let address = shown.trim_start_matches("Go to ").trim_end_matches('.').to_owned();
        Fault::Answer(CALL.replace("mia@example.com", &address))
    })
}

#[test]
fn a_teacher_of_another_api_labels() {
    let bench = Bench::new();
    let said = json!({ "id": "m", "type": "message", "role": "assistant", "model": "toy", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "no" }], "usage": { "input_tokens": 9, "output_tokens": 1 } });
    let (student, teacher) = (scripted(vec![Fault::Answer(said.to_string())]), caller());
    let proxy = between(&bench, &student, &teacher, &[]);
    let got = proxy.post("/v1/messages", &[TASK], message(false).to_string().as_bytes());
    assert_eq!(got.status, 200, "{}", got.text());
    proxy.stop();
    let asked = &teacher.asked()[0];
    let question = asked.json();
    let roles: Vec<&str> =
        question["messages"].as_array().unwrap().iter().map(|said| said["role"].as_str().unwrap()).collect();
    assert_eq!((asked.path.as_str(), roles), (PATH, vec!["system", "user", "assistant", "tool"]));
    assert_eq!((&question["model"], &question["max_tokens"]), (&"wise".into(), &50.into()));
    assert_eq!(question["tools"][0]["function"]["parameters"]["properties"]["to"]["type"], "string");
    assert!(!asked.body.contains("mia@"), "{}", asked.body);
    let label = &labels_of(&bench)[0];
    let action = label.action.as_ref().unwrap();
    assert_eq!(
        (action.text.as_str(), action.calls[0].arguments.as_str()),
        ("I go.", r#"{"to":"mia@example.com"}"#)
    );
    assert_eq!((label.cost.prompt_tokens, label.cost.completion_tokens), (40, 10));
}

#[test]
fn a_teacher_of_another_api_takes_turns() {
    let bench = Bench::new();
    let (student, teacher) = (counting(), caller());
    let proxy = between(&bench, &student, &teacher, &TAKES_ALL);
    let got = proxy.post("/v1/messages", &[TASK], message(false).to_string().as_bytes());
    let said = got.json();
    assert_eq!(
        (got.status, &said["type"], &said["stop_reason"]),
        (200, &"message".into(), &"tool_use".into())
    );
    assert_eq!(
        said["content"][1],
        json!({ "type": "tool_use", "id": "t1", "name": "go", "input": { "to": "mia@example.com" } })
    );
    let got = proxy.post("/v1/messages", &[TASK], message(true).to_string().as_bytes());
    let text = got.text();
    assert!(
        got.head.contains("text/event-stream")
            && text.contains("event: message_stop")
            && text.contains("partial_json"),
        "{text}"
    );
    // What cannot be retold is refused, and so is what cannot be asked.
    let picture =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } });
    let body =
        json!({ "model": "toy", "max_tokens": 5, "messages": [{ "role": "user", "content": [picture] }] });
    let got = proxy.post("/v1/messages", &[TASK], body.to_string().as_bytes());
    assert_eq!((got.status, &got.json()["error"]["type"]), (400, &"invalid_request_error".into()));
    assert!(got.text().contains("it holds an image"), "{}", got.text());
    assert!(student.asked().is_empty());
    proxy.stop();
    let labels = labels_of(&bench);
    assert_eq!((labels[0].actor, labels[0].agrees), (Actor::Teacher, Some(true)));
}

#[test]
fn a_history_that_the_upstream_keeps_is_told_to_the_teacher_even_after_a_restart() {
    let bench = Bench::new();
    let student = FaultServer::start(|number, _| {
        let said = json!([{ "type": "output_text", "text": format!("answer {number}"), "annotations": [] }]);
        let answer = json!({ "id": format!("resp_{number}"), "object": "response", "status": "completed", "model": "toy",
            "output": [{ "type": "reasoning", "id": "r", "summary": [] },
                { "type": "message", "id": "m", "role": "assistant", "status": "completed", "content": said }],
            "usage": { "input_tokens": 9, "output_tokens": 1 } });
        Fault::Answer(answer.to_string())
    });
    let teacher = wise();
    let ask = |proxy: &Proxy, text: &str, previous: Option<&str>| {
        let mut body = json!({ "model": "toy", "instructions": "Be brief.", "input": text });
        if let Some(previous) = previous {
            body["previous_response_id"] = previous.into();
        }
        let got = proxy.post("/v1/responses", &[TASK], body.to_string().as_bytes());
        assert_eq!(got.status, 200, "{}", got.text());
        got.json()["id"].as_str().unwrap().to_owned()
    };
    let proxy = between(&bench, &student, &teacher, &[]);
    let first = ask(&proxy, "one", None);
    await_labels(&proxy, 1);
    let second = ask(&proxy, "two", Some(&first));
    await_labels(&proxy, 2);
    proxy.kill();
    let proxy = between(&bench, &student, &teacher, &[]);
    ask(&proxy, "three", Some(&second));
    ask(&proxy, "four", Some("resp_of_another_day"));
    await_labels(&proxy, 2);
    proxy.stop();
    let shown = |number: usize| -> Vec<String> {
        let question = teacher.asked()[number].json();
        let messages = question["messages"].as_array().unwrap().clone();
        messages.iter().map(|said| said["content"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(shown(1), ["Be brief.", "one", "answer 0", "two"]);
    assert_eq!(shown(2), ["Be brief.", "one", "answer 0", "two", "answer 1", "three"]);
    assert_eq!(teacher.asked().len(), 3, "what the proxy has not seen it does not make up");
    let runs = runs(&bench);
    let all: Vec<StateLabel> = runs.iter().flat_map(|run| labels(&bench, run)).collect();
    let missing: Vec<&str> =
        all.iter().filter_map(|label| Some(label.refused.as_ref()?.reason.as_str())).collect();
    assert_eq!(missing, ["it goes on from an answer that did not come through this proxy"]);
    assert_eq!((runs.len(), all.len()), (2, 4));
}

#[test]
fn what_nobody_knows_the_price_of_is_not_asked_unasked() {
    let bench = Bench::new();
    let teacher = "http://models.example/v1#wise";
    let words = ["proxy", "--upstream", "http://127.0.0.1:9/v1", "--teacher", teacher, "--port", "0"];
    insta::assert_snapshot!(
        [&words[..], &[&words[..], &["--max-cost", "3"]].concat()]
            .map(|words| bench.snapshot(words))
            .join("\n")
    );
}

#[test]
fn an_error_of_a_teacher_of_another_api_reads_as_one_of_the_clients() {
    let bench = Bench::new();
    let (student, teacher) =
        (counting(), scripted(vec![Fault::status(400, r#"{"error":{"message":"no such model"}}"#)]));
    let proxy = between(&bench, &student, &teacher, &TAKES_ALL);
    let got = proxy.post("/v1/messages", &[TASK], message(false).to_string().as_bytes());
    assert_eq!((got.status, &got.json()["error"]["type"]), (400, &"invalid_request_error".into()));
    assert_eq!(got.json()["error"]["message"], "recoup: the teacher answered 400: no such model");
    assert!(student.asked().is_empty(), "there is no silent swap");
    assert_eq!(proxy.stop()["ended"]["aborted"], 1);
}
