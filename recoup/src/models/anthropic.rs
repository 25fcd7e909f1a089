//! Anthropic's messages.
//!
//! An answer with a schema is asked for as the call of a tool that has the schema and must be called.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::answer::{self, Endpoint};
use super::http::{ANSWER_MAX, Client, JSON, Sending};
use super::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, Finish, ModelCall, ModelError, ModelIdentity, Role,
    Secret, Usage,
};

/// The version of the API that is spoken.
const VERSION: &str = "2023-06-01";

/// A model behind the messages API.
pub struct AnthropicModel {
    identity: ModelIdentity,
    endpoint: Endpoint,
    client: Arc<Client>,
}

impl AnthropicModel {
    /// A model at the identity's base URL.
    pub fn new(identity: ModelIdentity, key: Option<Secret<String>>, client: Arc<Client>) -> Self {
        let endpoint = Endpoint::new(&identity.base_url, key);
        Self { identity, endpoint, client }
    }
}

impl ChatModel for AnthropicModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        request.wants_no_given()?;
        let Endpoint { host, base_url, key } = &self.endpoint;
        let mut headers = vec![("anthropic-version", Secret::new(VERSION.to_owned()))];
        headers.extend(key.clone().map(|key| ("x-api-key", key)));
        let received = self.client.send(Sending {
            host: host.clone(),
            url: format!("{base_url}/messages"),
            headers,
            content_type: JSON.to_owned(),
            body: Some(body(&self.identity.model, request).to_string().into_bytes()),
            answer_max: ANSWER_MAX,
        })?;
        let answer: Answer = answer::read(host, &received)?;
        answer.into_reply(host, request)
    }
}

fn body(model: &str, request: &ChatRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("max_tokens".to_owned(), request.max_tokens.into());
    body.insert("temperature".to_owned(), request.temperature.into());
    let (system, rest): (Vec<&ChatMessage>, Vec<&ChatMessage>) =
        request.messages.iter().partition(|message| message.role == Role::System);
    if !system.is_empty() {
        let texts: Vec<&str> = system.iter().map(|message| message.content.as_str()).collect();
        body.insert("system".to_owned(), texts.join("\n\n").into());
    }
    body.insert("messages".to_owned(), rest.into_iter().map(message).collect());
    let mut tools: Vec<Value> = request.tools.iter().map(|tool| tool_of(&tool.to_value())).collect();
    if let Some(schema) = &request.schema {
        tools.push(json!({
            "name": schema.name, "description": "Takes the answer.", "input_schema": schema.in_order(),
        }));
        body.insert("tool_choice".to_owned(), json!({ "type": "tool", "name": schema.name }));
    }
    if !tools.is_empty() {
        body.insert("tools".to_owned(), tools.into());
    }
    Value::Object(body)
}

/// A tool in OpenAI's form, in Anthropic's.
fn tool_of(tool: &Value) -> Value {
    let function = tool.get("function").unwrap_or(tool);
    let schema = function.get("parameters").cloned().unwrap_or_else(|| json!({ "type": "object" }));
    json!({
        "name": function["name"],
        "description": function.get("description").and_then(Value::as_str).unwrap_or_default(),
        "input_schema": schema,
    })
}

fn message(message: &ChatMessage) -> Value {
    if let (Role::Tool, Some(id)) = (message.role, &message.call_id) {
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": message.content });
        return json!({ "role": "user", "content": [result] });
    }
    let role = if message.role == Role::Assistant { "assistant" } else { "user" };
    let mut content = Vec::new();
    // The API takes no empty text.
    if !message.content.is_empty() {
        content.push(json!({ "type": "text", "text": message.content }));
    }
    content.extend(message.calls.iter().map(|call| {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or_else(|_| json!({}));
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
    }));
    json!({ "role": role, "content": content })
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    content: Option<Vec<Block>>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    input: Option<Box<RawValue>>,
}

impl Answer {
    fn into_reply(self, host: &str, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        let Some(blocks) = self.content else {
            let message = "it has no content".to_owned();
            return Err(ModelError::Malformed { host: host.to_owned(), message });
        };
        let mut reply = ChatReply { model: self.model.unwrap_or_default(), ..ChatReply::text("") };
        reply.finish = match self.stop_reason.as_deref() {
            Some("end_turn" | "stop_sequence") => Finish::Stop,
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("tool_use") => Finish::Calls,
            Some("refusal") => Finish::Filtered,
            _ => Finish::Other,
        };
        let asked = request.schema.as_ref().map(|schema| schema.name.as_str());
        let mut reasoning = String::new();
        for block in blocks {
            let input = block.input.as_ref().map_or("{}", |input| input.get());
            match block.kind.as_str() {
                "tool_use" if block.name.as_deref() == asked => {
                    input.clone_into(&mut reply.text);
                    if reply.finish == Finish::Calls {
                        reply.finish = Finish::Stop;
                    }
                }
                "tool_use" => reply.calls.push(ModelCall {
                    id: block.id.unwrap_or_default(),
                    name: block.name.unwrap_or_default(),
                    arguments: input.to_owned(),
                }),
                "thinking" => reasoning.push_str(&block.thinking.unwrap_or_default()),
                _ => reply.text.push_str(&block.text.unwrap_or_default()),
            }
        }
        reply.reasoning = Some(reasoning).filter(|text| !text.is_empty());
        reply.usage = self.usage.as_ref().and_then(|usage| {
            let read = answer::count(usage, "cache_read_input_tokens").unwrap_or(0);
            let written = answer::count(usage, "cache_creation_input_tokens").unwrap_or(0);
            Some(Usage {
                prompt: answer::count(usage, "input_tokens")?.saturating_add(read).saturating_add(written),
                cached_prompt: read,
                completion: answer::count(usage, "output_tokens")?,
            })
        });
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, body};
    use crate::json::Json;
    use crate::models::{ChatMessage, ChatRequest, Finish, ReplySchema, Role};

    fn request() -> ChatRequest {
        let schema = Json::parse(r#"{"type":"object"}"#).unwrap();
        let result =
            ChatMessage { role: Role::Tool, call_id: Some("c".to_owned()), ..ChatMessage::user("done") };
        ChatRequest {
            schema: Some(ReplySchema { name: "verdict".to_owned(), schema }),
            ..ChatRequest::new(
                vec![ChatMessage::system("a"), ChatMessage::system("b"), ChatMessage::user("?"), result],
                50,
            )
        }
    }

    #[test]
    fn a_schema_is_a_tool_that_must_be_called() {
        let body = body("m", &request());
        assert_eq!((&body["system"], &body["tool_choice"]["name"]), (&"a\n\nb".into(), &"verdict".into()));
        assert_eq!(body["messages"][1]["content"][0]["tool_use_id"], "c");
        let read = |text: &str| serde_json::from_str::<Answer>(text).unwrap().into_reply("h", &request());
        let reply = read(
            r#"{"model":"m","content":[{"type":"thinking","thinking":"so"},
                {"type":"tool_use","id":"t","name":"verdict","input":{"step": 12345678901234567890123}}],
                "stop_reason":"tool_use",
                "usage":{"input_tokens":3,"output_tokens":2,"cache_read_input_tokens":4,"cache_creation_input_tokens":5}}"#,
        )
        .unwrap();
        assert_eq!(reply.text, r#"{"step": 12345678901234567890123}"#);
        assert_eq!((reply.finish, reply.reasoning.as_deref()), (Finish::Stop, Some("so")));
        let usage = reply.usage.unwrap();
        assert_eq!((usage.prompt, usage.cached_prompt, usage.completion), (12, 4, 2));
        let cut = read(r#"{"content":[{"type":"text","text":"hal"}],"stop_reason":"max_tokens"}"#).unwrap();
        assert_eq!((cut.text.as_str(), cut.finish, cut.usage), ("hal", Finish::Length, None));
        assert!(read("{}").is_err());
    }
}
