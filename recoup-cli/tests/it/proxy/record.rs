//! Recording: conversations, branches, outcomes.

use recoup::trajectory::{Part, Role, Status};
use serde_json::{Value, json};

use super::{Proxy, assistant, chat, counting, runs, scripted, told, user};
use crate::bench::Bench;
use crate::fault_server::{Fault, FaultServer, completion};

const PATH: &str = "/v1/chat/completions";

/// A completion of calls.
fn calling(calls: &Value) -> Fault {
    Fault::Answer(
        json!({
            "id": "x", "object": "chat.completion", "model": "toy-1",
            "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": calls } }],
            "usage": { "prompt_tokens": 5, "completion_tokens": 6 },
        })
        .to_string(),
    )
}

#[test]
fn a_conversation_is_a_run() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let key = [("Authorization", "Bearer sk-secret"), ("User-Agent", "desk/1.2"), ("X-Extra", "kept")];
    let first = proxy.post(PATH, &key, &chat(&[user("one")]));
    assert_eq!(first.body, completion("answer 1", "toy", Some((9, 3))).into_bytes(), "{}", first.text());
    let history = [user("one"), assistant("answer 1"), user("two")];
    assert_eq!(proxy.post(PATH, &key, &chat(&history)).status, 200);
    let done = proxy.stop();
    assert_eq!((&done["requests"], &done["ended"]["pure_student"]), (&2.into(), &2.into()));
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    let expected = [("user", "one"), ("assistant", "answer 1"), ("user", "two"), ("assistant", "answer 3")];
    assert_eq!(told(run), expected.map(|(role, text)| (role, text.to_owned())));
    assert_eq!(run.nodes.iter().filter(|node| node.occurrence.sampled).count(), 2);
    let call = run.nodes[1].occurrence.call.as_deref().unwrap();
    assert_eq!((call.model.as_deref(), call.usage.map(|usage| usage.input)), (Some("toy"), Some(9)));
    assert_eq!(call.parameters.as_ref().unwrap().as_str(), r#"{"model":"toy","temperature":0.5}"#);
    let harness = run.harness.as_ref().unwrap();
    assert_eq!((harness.name.as_str(), harness.version.as_deref()), ("desk", Some("1.2")));
    // The upstream got the request as it was sent, key and all; the disk did not.
    let asked = server.asked();
    assert_eq!(asked[0].body.as_bytes(), chat(&[user("one")]));
    assert_eq!(asked[0].header("authorization"), Some("Bearer sk-secret"));
    assert_eq!((asked[0].header("x-extra"), asked[0].header("connection")), (Some("kept"), None));
    for entry in walk(&bench.path(".recoup")) {
        let bytes = std::fs::read(&entry).unwrap();
        assert!(!bytes.windows(9).any(|window| window == b"sk-secret"), "{}", entry.display());
    }
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn tools_pictures_and_reasoning_are_kept() {
    let bench = Bench::new();
    let calls = json!([
        { "id": "a", "type": "function", "function": { "name": "look", "arguments": "{\"at\": 1.50}" } },
        { "id": "b", "type": "function", "function": { "name": "go", "arguments": "{}" } },
    ]);
    let server = scripted(vec![calling(&calls), Fault::answer("done")]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let picture = json!({ "role": "user", "content": [
        { "type": "text", "text": "what is this?" },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,aGk=" } },
    ] });
    let tools = json!([{ "type": "function", "function": { "name": "look", "parameters": { "type": "object" } } },
        { "type": "function", "function": { "name": "go", "parameters": { "type": "object" } } }]);
    let ask = |messages: Vec<Value>| {
        let body =
            json!({ "model": "toy", "messages": messages, "tools": tools, "x_vendor": { "kept": [1.0] } });
        proxy.post(PATH, &[], body.to_string().as_bytes())
    };
    assert_eq!(ask(vec![picture.clone()]).status, 200);
    // The client says it back in its own words, and its results in another order.
    let said = json!({ "tool_calls": calls, "role": "assistant" });
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "ok" });
    assert_eq!(ask(vec![picture, said, result("b"), result("a")]).status, 200);
    assert!(server.asked()[0].body.contains(r#""x_vendor":{"kept":[1.0]}"#));
    proxy.stop();
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    let roles: Vec<Role> = run.nodes.iter().map(|node| node.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool, Role::Tool, Role::Assistant]);
    assert!(matches!(run.nodes[0].parts[1], Part::Media(_)));
    let parts = &run.nodes[1].parts;
    assert!(matches!(parts[..], [Part::Reasoning { .. }, Part::ToolCall(_), Part::ToolCall(_)]), "{parts:?}");
    assert_eq!(parts[1].cited_text(), Some("{\"at\": 1.50}"));
    assert_eq!(run.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["look", "go"]);
    assert_eq!(run.leaves.len(), 1);
}

#[test]
fn attempts_branches_and_keys_are_told_apart() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let ask = |key: &str, messages: &[Value]| {
        let got = proxy.post(PATH, &[("Authorization", key)], &chat(messages));
        assert_eq!(got.status, 200, "{}", got.text());
    };
    let system = json!({ "role": "system", "content": "Be brief." });
    let turn = |text: &str| [system.clone(), user(text), assistant("answer 2"), user("more")];
    // Two attempts at one task, interleaved, under one key: two runs.
    ask("Bearer a", &[system.clone(), user("task")]);
    ask("Bearer a", &[system.clone(), user("task")]);
    ask("Bearer a", &turn("task"));
    ask("Bearer a", &turn("task"));
    // The same under another key: a third, of another client.
    ask("Bearer b", &[system.clone(), user("task")]);
    // Another task under the same system prompt: a fourth.
    ask("Bearer a", &[system.clone(), user("other")]);
    // A history that was edited behind the first answer is a branch of its run.
    ask("Bearer a", &[system.clone(), user("other"), assistant("answer 2"), user("this way")]);
    ask("Bearer a", &[system.clone(), user("other"), assistant("answer 2"), user("that way")]);
    proxy.stop();
    let runs = runs(&bench);
    let mut shapes: Vec<(usize, usize)> =
        runs.iter().map(|run| (run.nodes.len(), run.leaves.len())).collect();
    shapes.sort_unstable();
    assert_eq!(shapes, [(3, 1), (5, 1), (5, 1), (7, 2)]);
    let branched = runs.iter().find(|run| run.leaves.len() == 2).unwrap();
    assert_eq!(told(branched)[3].1, "that way", "the main branch is the last one that was asked for");
}

#[test]
fn a_session_that_is_named_is_one_run_even_when_it_is_compacted() {
    let bench = Bench::new();
    let server = counting();
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let session = [("x-recoup-session", "run-7"), ("x-recoup-task", "desk/3"), ("x-recoup-episode", "2")];
    proxy.post(PATH, &session, &chat(&[user("one")]));
    proxy.post(PATH, &session, &chat(&[user("Summary: one was answered."), user("two")]));
    assert!(server.asked().iter().all(|asked| asked.header("x-recoup-session").is_none()));
    let outcome =
        proxy.post("/v1/recoup/outcome", &[], br#"{"session": "run-7", "success": false, "score": 0.25}"#);
    assert_eq!((outcome.status, &outcome.json()["outcome"]), (200, &"failure".into()), "{}", outcome.text());
    let unknown = proxy.post("/v1/recoup/outcome", &[], br#"{"session": "run-8", "success": true}"#);
    assert_eq!(unknown.status, 404);
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.nodes.len(), run.leaves.len()), (5, 2));
    assert_eq!((run.outcome().status, run.outcome().score), (Status::Failure, Some(0.25)));
    assert_eq!((run.task.key.0.as_str(), run.trial), ("desk/3", Some(2)));
    // It goes on, and is a longer revision of the same run.
    proxy.post(
        PATH,
        &session,
        &chat(&[user("Summary: one was answered."), user("two"), assistant("answer 2"), user("three")]),
    );
    proxy.stop();
    let runs = super::runs(&bench);
    assert_eq!((runs.len(), runs[0].nodes.len()), (1, 7));
    let row = bench.json_lines(&["ls", "--json"]);
    assert_eq!(row[0]["native_id"], "run-7");
}

#[test]
fn a_compacted_context_is_known_by_what_it_keeps() {
    let bench = Bench::new();
    let calls =
        json!([{ "id": "call_x81", "type": "function", "function": { "name": "look", "arguments": "{}" } }]);
    let server = scripted(vec![calling(&calls), Fault::answer("done")]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    proxy.post(PATH, &[], &chat(&[user("a long story"), user("go")]));
    let kept = json!({ "role": "assistant", "tool_calls": calls });
    let result = json!({ "role": "tool", "tool_call_id": "call_x81", "content": "seen" });
    proxy.post(PATH, &[], &chat(&[user("in short"), kept, result]));
    proxy.stop();
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert_eq!((run.nodes.len(), run.leaves.len()), (7, 2));
    let copied: Vec<bool> = run.nodes.iter().map(|node| node.occurrence.copied_context).collect();
    assert_eq!(copied, [false, false, false, false, true, false, false]);
}

#[test]
fn other_paths_go_through_as_they_are() {
    let bench = Bench::new();
    let server = FaultServer::start(|_, asked| Fault::Raw {
        status: if asked.path.contains("missing") { 404 } else { 200 },
        headers: "Content-Type: application/json\nX-Request-Id: r1".to_owned(),
        body: format!("{{\"path\": \"{}\"}}", asked.path),
    });
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let models = proxy.get("/v1/models?limit=2");
    assert_eq!((models.status, &models.json()["path"]), (200, &"/v1/models?limit=2".into()));
    assert!(models.head.contains("x-request-id: r1"), "{}", models.head);
    assert_eq!(proxy.get("/v1/files/missing").status, 404);
    assert_eq!(proxy.get("/healthz").body, b"ok\n");
    assert_eq!(
        (proxy.metric("recoup_proxy_forwarded_total"), proxy.metric("recoup_proxy_requests_total")),
        (2, 0)
    );
}

#[test]
fn token_ids_and_log_probabilities_are_kept_where_they_are_sent() {
    let bench = Bench::new();
    let answer = json!({
        "id": "x", "model": "toy", "prompt_token_ids": [1, 2], "usage": { "prompt_tokens": 2, "completion_tokens": 1 },
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "hi" }, "finish_reason": "stop", "token_ids": [7],
            "logprobs": { "content": [{ "token": "hi", "logprob": -0.25 }] } }],
    });
    let server = scripted(vec![Fault::Answer(answer.to_string())]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    proxy.post(PATH, &[], &chat(&[user("hi")]));
    proxy.stop();
    let runs = runs(&bench);
    let call = runs[0].nodes[1].occurrence.call.as_deref().unwrap();
    assert_eq!((&call.prompt_ids, &call.completion_ids), (&Some(vec![1, 2]), &Some(vec![7])));
    assert_eq!(call.logprobs, Some(vec![-0.25]));
}
