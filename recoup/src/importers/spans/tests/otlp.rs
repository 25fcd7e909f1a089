//! Spans in the conventions of OpenTelemetry.

use super::super::OtelGenAi;
use super::{list, read_with, said, told, user};

/// OTLP with one span per generation of the conventions.
fn otlp(spans: &[&str]) -> String {
    format!(r#"{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}"#, spans.join(","))
}

fn attribute(key: &str, value: &str) -> String {
    format!(r#"{{"key":"{key}","value":{{"stringValue":{}}}}}"#, crate::json::Json::string(value).as_str())
}

#[test]
fn every_generation_of_the_conventions_gives_the_same_messages() {
    let head = r#""traceId":"t","spanId":"s","name":"chat m","startTimeUnixNano":"1","endTimeUnixNano":"2""#;
    let with = |attributes: &[String], more: &str| {
        otlp(&[&format!(r#"{{{head},"attributes":[{}]{more}}}"#, attributes.join(","))])
    };
    let event = |name: &str, attributes: &[String]| {
        format!(r#"{{"name":"{name}","timeUnixNano":"1","attributes":[{}]}}"#, attributes.join(","))
    };
    let texts = [
        with(
            &[
                attribute("gen_ai.prompt.0.role", "user"),
                attribute("gen_ai.prompt.0.content", "hi"),
                attribute("gen_ai.completion.0.role", "assistant"),
                attribute("gen_ai.completion.0.content", "hello"),
            ],
            "",
        ),
        with(
            &[
                attribute("gen_ai.prompt", &list(&[user("hi")])),
                attribute("gen_ai.completion", &list(&[said("hello")])),
            ],
            "",
        ),
        with(
            &[],
            &format!(
                r#","events":[{},{}]"#,
                event("gen_ai.user.message", &[attribute("content", "hi")]),
                event(
                    "gen_ai.choice",
                    &[attribute("message", r#"{"content":"hello"}"#), attribute("finish_reason", "stop")]
                )
            ),
        ),
        with(
            &[
                attribute(
                    "gen_ai.input.messages",
                    r#"[{"role":"user","parts":[{"type":"text","content":"hi"}]}]"#,
                ),
                attribute(
                    "gen_ai.output.messages",
                    r#"[{"role":"assistant","parts":[{"type":"text","content":"hello"}]}]"#,
                ),
            ],
            "",
        ),
    ];
    let logs = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[
        {"traceId":"t","spanId":"s","timeUnixNano":"1","eventName":"gen_ai.user.message","body":{"kvlistValue":{"values":[{"key":"content","value":{"stringValue":"hi"}}]}}},
        {"traceId":"t","spanId":"s","timeUnixNano":"2","eventName":"gen_ai.choice","body":{"kvlistValue":{"values":[{"key":"index","value":{"intValue":"0"}},
            {"key":"message","value":{"kvlistValue":{"values":[{"key":"content","value":{"stringValue":"hello"}}]}}}]}}}]}]}]}"#
        .replace('\n', "");
    for text in texts.iter().chain([&logs]) {
        let read = read_with(&OtelGenAi, &[text], 1);
        assert_eq!(read.runs.len(), 1, "{text}: {:?}", read.reasons);
        assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=hello", "{text}");
    }
}

#[test]
fn model_calls_alone_in_their_traces_are_joined_by_their_conversation() {
    let call = |trace: &str, start: u32, input: &[String], output: &str| {
        let attributes = [
            attribute("gen_ai.operation.name", "chat"),
            attribute("gen_ai.conversation.id", "talk"),
            attribute("gen_ai.input.messages", &list(input)),
            attribute("gen_ai.output.messages", &list(&[said(output)])),
        ];
        let attributes = attributes.join(",");
        format!(
            r#"{{"traceId":"{trace}","spanId":"s{start}","name":"chat","startTimeUnixNano":"{start}","attributes":[{attributes}]}}"#
        )
    };
    let first = call("t1", 1, &[user("hi")], "hello");
    let second = call("t2", 2, &[user("hi"), said("hello"), user("bye")], "so long");
    let read = read_with(&OtelGenAi, &[&otlp(&[&second]), &otlp(&[&first])], 1);
    assert_eq!(read.runs.len(), 1);
    assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=hello user=bye assistant*=so long");
}

#[test]
fn an_embedding_is_no_turn() {
    let span = |id: &str, operation: &str, more: &[String]| {
        let attributes =
            [&[attribute("gen_ai.operation.name", operation), attribute("gen_ai.request.model", "m")], more]
                .concat()
                .join(",");
        format!(
            r#"{{"traceId":"t","spanId":"{id}","name":"{operation} m","startTimeUnixNano":"1","attributes":[{attributes}]}}"#
        )
    };
    let chat = [
        attribute("gen_ai.input.messages", &list(&[user("hi")])),
        attribute("gen_ai.output.messages", &list(&[said("hello")])),
    ];
    let asked = [attribute("gen_ai.input.messages", &list(&[user("embed me")]))];
    let text = otlp(&[&span("a", "embeddings", &asked), &span("b", "chat", &chat)]);
    let read = read_with(&OtelGenAi, &[&text], 1);
    assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=hello");
    assert_eq!(read.runs[0].leaves.len(), 1);
    assert_eq!(read.reasons, ["span.embeddings: no call of a model, a tool or an agent"]);
}

#[test]
fn a_bad_span_costs_only_itself_and_what_is_no_span_is_said() {
    let attributes = [
        attribute("gen_ai.operation.name", "chat"),
        attribute("gen_ai.input.messages", &list(&[user("hi")])),
        attribute("gen_ai.output.messages", &list(&[said("hello")])),
    ];
    let good =
        format!(r#"{{"traceId":"t","spanId":"s","name":"chat","attributes":[{}]}}"#, attributes.join(","));
    let text = otlp(&[r#"{"traceId":7,"spanId":"x","name":"n"}"#, &good]);
    let lines = format!("{text}\n{{\"other\":1}}\n{{\"resourceSpans\":[]}}");
    let read = read_with(&OtelGenAi, &[&lines], 1);
    assert_eq!(told(&read.runs[0], 0), "user=hi assistant*=hello");
    assert_eq!(read.reasons.len(), 2, "{:?}", read.reasons);
    assert!(read.reasons.iter().any(|reason| reason == "spans[]: no span or log record"));
    assert!(read.reasons.iter().any(|reason| reason.contains("resourceSpans")), "{:?}", read.reasons);
}
