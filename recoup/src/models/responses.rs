//! OpenAI's responses.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::answer::{self, Endpoint};
use super::http::Client;
use super::openai::sending;
use super::{
    ChatMessage, ChatModel, ChatReply, ChatRequest, Finish, ModelCall, ModelError, ModelIdentity, Role,
    Secret,
};

/// A model behind the responses API. Nothing is stored there.
pub struct ResponsesModel {
    identity: ModelIdentity,
    endpoint: Endpoint,
    client: Arc<Client>,
}

impl ResponsesModel {
    /// A model at the identity's base URL.
    pub fn new(identity: ModelIdentity, key: Option<Secret<String>>, client: Arc<Client>) -> Self {
        let endpoint = Endpoint::new(&identity.base_url, key);
        Self { identity, endpoint, client }
    }
}

impl ChatModel for ResponsesModel {
    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }

    fn complete(&self, request: &ChatRequest) -> Result<ChatReply, ModelError> {
        request.wants_no_given()?;
        let received =
            self.client.send(sending(&self.endpoint, "responses", &body(&self.identity.model, request)))?;
        let response: Response = answer::read(&self.endpoint.host, &received)?;
        response.into_reply(&self.endpoint.host)
    }
}

fn body(model: &str, request: &ChatRequest) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), model.into());
    body.insert("input".to_owned(), request.messages.iter().flat_map(items).collect());
    body.insert("max_output_tokens".to_owned(), request.max_tokens.into());
    body.insert("store".to_owned(), false.into());
    // Reasoning models take no temperature, and 0 is what is meant where nothing is said of it.
    if request.temperature != 0.0 {
        body.insert("temperature".to_owned(), request.temperature.into());
    }
    if let Some(schema) = &request.schema {
        let format = json!({
            "type": "json_schema", "name": schema.name, "schema": schema.in_order(), "strict": true,
        });
        body.insert("text".to_owned(), json!({ "format": format }));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(|tool| flat(tool.to_value())).collect());
    }
    Value::Object(body)
}

/// A tool without the object around its function.
fn flat(mut tool: Value) -> Value {
    match tool.get_mut("function").map(Value::take) {
        Some(Value::Object(mut function)) => {
            function.insert("type".to_owned(), "function".into());
            Value::Object(function)
        }
        _ => tool,
    }
}

/// A message as the items that stand for it.
fn items(message: &ChatMessage) -> Vec<Value> {
    if let (Role::Tool, Some(id)) = (message.role, &message.call_id) {
        return vec![json!({ "type": "function_call_output", "call_id": id, "output": message.content })];
    }
    let role = match message.role {
        Role::System => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    };
    let mut items = Vec::new();
    if !message.content.is_empty() || message.calls.is_empty() {
        items.push(json!({ "role": role, "content": message.content }));
    }
    items.extend(message.calls.iter().map(|call| {
        json!({
            "type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments,
        })
    }));
    items
}

#[derive(Deserialize)]
struct Response {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    incomplete_details: Option<Incomplete>,
    #[serde(default)]
    output: Vec<Item>,
    #[serde(default)]
    usage: Option<Value>,
}

#[derive(Deserialize)]
struct Incomplete {
    #[serde(default)]
    reason: Option<String>,
}

#[derive(Deserialize)]
struct Item {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    content: Option<Vec<Content>>,
    #[serde(default)]
    summary: Option<Vec<Content>>,
    #[serde(default)]
    call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
}

impl Response {
    fn into_reply(self, host: &str) -> Result<ChatReply, ModelError> {
        let malformed = |message: String| Err(ModelError::Malformed { host: host.to_owned(), message });
        let status = self.status.as_deref().unwrap_or_default();
        if status == "failed" {
            let said = self.error.as_ref().and_then(|error| error.get("message")).and_then(Value::as_str);
            return malformed(format!("it failed: {}", said.unwrap_or("nothing more")));
        }
        if self.output.is_empty() && status != "incomplete" {
            return malformed("it has no output".to_owned());
        }
        let mut reply = ChatReply { model: self.model.unwrap_or_default(), ..ChatReply::text("") };
        let mut reasoning = String::new();
        for item in self.output {
            match item.kind.as_str() {
                "reasoning" => {
                    reasoning.extend(item.summary.into_iter().flatten().filter_map(|part| part.text));
                }
                "function_call" => reply.calls.push(ModelCall {
                    id: item.call_id.unwrap_or_default(),
                    name: item.name.unwrap_or_default(),
                    arguments: item.arguments.unwrap_or_default(),
                }),
                _ => {
                    for part in item.content.into_iter().flatten() {
                        if let Some(refusal) = part.refusal {
                            reply.text.push_str(&refusal);
                            reply.finish = Finish::Filtered;
                        }
                        reply.text.push_str(&part.text.unwrap_or_default());
                    }
                }
            }
        }
        if !reply.calls.is_empty() {
            reply.finish = Finish::Calls;
        }
        if status == "incomplete" {
            let reason = self.incomplete_details.and_then(|details| details.reason);
            reply.finish = match reason.as_deref() {
                Some("max_output_tokens") => Finish::Length,
                Some("content_filter") => Finish::Filtered,
                _ => Finish::Other,
            };
        }
        reply.reasoning = Some(reasoning).filter(|text| !text.is_empty());
        reply.usage =
            self.usage.as_ref().and_then(|usage| answer::usage(usage, "input_tokens", "output_tokens"));
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::{Response, body};
    use crate::json::Json;
    use crate::models::{ChatMessage, ChatRequest, Finish, ModelCall, ReplySchema, Role};

    #[test]
    fn a_conversation_becomes_items() {
        let called = ChatMessage {
            calls: vec![ModelCall { id: "c".to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() }],
            ..ChatMessage::assistant("")
        };
        let result =
            ChatMessage { role: Role::Tool, call_id: Some("c".to_owned()), ..ChatMessage::user("done") };
        let schema = Json::parse(r#"{"type":"object"}"#).unwrap();
        let request = ChatRequest {
            schema: Some(ReplySchema { name: "verdict".to_owned(), schema }),
            tools: vec![Json::parse(r#"{"type":"function","function":{"name":"f"}}"#).unwrap()],
            ..ChatRequest::new(vec![ChatMessage::user("?"), called, result], 50)
        };
        let body = body("m", &request);
        assert_eq!(body["input"][1]["type"], "function_call");
        assert_eq!(body["input"][2]["output"], "done");
        assert_eq!((&body["tools"][0]["name"], &body["store"]), (&"f".into(), &false.into()));
        assert_eq!(body["text"]["format"]["name"], "verdict");
    }

    #[test]
    fn answers_are_read() {
        let read = |text: &str| serde_json::from_str::<Response>(text).unwrap().into_reply("h");
        let reply = read(
            r#"{"model":"m","status":"completed","output":[
                {"type":"reasoning","summary":[{"type":"summary_text","text":"so"}]},
                {"type":"message","content":[{"type":"output_text","text":"hi"}]}],
                "usage":{"input_tokens":9,"output_tokens":2,"input_tokens_details":{"cached_tokens":4}}}"#,
        )
        .unwrap();
        assert_eq!(
            (reply.text.as_str(), reply.finish, reply.reasoning.as_deref()),
            ("hi", Finish::Stop, Some("so"))
        );
        assert_eq!(reply.usage.unwrap().prompt, 9);
        let cut = read(
            r#"{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}"#,
        );
        assert_eq!(cut.unwrap().finish, Finish::Length);
        assert!(
            read(r#"{"status":"failed","error":{"message":"broken"}}"#)
                .unwrap_err()
                .to_string()
                .contains("broken")
        );
        assert!(read("{}").is_err());
    }
}
