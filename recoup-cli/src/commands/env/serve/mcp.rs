//! MCP: the tools of one task, as JSON-RPC 2.0 messages.
//!
//! The goal, the rules and the first observation are the server's instructions. Words to a user are the tool
//! `say`. When the episode is over, the result of the last call carries the score under `_meta`; the agent's
//! model does not see that.

use recoup::environments::{Action, EnvironmentError, Identity};
use recoup::json::Json;
use serde_json::{Map, Value, json};

use super::super::episode::Episode;

/// Versions of the protocol that begin with `initialize`, oldest first.
const VERSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The tool that says words.
const SAY: &str = "say";

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const INTERNAL_ERROR: i64 = -32603;

/// A refusal: its code and words.
type Refused = (i64, String);

/// Whether a message opens a session: a request to `initialize`.
pub(super) fn opens(message: &str) -> bool {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    message.get("method").is_some_and(|method| method == "initialize") && message.get("id").is_some_and(is_id)
}

/// The refusal of a message before any session; `None` where it wants no answer. Newer clients first ask for
/// `server/discover`, and fall back to `initialize` on being told that there is no such method.
pub(super) fn unopened(message: &str) -> Option<Value> {
    let message: Value = serde_json::from_str(message).unwrap_or_default();
    let id = message.get("id").filter(|id| is_id(id))?;
    Some(refused(id, &(METHOD_NOT_FOUND, "a session begins with initialize".to_owned())))
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

/// Answers a message; `None` where it wants no answer.
pub(super) fn answer(identity: &Identity, episode: &mut Episode, message: &str) -> Option<Value> {
    let message = match serde_json::from_str::<Value>(message) {
        Ok(Value::Object(message)) => message,
        Ok(_) => {
            return Some(refused(
                &Value::Null,
                &(INVALID_REQUEST, "a message is one JSON object".to_owned()),
            ));
        }
        Err(error) => return Some(refused(&Value::Null, &(PARSE_ERROR, error.to_string()))),
    };
    let method = message.get("method").and_then(Value::as_str);
    // Without an id it is a notification; without a method the answer to a request, and this server makes none.
    let id = message.get("id").filter(|id| is_id(id));
    let (Some(id), Some(method)) = (id, method) else { return None };
    let none = Map::new();
    let params = message.get("params").and_then(Value::as_object).unwrap_or(&none);
    Some(match result(identity, episode, method, params) {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(why) => refused(id, &why),
    })
}

fn refused(id: &Value, (code, message): &Refused) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

fn result(
    identity: &Identity,
    episode: &mut Episode,
    method: &str,
    params: &Map<String, Value>,
) -> Result<Value, Refused> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": version(params.get("protocolVersion")),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": identity.manifest.name, "version": identity.version() },
            "instructions": instructions(identity, episode),
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools(episode) })),
        "tools/call" => call(episode, params),
        other => Err((METHOD_NOT_FOUND, format!("there is no method {}", Json::string(other).as_str()))),
    }
}

/// The version asked for where it is known, else the latest.
fn version(asked: Option<&Value>) -> &'static str {
    let asked = asked.and_then(Value::as_str).unwrap_or_default();
    VERSIONS.into_iter().rev().find(|known| *known == asked).unwrap_or(VERSIONS[VERSIONS.len() - 1])
}

fn instructions(identity: &Identity, episode: &Episode) -> String {
    let task = episode.task();
    let mut text = format!("{}\n\n{}", task.goal, episode.observation());
    if let Some(policy) = &identity.policy {
        text.push_str("\n\n");
        text.push_str(policy);
    }
    text
}

fn tools(episode: &Episode) -> Vec<Value> {
    let mut tools: Vec<Value> = episode
        .tools()
        .iter()
        .map(|tool| {
            json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.schema.to_value(),
                "annotations": { "readOnlyHint": tool.only_looks(), "openWorldHint": false },
            })
        })
        .collect();
    if !has_tool(episode, SAY) {
        tools.push(json!({
            "name": SAY,
            "description": "Says something to the user; where nobody is there to answer, that ends the task.",
            "inputSchema": {
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
            },
        }));
    }
    tools
}

fn has_tool(episode: &Episode, name: &str) -> bool {
    episode.tools().iter().any(|tool| tool.name == name)
}

fn call(episode: &mut Episode, params: &Map<String, Value>) -> Result<Value, Refused> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| (INVALID_PARAMS, "`name` is missing".to_owned()))?;
    let arguments = match params.get("arguments") {
        None | Some(Value::Null) => json!({}),
        Some(arguments) => arguments.clone(),
    };
    let action = if name == SAY && !has_tool(episode, SAY) {
        let text = arguments.get("text").and_then(Value::as_str);
        Action::say(text.ok_or_else(|| (INVALID_PARAMS, "`text` is missing".to_owned()))?)
    } else {
        Action::call(name, Json::from_foreign(&arguments.to_string()))
    };
    let broken = |error: EnvironmentError| (INTERNAL_ERROR, error.to_string());
    let step = episode.act(action).map_err(broken)?;
    let mut result = json!({
        "content": [{ "type": "text", "text": step.observation }],
        "isError": step.is_error,
    });
    if episode.over().is_some() {
        let score = episode.score().map_err(broken)?;
        result["_meta"] =
            json!({ "recoup/done": true, "recoup/success": score.success, "recoup/score": score.score });
    }
    Ok(result)
}
