use super::completion::Completion;
use super::dialect::{Dialect, Scoring, Spare};
use crate::json::Json;
use crate::models::{ChatMessage, ChatRequest, Finish, Logprobs, ModelError, ReplySchema};

fn request() -> ChatRequest {
    let schema = Json::parse(r#"{"type":"object"}"#).unwrap();
    ChatRequest {
        schema: Some(ReplySchema { name: "verdict".to_owned(), schema }),
        seed: Some(7),
        ..ChatRequest::new(vec![ChatMessage::system("be brief"), ChatMessage::user("?")], 50)
    }
}

fn refused(message: &str) -> ModelError {
    ModelError::Status {
        host: "h".to_owned(),
        status: 400,
        message: message.to_owned(),
        retry_after_ms: None,
    }
}

const ALL: Spare = Spare { seed: true, schema: true };

#[test]
fn how_likely_tokens_are_is_asked_for_and_read() {
    let asks = |logprobs| {
        let request = ChatRequest { logprobs, ..ChatRequest::new(vec![ChatMessage::user("?")], 1) };
        Dialect::default().body("m", &request)
    };
    assert_eq!(asks(Logprobs::Answer)["logprobs"], true);
    assert_eq!(asks(Logprobs::Given)["prompt_logprobs"], 0);
    assert_eq!(asks(Logprobs::Given)["add_generation_prompt"], false);
    assert!(asks(Logprobs::No).get("logprobs").is_none());
    let tokens = |text: &str| {
        let completion: Completion = serde_json::from_str(text).unwrap();
        let tokens = completion.into_reply("h").unwrap().tokens?;
        Some(tokens.into_iter().map(|it| (it.token, it.logprob)).collect::<Vec<_>>())
    };
    let answered = r#"{"choices":[{"message":{"content":"hi"},"logprobs":{"content":[
        {"token":"h","logprob":-0.5,"top_logprobs":[]},{"token":"i","logprob":-1}]}}]}"#;
    assert_eq!(tokens(answered).unwrap(), [("h".to_owned(), -0.5), ("i".to_owned(), -1.0)]);
    let given = r#"{"choices":[{"message":{"content":""}}],"prompt_logprobs":[null,
        {"72":{"logprob":-2.5,"rank":3,"decoded_token":"h"}},{"73":{"logprob":-3,"decoded_token":"i"}}]}"#;
    assert_eq!(tokens(given).unwrap(), [("h".to_owned(), -2.5), ("i".to_owned(), -3.0)]);
    let without = r#"{"choices":[{"message":{"content":"hi"},"logprobs":{"content":[{"token":"h"}]}}]}"#;
    assert_eq!(tokens(without), None);
}

#[test]
fn given_tokens_are_scored_by_letting_nothing_else_be_said() {
    let dialect = Dialect { scoring: Scoring::Grammar, ..Dialect::default() };
    let messages = vec![ChatMessage::user("?"), ChatMessage::assistant("hi")];
    let request =
        ChatRequest { logprobs: Logprobs::Given, given: vec![72, 73], ..ChatRequest::new(messages, 1) };
    let body = dialect.body("m", &request);
    assert_eq!(body["grammar"], "root ::= <[72]> <[73]>");
    assert_eq!((&body["max_tokens"], &body["logprobs"]), (&4.into(), &true.into()));
    let probe = Dialect { scoring: Scoring::Probe, ..dialect };
    assert_eq!(probe.body("m", &request)["grammar"], "root ::= <[72]> <[73]> <[72]>");
    assert_eq!(body["messages"].as_array().unwrap().len(), 1);
    // Where a server has tools beside, it takes no grammar.
    let with_tools = ChatRequest { tools: vec![Json::parse("{}").unwrap()], ..request };
    assert!(dialect.body("m", &with_tools).get("grammar").is_none());
}

#[test]
fn a_server_is_asked_as_it_can_be() {
    let mut dialect = Dialect::default();
    let request = request();
    let body = dialect.body("m", &request);
    assert_eq!((&body["max_tokens"], &body["seed"]), (&50.into(), &7.into()));
    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
    assert_eq!(body["messages"][0]["role"], "system");
    for complaint in [
        "Unsupported parameter: use 'max_completion_tokens' instead",
        "'temperature' does not support 0",
        "unknown field seed",
        "response_format: not strict enough",
        "response_format: unknown type json_schema",
        "response_format: no schema, please",
    ] {
        let next = dialect.without(&refused(complaint), ALL);
        dialect = next.unwrap_or_else(|| panic!("{complaint}")).0;
    }
    let body = dialect.body("m", &request);
    let keys: Vec<&String> = body.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["model", "messages", "max_completion_tokens"]);
    assert!(body["messages"][2]["content"].as_str().unwrap().contains(r#"{"type":"object"}"#));
    let nothing = dialect.without(&refused("response_format"), ALL);
    assert_eq!(nothing, None, "nothing is left to leave out");
    assert_eq!(dialect.without(&refused("the prompt is too long"), ALL), None);
}

#[test]
fn requests_refused_for_the_same_reason_are_all_asked_again_and_learn_one_step() {
    let spoken = Dialect::default();
    let mut known = spoken;
    for complaint in ["'temperature' does not support 0", "response_format: not strict enough"] {
        for _ in 0..16 {
            let (next, _) = spoken.without(&refused(complaint), ALL).unwrap();
            known = known.join(next);
        }
    }
    assert_eq!(known, Dialect { schema_form: 1, no_temperature: true, ..spoken });
}

#[test]
fn answers_of_several_servers_are_read() {
    let read = |text: &str| serde_json::from_str::<Completion>(text).unwrap().into_reply("h");
    let plain = read(
        r#"{"model":"m-1","choices":[{"message":{"role":"assistant","content":"hi","reasoning_content":"so"},
            "finish_reason":"stop"}],
            "usage":{"prompt_tokens":9,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}}}"#,
    )
    .unwrap();
    let usage = plain.usage.unwrap();
    assert_eq!((plain.text.as_str(), plain.finish, plain.model.as_str()), ("hi", Finish::Stop, "m-1"));
    assert_eq!((usage.prompt, usage.cached_prompt, usage.completion), (9, 4, 2));
    assert_eq!(plain.reasoning.as_deref(), Some("so"));
    let calls = read(
        r#"{"choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function",
            "function":{"name":"f","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}]}"#,
    )
    .unwrap();
    assert_eq!((calls.calls[0].arguments.as_str(), calls.usage), ("{\"a\": 1}", None));
    let refused =
        read(r#"{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}"#).unwrap();
    assert_eq!((refused.text.as_str(), refused.finish), ("no", Finish::Filtered));
    let parts = read(r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"text":"b"}]}}]}"#);
    assert_eq!(parts.unwrap().text, "ab");
    assert!(read("{}").unwrap_err().to_string().contains("no choices"));
    let lied = read(r#"{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":-5}}"#).unwrap();
    assert_eq!(lied.usage, None, "a count that is none costs no answer");
    let routed = read(r#"{"error":{"message":"upstream is full","code":503}}"#).unwrap_err();
    assert!(routed.is_retryable() && routed.to_string().contains("upstream is full"), "{routed}");
}
