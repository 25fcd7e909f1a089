//! Chat messages in the form that chat templates read: roles system, user, assistant and tool,
//! content a string, a call's arguments an object.

use serde_json::{Map, Value, json};

use super::Refusal;
use crate::json::Json;
use crate::trajectory::{Part, Role, Tool, ToolCall, ToolResult};
use crate::views::{Example, Message};

/// The conversation of an example. A message with several tool results becomes several.
pub(super) fn chat_messages(example: &Example) -> Result<Vec<Value>, Refusal> {
    let mut chat = Chat { out: Vec::new(), open_calls: Vec::new() };
    for message in &example.context {
        match message.role {
            Role::Assistant => chat.assistant(message)?,
            role => chat.other(role, message)?,
        }
    }
    Ok(chat.out)
}

/// Offered tools as a JSON text, `null` without any.
///
/// A text, because schemas of different tools have no common columns; TRL reads it with `json.loads`.
pub(super) fn tools_text(example: &Example) -> String {
    tools(example).map_or_else(|| "null".to_owned(), |tools| Value::Array(tools).to_string())
}

/// Offered tools, as chat-completion APIs name them; `None` without any.
pub(super) fn tools(example: &Example) -> Option<Vec<Value>> {
    if example.tools.is_empty() {
        return None;
    }
    let tool = |tool: &Tool| {
        let parameters = tool
            .parameters
            .as_ref()
            .map_or_else(|| json!({"type": "object", "properties": {}}), Json::to_value);
        json!({"type": "function", "function": {
            "name": tool.name, "description": tool.description, "parameters": parameters,
        }})
    };
    Some(example.tools.iter().map(tool).collect())
}

struct Chat {
    out: Vec<Value>,
    /// Calls not answered yet, oldest first: id and tool's name.
    open_calls: Vec<(Option<String>, String)>,
}

impl Chat {
    fn assistant(&mut self, message: &Message) -> Result<(), Refusal> {
        let (mut text, mut reasoning, mut calls) = (Vec::new(), Vec::new(), Vec::new());
        // Templates write reasoning, content and calls in this order; a part before its turn would move.
        let mut furthest = 0;
        for part in &message.parts {
            let turn = match part {
                Part::Reasoning { .. } => 0,
                Part::Text(_) => 1,
                _ => 2,
            };
            if turn < furthest {
                return Err(Refusal::because("parts-out-of-order"));
            }
            furthest = turn;
            match part {
                Part::Text(part) => text.push(part.text.as_str()),
                Part::Reasoning { text, .. } => reasoning.push(text.as_str()),
                Part::ToolCall(call) => {
                    calls.push(json!({"type": "function", "function": {
                        "name": call.name, "arguments": arguments(call)?,
                    }}));
                    self.open_calls.push((call.call_id.clone(), call.name.clone()));
                }
                Part::ToolResult(_) => return Err(Refusal::because("result-in-an-assistant-message")),
                Part::Media(_) => return Err(Refusal::because("media")),
                Part::Opaque { .. } => return Err(Refusal::because("opaque-part")),
            }
        }
        let mut value = Map::new();
        value.insert("role".to_owned(), json!("assistant"));
        value.insert("content".to_owned(), json!(text.concat()));
        let reasoning = reasoning.concat();
        if !reasoning.is_empty() {
            value.insert("reasoning_content".to_owned(), json!(reasoning));
        }
        if !calls.is_empty() {
            value.insert("tool_calls".to_owned(), Value::Array(calls));
        }
        self.out.push(Value::Object(value));
        Ok(())
    }

    fn other(&mut self, role: Role, message: &Message) -> Result<(), Refusal> {
        let mut texts = Vec::new();
        for part in &message.parts {
            match part {
                Part::ToolResult(result) => {
                    let name = self.answered(result).unwrap_or_else(|| message.agent.clone());
                    let value = json!({"role": "tool", "name": name, "content": result_text(result)?});
                    self.out.push(value);
                }
                Part::Text(part) => texts.push(part.text.as_str()),
                Part::Reasoning { text, .. } => texts.push(text),
                Part::ToolCall(_) => return Err(Refusal::because("call-by-the-user")),
                Part::Media(_) => return Err(Refusal::because("media")),
                Part::Opaque { .. } => return Err(Refusal::because("opaque-part")),
            }
        }
        if texts.is_empty() {
            return Ok(());
        }
        let text = texts.concat();
        // An observation that answers no structured call reached the model as a user's message.
        let value = match (role, self.open_calls.is_empty()) {
            (Role::System, _) => plain("system", &text),
            (Role::Tool, false) => {
                let (_, name) = self.open_calls.remove(0);
                json!({"role": "tool", "name": name, "content": text})
            }
            _ => plain("user", &text),
        };
        self.out.push(value);
        Ok(())
    }

    /// Name of the call that a result answers. Ids repeat in real data, so of several open calls with
    /// its id the oldest is meant; a result without a known id answers the oldest open call.
    fn answered(&mut self, result: &ToolResult) -> Option<String> {
        let same_id = |(id, _): &(Option<String>, String)| id.is_some() && *id == result.call_id;
        let index = self.open_calls.iter().position(same_id).unwrap_or(0);
        (index < self.open_calls.len()).then(|| self.open_calls.remove(index).1)
    }
}

fn plain(role: &str, content: &str) -> Value {
    json!({"role": role, "content": content})
}

fn result_text(result: &ToolResult) -> Result<String, Refusal> {
    let mut out = String::new();
    for part in &result.parts {
        match part {
            Part::Text(part) => out.push_str(&part.text),
            Part::Media(_) => return Err(Refusal::because("media")),
            _ => return Err(Refusal::because("opaque-part")),
        }
    }
    Ok(out)
}

/// A call's arguments as an object that says exactly what the model wrote.
fn arguments(call: &ToolCall) -> Result<Value, Refusal> {
    let value = call.arguments().ok_or(Refusal::because("arguments-are-not-json"))?;
    if !value.is_object() {
        return Err(Refusal::because("arguments-are-not-an-object"));
    }
    // A duplicate key would not survive, and no reader of rows takes an integer beyond 64 bits.
    let same =
        Json::parse(&call.arguments_raw).is_ok_and(|raw| Json::from_serialize(&value).ok() == Some(raw));
    if same && has_plain_numbers(&value) {
        Ok(value)
    } else {
        Err(Refusal::because("arguments-are-not-exact-as-an-object"))
    }
}

/// Whether every number is a double or an integer of at most 64 bits.
fn has_plain_numbers(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_i64() || number.is_u64() || number.is_f64(),
        Value::Array(items) => items.iter().all(has_plain_numbers),
        Value::Object(members) => members.values().all(has_plain_numbers),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::chat_messages;
    use crate::exporters::Refusal;
    use crate::task::Task;
    use crate::trajectory::{Agent, ArgumentsForm, Node, Outcome, Part, Role, ToolCall, Trajectory};
    use crate::verdict::Side;
    use crate::views::{Example, Lineage, Message};

    fn call(name: &str) -> Part {
        Part::ToolCall(ToolCall {
            call_id: Some("same".to_owned()),
            name: name.to_owned(),
            arguments_raw: "{}".to_owned(),
            arguments_form: ArgumentsForm::Object,
        })
    }

    fn result(text: &str) -> Part {
        Part::text_result(Some("same".to_owned()), text)
    }

    /// `role name content` of each chat message.
    fn chat(run: &Trajectory) -> Result<Vec<String>, Refusal> {
        let lineage = Lineage::new("test", run, Side::Train);
        let example =
            Example::new(Message::of_branch(run, &run.main_branch()), Vec::new().into(), Vec::new(), lineage);
        let field = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
        let line = |message: serde_json::Value| {
            ["role", "name", "content"].map(|key| field(&message[key])).join(" ")
        };
        Ok(chat_messages(&example)?.into_iter().map(line).collect())
    }

    fn run(nodes: Vec<Node>) -> Trajectory {
        let mut run = Trajectory::new("test", Task::from_goal("test"));
        for node in nodes {
            run.push(node);
        }
        run.finish(Outcome::unknown());
        run
    }

    #[test]
    fn results_are_paired_by_order_where_ids_repeat() {
        let run = run(vec![
            Node::new(Role::Assistant, "assistant", vec![call("first"), call("second")]),
            Node::new(Role::User, "user", vec![result("1"), result("2"), Part::text("go on")]),
        ]);
        assert_eq!(chat(&run).unwrap(), ["assistant - ", "tool first 1", "tool second 2", "user - go on"]);
    }

    #[test]
    fn an_observation_without_a_call_is_a_users_message() {
        let mut run = run(vec![
            Node::new(Role::Assistant, "coder", vec![Part::text("```ls```")]),
            Node::new(Role::Tool, "shell", vec![Part::text("a.txt")]),
        ]);
        run.agents = vec![Agent {
            name: "coder".to_owned(),
            model: None,
            system_prompt: Some("Be brief.".to_owned()),
        }];
        assert_eq!(chat(&run).unwrap(), ["system - Be brief.", "assistant - ```ls```", "user - a.txt"]);
    }

    #[test]
    fn what_would_move_or_vanish_is_refused() {
        for (parts, reason) in [
            (vec![call("get"), Part::text("after")], "parts-out-of-order"),
            (vec![Part::Opaque { kind: "redacted_thinking".to_owned(), raw: "x".to_owned() }], "opaque-part"),
        ] {
            let run = run(vec![Node::new(Role::Assistant, "assistant", parts)]);
            assert_eq!(chat(&run).unwrap_err().reason, reason);
        }
    }
}
