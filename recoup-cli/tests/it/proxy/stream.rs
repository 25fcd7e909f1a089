//! Answers in pieces, in every API.

use std::time::Duration;

use recoup::trajectory::{Part, Role};
use serde_json::{Value, json};

use super::{Proxy, runs, scripted, told, typed_events};
use crate::bench::Bench;
use crate::fault_server::Fault;

/// A stream of events, cut into small pieces at odd places.
pub fn stream(events: &str, cut: bool) -> Fault {
    let bytes: Vec<char> = events.chars().collect();
    let pieces = bytes.chunks(37).map(|piece| (Duration::from_millis(1), piece.iter().collect())).collect();
    Fault::Stream { pieces, cut }
}

pub fn chat_events(text: &str) -> String {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({ "id": "c", "object": "chat.completion.chunk", "model": "toy-1",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] });
        format!("data: {chunk}\n\n")
    };
    let mut events = chunk(json!({ "role": "assistant", "content": "" }), Value::Null);
    for word in text.split_inclusive(' ') {
        events += &chunk(json!({ "content": word }), Value::Null);
    }
    let usage = json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4 } });
    events + &chunk(json!({}), "stop".into()) + &format!("data: {usage}\n\ndata: [DONE]\n\n")
}

#[test]
fn a_chat_stream_is_relayed_byte_for_byte() {
    let bench = Bench::new();
    let events = chat_events("Zürich — 東京 is far");
    let server = scripted(vec![stream(&events, false)]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let body = json!({ "model": "toy", "stream": true, "messages": [{ "role": "user", "content": "hi" }] });
    let got = proxy.post("/v1/chat/completions", &[], body.to_string().as_bytes());
    assert_eq!(String::from_utf8(got.body).unwrap(), events);
    assert!(got.head.contains("text/event-stream"), "{}", got.head);
    proxy.stop();
    let runs = runs(&bench);
    assert_eq!(told(&runs[0])[1], ("assistant", "Zürich — 東京 is far".to_owned()));
    let call = runs[0].nodes[1].occurrence.call.as_deref().unwrap();
    assert_eq!(call.usage.map(|usage| (usage.input, usage.output)), Some((3, 4)));
    assert_eq!((call.model.as_deref(), call.finish_reason.as_deref()), (Some("toy-1"), Some("stop")));
}

#[test]
fn anthropics_messages_are_recorded() {
    let bench = Bench::new();
    let whole = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "c-1", "stop_reason": "tool_use",
        "content": [{ "type": "text", "text": "Let me look." }, { "type": "tool_use", "id": "t1", "name": "look", "input": { "at": 1 } }],
        "usage": { "input_tokens": 5, "output_tokens": 6 } });
    let events = [
        json!({ "type": "message_start", "message": { "id": "msg_2", "type": "message", "role": "assistant", "model": "c-1", "content": [], "usage": { "input_tokens": 8, "output_tokens": 1 } } }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
        json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "It is a door." } }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" }, "usage": { "output_tokens": 4 } }),
        json!({ "type": "message_stop" }),
    ];
    let events = typed_events(&events);
    let server = scripted(vec![Fault::Answer(whole.to_string()), stream(&events, false)]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let headers = [("x-api-key", "k"), ("anthropic-version", "2023-06-01")];
    let mut body = json!({ "model": "c", "max_tokens": 10, "system": [{ "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } }],
        "tools": [{ "name": "look", "input_schema": { "type": "object" } }], "messages": [{ "role": "user", "content": "hi" }] });
    let first = proxy.post("/v1/messages", &headers, body.to_string().as_bytes());
    assert_eq!(first.json(), whole);
    body["messages"] = json!([
        { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
        { "role": "assistant", "content": whole["content"] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "a door", "cache_control": { "type": "ephemeral" } }] },
    ]);
    body["stream"] = true.into();
    let second = proxy.post("/v1/messages", &headers, body.to_string().as_bytes());
    assert_eq!(String::from_utf8(second.body).unwrap(), events);
    assert_eq!(server.asked()[0].header("x-api-key"), Some("k"));
    proxy.stop();
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    let roles: Vec<Role> = run.nodes.iter().map(|node| node.role).collect();
    assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant]);
    assert!(matches!(run.nodes[2].parts[..], [Part::Text(_), Part::ToolCall(_)]));
    assert_eq!(run.nodes[4].text(), "It is a door.");
    assert_eq!(run.nodes[4].occurrence.call.as_deref().unwrap().usage.map(|usage| usage.output), Some(4));
}

#[test]
fn openais_responses_are_recorded() {
    let bench = Bench::new();
    let output = json!([
        { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "hm" }] },
        { "type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look", "arguments": "{}", "status": "completed" },
    ]);
    let whole = json!({ "id": "resp_1", "object": "response", "model": "g-1", "status": "completed", "error": null,
        "output": output, "usage": { "input_tokens": 5, "output_tokens": 6 } });
    let said = json!({ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
        "content": [{ "type": "output_text", "text": "A door.", "annotations": [] }] });
    let completed = |id: &str| {
        let response = json!({ "id": id, "object": "response", "model": "g-1", "status": "completed", "output": [said] });
        let events = [
            json!({ "type": "response.created", "response": { "id": id, "output": [] } }),
            json!({ "type": "response.output_text.delta", "delta": "A door." }),
            json!({ "type": "response.completed", "response": response }),
        ];
        typed_events(&events)
    };
    let (second, third) = (completed("resp_2"), completed("resp_3"));
    let server =
        scripted(vec![Fault::Answer(whole.to_string()), stream(&second, false), stream(&third, false)]);
    let proxy = Proxy::start(&bench, &["--upstream", &server.url()]);
    let ask = |body: Value| proxy.post("/v1/responses", &[], body.to_string().as_bytes());
    assert_eq!(ask(json!({ "model": "g", "instructions": "Be brief.", "input": "hi" })).json(), whole);
    // A client that keeps no reasoning sends the calls back without it.
    let input = json!([{ "role": "user", "content": "hi" },
        { "type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}" },
        { "type": "function_call_output", "call_id": "c1", "output": "a door" }]);
    let got = ask(json!({ "model": "g", "instructions": "Be brief.", "input": input, "stream": true }));
    assert_eq!(String::from_utf8(got.body).unwrap(), second);
    // A client that leaves the history to the upstream names the answer.
    let got =
        ask(json!({ "model": "g", "previous_response_id": "resp_2", "input": "and now?", "stream": true }));
    assert_eq!(String::from_utf8(got.body).unwrap(), third);
    proxy.stop();
    let runs = runs(&bench);
    let [run] = &runs[..] else { panic!("{runs:?}") };
    let roles: Vec<Role> = run.nodes.iter().map(|node| node.role).collect();
    let expected =
        [Role::System, Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User, Role::Assistant];
    assert_eq!((roles.as_slice(), run.leaves.len()), (&expected[..], 1));
    assert!(
        matches!(run.nodes[2].parts[..], [Part::Reasoning { .. }, Part::ToolCall(_)]),
        "{:?}",
        run.nodes[2]
    );
}
