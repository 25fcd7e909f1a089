//! A teacher behind another API than its client's: a request retold as a question that every provider is asked in, and
//! the answer written as the client's API would have it.
//!
//! What is retold are messages, tools, the limit of the answer and its temperature. Images are not, so a request that
//! holds one is not put to such a teacher.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use recoup::importers::recoup_proxy::{self, Api};
use recoup::models::{
    AskedModel, ChatMessage, ChatModel as _, ChatReply, ChatRequest, Finish, ModelCall, ModelError, Role,
    Usage,
};
use recoup::rollout::function;
use recoup::trajectory::{Node, Part};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::request::TurnRequest;
use super::spending::{ANSWER, LIMITS};

/// Why there is no answer.
pub(super) enum NoAnswer {
    /// The request has no form there.
    Untold(String),
    /// The model gave none.
    Model(ModelError),
    /// The answer has no form in the client's API.
    Unwritten(String),
}

/// Asks a model, and gives the body of the answer as the client's API has it. `body` is the request as the teacher is to
/// see it. Blocks.
pub(super) fn ask(model: &Arc<AskedModel>, api: Api, body: &Bytes, stage: &str) -> Result<Vec<u8>, NoAnswer> {
    let question = retold(api, body).map_err(NoAnswer::Untold)?;
    let reply = model.about(stage, None).complete(&question).map_err(NoAnswer::Model)?;
    let name = &model.identity().model;
    written(api, name, &reply).map(|body| body.to_string().into_bytes()).map_err(NoAnswer::Unwritten)
}

/// A request as every provider is asked it.
fn retold(api: Api, body: &Bytes) -> Result<ChatRequest, String> {
    let read = TurnRequest::parse(api, body).map_err(|error| error.to_string())?;
    let raws: Vec<&RawValue> = read.messages.iter().map(|raw| &**raw).collect();
    let mut messages = Vec::new();
    for node in recoup_proxy::nodes(api, &raws) {
        say(&node, &mut messages)?;
    }
    let tools = recoup_proxy::tools(read.tools)?;
    let number = |name: &str| read.member(name).and_then(|raw| serde_json::from_str::<f64>(raw.get()).ok());
    let limit = LIMITS.iter().find_map(|name| number(name)).filter(|limit| *limit >= 1.0);
    // A cast from a float saturates.
    let question = ChatRequest::new(messages, limit.map_or(ANSWER as u32, |limit| limit as u32));
    Ok(ChatRequest {
        tools: tools.iter().map(function).collect(),
        temperature: number("temperature").unwrap_or(0.0),
        ..question
    })
}

/// Adds what a message says. Each tool's result is a message of its own.
fn say(node: &Node, messages: &mut Vec<ChatMessage>) -> Result<(), String> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    for part in &node.parts {
        match part {
            Part::Text(said) => join(&mut text, &said.text),
            // A provider takes no other's thoughts.
            Part::Reasoning { .. } => {}
            Part::ToolCall(call) => calls.push(ModelCall::from(call)),
            Part::ToolResult(result) => {
                let mut content = String::new();
                for part in &result.parts {
                    let said = part.as_text().ok_or("a tool's result is more than text")?;
                    join(&mut content, said);
                }
                messages.push(ChatMessage {
                    role: Role::Tool,
                    content,
                    calls: Vec::new(),
                    call_id: result.call_id.clone(),
                });
            }
            Part::Media(_) => return Err("it holds an image or a file".to_owned()),
            Part::Opaque { kind, .. } => return Err(format!("it holds a `{kind}`")),
        }
    }
    let is_result = node.role == Role::Tool;
    if !calls.is_empty() || !text.is_empty() || !is_result && node.role != Role::Assistant {
        let role = if is_result { Role::User } else { node.role };
        messages.push(ChatMessage { role, content: text, calls, call_id: None });
    }
    Ok(())
}

fn join(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// The body of an answer.
fn written(api: Api, model: &str, reply: &ChatReply) -> Result<Value, String> {
    let model = if reply.model.is_empty() { model } else { &reply.model };
    let hash = blake3::hash(serde_json::to_string(reply).unwrap_or_default().as_bytes());
    let id = &hash.to_hex()[..24];
    let usage = reply.usage.unwrap_or_default();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Ok(match api {
        Api::Chat => chat(id, now, model, reply, usage),
        Api::Messages => message(id, model, reply, usage)?,
        Api::Responses => response(id, now, model, reply, usage),
    })
}

fn chat(id: &str, now: u64, model: &str, reply: &ChatReply, usage: Usage) -> Value {
    let call = |call: &ModelCall| {
        let function = json!({ "name": call.name, "arguments": call.arguments });
        json!({ "id": call.id, "type": "function", "function": function })
    };
    let content = if reply.text.is_empty() && !reply.calls.is_empty() {
        Value::Null
    } else {
        reply.text.as_str().into()
    };
    let mut said = json!({ "role": "assistant", "content": content, "refusal": null });
    if !reply.calls.is_empty() {
        said["tool_calls"] = reply.calls.iter().map(call).collect();
    }
    if let Some(thought) = &reply.reasoning {
        said["reasoning_content"] = thought.as_str().into();
    }
    let finish = match reply.finish {
        Finish::Length => "length",
        Finish::Filtered => "content_filter",
        _ if !reply.calls.is_empty() => "tool_calls",
        _ => "stop",
    };
    let cached = json!({ "cached_tokens": usage.cached_prompt });
    json!({
        "id": format!("chatcmpl-{id}"), "object": "chat.completion", "created": now, "model": model,
        "choices": [{ "index": 0, "message": said, "logprobs": null, "finish_reason": finish }],
        "usage": { "prompt_tokens": usage.prompt, "completion_tokens": usage.completion,
            "total_tokens": usage.prompt.saturating_add(usage.completion), "prompt_tokens_details": cached },
    })
}

fn message(id: &str, model: &str, reply: &ChatReply, usage: Usage) -> Result<Value, String> {
    let mut content: Vec<Value> = Vec::new();
    if !reply.text.is_empty() {
        content.push(json!({ "type": "text", "text": reply.text }));
    }
    for call in &reply.calls {
        let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
        let input = serde_json::from_str::<Value>(arguments).ok().filter(Value::is_object);
        let input = input.ok_or_else(|| format!("the arguments of `{}` are no JSON object", call.name))?;
        content.push(json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input }));
    }
    let stop = match reply.finish {
        Finish::Length => "max_tokens",
        Finish::Filtered => "refusal",
        _ if !reply.calls.is_empty() => "tool_use",
        _ => "end_turn",
    };
    Ok(json!({
        "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model, "content": content,
        "stop_reason": stop, "stop_sequence": null,
        "usage": { "input_tokens": usage.prompt.saturating_sub(usage.cached_prompt),
            "cache_read_input_tokens": usage.cached_prompt, "output_tokens": usage.completion },
    }))
}

fn response(id: &str, now: u64, model: &str, reply: &ChatReply, usage: Usage) -> Value {
    let mut output: Vec<Value> = Vec::new();
    if !reply.text.is_empty() || reply.calls.is_empty() {
        let said = json!([{ "type": "output_text", "text": reply.text, "annotations": [] }]);
        output.push(json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": "completed", "content": said,
        }));
    }
    for (number, call) in reply.calls.iter().enumerate() {
        output.push(json!({
            "type": "function_call", "id": format!("fc_{id}{number}"), "call_id": call.id, "name": call.name,
            "arguments": call.arguments, "status": "completed",
        }));
    }
    let cut = reply.finish == Finish::Length;
    json!({
        "id": format!("resp_{id}"), "object": "response", "created_at": now, "model": model, "output": output,
        "status": if cut { "incomplete" } else { "completed" }, "error": null,
        "incomplete_details": if cut { json!({ "reason": "max_output_tokens" }) } else { Value::Null },
        "instructions": null, "metadata": {}, "parallel_tool_calls": true, "temperature": null, "top_p": null,
        "tool_choice": "auto", "tools": [],
        "usage": { "input_tokens": usage.prompt, "output_tokens": usage.completion,
            "total_tokens": usage.prompt.saturating_add(usage.completion),
            "input_tokens_details": { "cached_tokens": usage.cached_prompt },
            "output_tokens_details": { "reasoning_tokens": 0 } },
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use recoup::importers::recoup_proxy::Api;
    use recoup::models::{ChatReply, Finish, ModelCall, Role, Usage};
    use serde_json::json;

    use super::super::answer;
    use super::{retold, written};

    #[test]
    fn every_api_is_retold_alike() {
        let chat = json!({ "model": "m", "max_tokens": 9, "temperature": 0.5, "messages": [
            { "role": "system", "content": "Be brief." }, { "role": "user", "content": "hi" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "c", "type": "function", "function": { "name": "go", "arguments": "{\"to\":1}" } }] },
            { "role": "tool", "tool_call_id": "c", "content": "a wall" } ],
            "tools": [{ "type": "function", "function": { "name": "go", "parameters": { "type": "object" } } }] });
        let messages = json!({ "model": "m", "max_tokens": 9, "temperature": 0.5, "system": "Be brief.", "messages": [
            { "role": "user", "content": "hi" },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "c", "name": "go", "input": { "to": 1 } }] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c", "content": "a wall" }] } ],
            "tools": [{ "name": "go", "input_schema": { "type": "object" } }] });
        let responses = json!({ "model": "m", "max_output_tokens": 9, "temperature": 0.5, "instructions": "Be brief.",
            "input": [{ "role": "user", "content": "hi" },
                { "type": "function_call", "call_id": "c", "name": "go", "arguments": "{\"to\":1}" },
                { "type": "function_call_output", "call_id": "c", "output": "a wall" }],
            "tools": [{ "type": "function", "name": "go", "parameters": { "type": "object" } }] });
        let read = |api, body: &serde_json::Value| retold(api, &Bytes::from(body.to_string())).unwrap();
        let first = read(Api::Chat, &chat);
        let roles: Vec<Role> = first.messages.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::Tool]);
        assert_eq!((first.max_tokens, first.temperature, first.tools.len()), (9, 0.5, 1));
        assert_eq!(first.messages[3].call_id.as_deref(), Some("c"));
        assert_eq!(read(Api::Messages, &messages), first);
        assert_eq!(read(Api::Responses, &responses), first);
    }

    #[test]
    fn what_cannot_be_retold_is_said() {
        let image = json!({ "model": "m", "messages": [{ "role": "user", "content": [
            { "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }] }] });
        assert!(retold(Api::Chat, &Bytes::from(image.to_string())).unwrap_err().contains("image"));
    }

    #[test]
    fn an_answer_is_written_in_every_api() {
        let call =
            ModelCall { id: "c".to_owned(), name: "go".to_owned(), arguments: "{\"to\":1}".to_owned() };
        let usage = Usage { prompt: 9, cached_prompt: 4, completion: 2 };
        let reply = ChatReply {
            calls: vec![call],
            finish: Finish::Calls,
            usage: Some(usage),
            model: "wise-1".to_owned(),
            ..ChatReply::text("So.")
        };
        for api in [Api::Chat, Api::Messages, Api::Responses] {
            let body = written(api, "wise", &reply).unwrap().to_string();
            let read = answer::whole(api, body.as_bytes()).unwrap();
            let usage = read.call.usage.unwrap();
            assert_eq!((usage.input, usage.cached, usage.output), (9, 4, 2), "{api:?}");
            assert_eq!(read.call.model.as_deref(), Some("wise-1"));
            let said: Vec<&str> = read.alternatives[0].iter().map(|raw| raw.get()).collect();
            let said = said.concat();
            assert!(said.contains("So.") && said.contains("\"go\"") && said.contains("to"), "{said}");
        }
        let odd = ModelCall { id: "c".to_owned(), name: "go".to_owned(), arguments: "north".to_owned() };
        let odd = ChatReply { calls: vec![odd], ..ChatReply::text("") };
        assert!(written(Api::Messages, "wise", &odd).is_err());
    }
}
