//! Chat messages in the form that chat templates read: roles system, user, assistant and tool,
//! content a string, a call's arguments an object.
//!
//! Every call has an id, and every result names its call's: templates look up by it whose result they print. Runs
//! draw theirs at random and use some again, so a row's are counted: `call_1` and so on.

use serde_json::{Map, Value, json};

use super::Refusal;
use crate::json::Json;
use crate::trajectory::{Part, Role, Tool, ToolCall, ToolResult};
use crate::views::{Example, Message};

/// The conversation of an example, as chat templates read it. A message with several tool results becomes several.
pub(super) fn chat_messages(example: &Example) -> Result<Vec<Value>, Refusal> {
    messages(example, false)
}

/// The same with the arguments of calls as the text that the model wrote, not an object.
pub(super) fn chat_messages_with_text(example: &Example) -> Result<Vec<Value>, Refusal> {
    messages(example, true)
}

fn messages(example: &Example, arguments_as_text: bool) -> Result<Vec<Value>, Refusal> {
    let mut chat = Chat { arguments_as_text, out: Vec::new(), open_calls: Vec::new(), calls: 0 };
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
    arguments_as_text: bool,
    out: Vec<Value>,
    /// Calls not answered yet, oldest first.
    open_calls: Vec<OpenCall>,
    /// Calls so far.
    calls: usize,
}

struct OpenCall {
    /// Its id in the run.
    id: Option<String>,
    /// Its id in what is written.
    written_id: String,
    /// The tool's name.
    name: String,
}

impl OpenCall {
    /// The message of its result.
    fn answered_by(&self, text: &str) -> Value {
        json!({"role": "tool", "tool_call_id": self.written_id, "name": self.name, "content": text})
    }
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
                    calls.push(self.call(call)?);
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

    fn call(&mut self, call: &ToolCall) -> Result<Value, Refusal> {
        let arguments = if self.arguments_as_text { arguments_text(call)?.into() } else { arguments(call)? };
        let mut value = Map::new();
        self.calls += 1;
        let written_id = format!("call_{}", self.calls);
        // Which of two open calls with one id a result answers is not known.
        if call.call_id.is_some() && self.open_calls.iter().any(|open| open.id == call.call_id) {
            return Err(Refusal::because("colliding-call-ids"));
        }
        value.insert("id".to_owned(), json!(written_id));
        self.open_calls.push(OpenCall { id: call.call_id.clone(), written_id, name: call.name.clone() });
        value.insert("type".to_owned(), json!("function"));
        value.insert("function".to_owned(), json!({"name": call.name, "arguments": arguments}));
        Ok(Value::Object(value))
    }

    fn other(&mut self, role: Role, message: &Message) -> Result<(), Refusal> {
        let mut texts = Vec::new();
        for part in &message.parts {
            match part {
                Part::ToolResult(result) => {
                    let call = self.answered(result).ok_or(Refusal::because("result-without-a-call"))?;
                    self.out.push(call.answered_by(&result_text(result)?));
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
            (Role::Tool, false) => self.open_calls.remove(0).answered_by(&text),
            _ => plain("user", &text),
        };
        self.out.push(value);
        Ok(())
    }

    /// The call that a result answers; one without a known id answers the oldest open call.
    fn answered(&mut self, result: &ToolResult) -> Option<OpenCall> {
        let same_id = |call: &OpenCall| call.id.is_some() && call.id == result.call_id;
        let index = self.open_calls.iter().position(same_id).unwrap_or(0);
        (index < self.open_calls.len()).then(|| self.open_calls.remove(index))
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

/// A call's arguments as the model wrote them, where they are a JSON object.
fn arguments_text(call: &ToolCall) -> Result<&str, Refusal> {
    let value = call.arguments().ok_or(Refusal::because("arguments-are-not-json"))?;
    if value.is_object() {
        Ok(&call.arguments_raw)
    } else {
        Err(Refusal::because("arguments-are-not-an-object"))
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

/// Shapes of messages in the form that chat templates read, and of their parts.
pub(super) mod shapes {
    use super::super::shape::{Key, Shape, key, optional};

    /// Who speaks.
    pub(in super::super) const ROLE: Key = key("role", Shape::Word(&["system", "user", "assistant", "tool"]));
    /// What is said.
    pub(in super::super) const CONTENT: Key = key("content", Shape::Text);
    /// The tool that answers.
    pub(in super::super) const NAME: Key = optional("name", Shape::Text);
    /// Reasoning.
    pub(in super::super) const REASONING: Key = optional("reasoning_content", Shape::Text);
    /// What the first row says so that `datasets` keeps messages as JSON (docs/decisions/0002-trl-rows.md).
    pub(in super::super) const TRAIN: Key = optional("train", Shape::Flag);
    /// The call that a tool answers.
    pub(in super::super) const TOOL_CALL_ID: Key = optional("tool_call_id", Shape::Text);
    /// Calls with their arguments as an object, each with its id.
    pub(in super::super) const CALLS: Key = optional(
        "tool_calls",
        Shape::List(&Shape::Object(&[
            key("id", Shape::Text),
            key("type", Shape::Word(&["function"])),
            key("function", Shape::Object(&[key("name", Shape::Text), key("arguments", Shape::Map)])),
        ])),
    );
    /// The same with their arguments as the text that the model wrote.
    pub(in super::super) const CALLS_WITH_TEXT: Key = optional(
        "tool_calls",
        Shape::List(&Shape::Object(&[
            key("id", Shape::Text),
            key("type", Shape::Word(&["function"])),
            key("function", Shape::Object(&[key("name", Shape::Text), key("arguments", Shape::Text)])),
        ])),
    );
    /// A conversation.
    pub(in super::super) const MESSAGES: Shape =
        Shape::List(&Shape::Object(&[ROLE, CONTENT, NAME, TOOL_CALL_ID, REASONING, CALLS, TRAIN]));
    /// One message of the assistant.
    pub(in super::super) const ANSWER: Shape = Shape::List(&Shape::Object(&[
        key("role", Shape::Word(&["assistant"])),
        CONTENT,
        REASONING,
        CALLS,
        TRAIN,
    ]));
    /// Offered tools, as chat-completion APIs name them.
    pub(in super::super) const TOOLS: Shape = Shape::List(&Shape::Object(&[
        key("type", Shape::Word(&["function"])),
        key(
            "function",
            Shape::Object(&[
                key("name", Shape::Text),
                key("description", Shape::Text),
                key("parameters", Shape::Map),
            ]),
        ),
    ]));
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
        named(name, Some("same"))
    }

    fn named(name: &str, id: Option<&str>) -> Part {
        Part::ToolCall(ToolCall {
            call_id: id.map(str::to_owned),
            name: name.to_owned(),
            arguments_raw: "{}".to_owned(),
            arguments_form: ArgumentsForm::Object,
        })
    }

    fn result(text: &str) -> Part {
        Part::text_result(Some("same".to_owned()), text)
    }

    fn example(run: &Trajectory) -> Example {
        let lineage = Lineage::new("test", run, Side::Train);
        Example::new(Message::of_branch(run, &run.main_branch()), Vec::new().into(), Vec::new(), lineage)
    }

    /// `role name content` of each chat message.
    fn chat(run: &Trajectory) -> Result<Vec<String>, Refusal> {
        let field = |value: &serde_json::Value| value.as_str().unwrap_or("-").to_owned();
        let line = |message: serde_json::Value| {
            ["role", "name", "content"].map(|key| field(&message[key])).join(" ")
        };
        Ok(chat_messages(&example(run))?.into_iter().map(line).collect())
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
    fn results_are_paired_by_order_where_there_are_no_ids() {
        let result = |text| Part::text_result(None, text);
        let run = run(vec![
            Node::new(Role::Assistant, "assistant", vec![named("first", None), named("second", None)]),
            Node::new(Role::User, "user", vec![result("1"), result("2"), Part::text("go on")]),
        ]);
        assert_eq!(ids(&run).unwrap(), ["call_1", "call_2", "call_1", "call_2"]);
        assert_eq!(chat(&run).unwrap(), ["assistant - ", "tool first 1", "tool second 2", "user - go on"]);
    }

    /// The id of each call, and what each result names.
    fn ids(run: &Trajectory) -> Result<Vec<String>, Refusal> {
        let mut ids = Vec::new();
        for message in chat_messages(&example(run))? {
            let calls = message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]);
            let named = calls.chain(message.get("tool_call_id"));
            ids.extend(named.map(|id| id.as_str().unwrap_or_default().to_owned()));
        }
        Ok(ids)
    }

    #[test]
    fn calls_are_counted_and_of_two_open_ones_with_one_id_no_result_is_known() {
        let turn = |name, text| {
            [
                Node::new(Role::Assistant, "assistant", vec![call(name)]),
                Node::new(Role::Tool, name, vec![result(text)]),
            ]
        };
        let one_by_one = run([turn("first", "1"), turn("second", "2")].concat());
        assert_eq!(ids(&one_by_one).unwrap(), ["call_1", "call_1", "call_2", "call_2"]);
        let at_once = run(vec![Node::new(Role::Assistant, "assistant", vec![call("first"), call("second")])]);
        assert_eq!(ids(&at_once).unwrap_err().reason, "colliding-call-ids");
        let unasked = run(vec![Node::new(Role::Tool, "get", vec![result("1")])]);
        assert_eq!(ids(&unasked).unwrap_err().reason, "result-without-a-call");
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
