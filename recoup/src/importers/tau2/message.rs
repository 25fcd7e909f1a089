//! A message of tau2: the agent's, the simulated user's, or one or several answers of tools.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::function_call::function;
use crate::importers::object::{Object, missing, unknown_role};
use crate::importers::value::{is_object, json_object, text_or_source};
use crate::json::Json;
use crate::trajectory::{Call, Node, Part, Role, ToolResult, Trajectory, Usage};
use crate::warning::Loss;

/// Where a message holds the answers of several tools.
const SEVERAL: &str = "tool_messages";

/// Appends a message to a run that is a line.
pub(super) fn push(
    raw: &RawValue,
    run: &mut Trajectory,
    losses: &mut BTreeSet<Loss>,
) -> Result<(), RecordError> {
    let index = run.nodes.len();
    let node = message(raw, index == 0, losses)
        .map_err(|error| RecordError::new(error.code, format!("messages[{index}]: {error}")))?;
    run.push(node);
    Ok(())
}

fn message(raw: &RawValue, first: bool, losses: &mut BTreeSet<Loss>) -> Result<Node, RecordError> {
    let mut message = Object::parse(raw, "message")?;
    let word = message.text("role").ok_or_else(|| missing("role"))?;
    let mut node = match &*word {
        "tool" => results(&mut message)?,
        "assistant" | "user" | "system" => spoken(&word, &mut message)?,
        _ => return Err(unknown_role("role", &word)),
    };
    node.occurrence.at = message.text("timestamp").or(node.occurrence.at);
    node.occurrence.call = call(&mut message, losses).map(Box::new);
    // An agent's opening that no model was asked for is the harness's greeting.
    let greeting = first && node.occurrence.call.as_ref().is_none_or(|call| call.usage.is_none());
    node.occurrence.sampled = node.role == Role::Assistant && !greeting;
    let mut rest = message.rest();
    if node.role == Role::Tool {
        leave_out_agent(&mut rest);
    }
    rest.extend(node.occurrence.extra.take().map(|each| (SEVERAL.to_owned(), each)));
    node.occurrence.extra = json_object(rest);
    Ok(node)
}

/// Leaves out who asked for a result where it was the agent, as for most.
fn leave_out_agent(rest: &mut BTreeMap<String, Json>) {
    if rest.get("requestor").is_some_and(|who| who.as_str() == "\"assistant\"") {
        rest.remove("requestor");
    }
}

/// What an agent or a user says and calls. A call that the user asked for makes it the user's.
fn spoken(word: &str, message: &mut Object<'_>) -> Result<Node, RecordError> {
    let mut role = match word {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        _ => Role::System,
    };
    let mut parts: Vec<Part> = Vec::new();
    if let Some(reasoning) = message.text("reasoning_content") {
        parts.push(Part::Reasoning { text: reasoning, signature: None });
    }
    parts.extend(message.text("content").map(Part::text));
    for raw in message.list("tool_calls").unwrap_or_default() {
        let (part, by_user) = called(raw)?;
        parts.push(part);
        if by_user {
            role = Role::User;
        }
    }
    Ok(Node::new(role, role.as_str(), parts))
}

/// A call, and whether the user made it.
pub(super) fn called(raw: &RawValue) -> Result<(Part, bool), RecordError> {
    let mut call = Object::parse(raw, "tool_calls[]")?;
    let id = call.text("id").filter(|id| !id.is_empty());
    let by_user = call.text("requestor").is_some_and(|who| who == "user");
    let call = function(&mut call, id).ok_or_else(|| missing("tool_calls[].name"))?;
    Ok((Part::ToolCall(call), by_user))
}

/// The answers in a message: one, or several in a list, of which each has members of its own: the node's
/// extra, and its time is the first one's.
fn results(message: &mut Object<'_>) -> Result<Node, RecordError> {
    let tool = |parts| Node::new(Role::Tool, Role::Tool.as_str(), parts);
    let Some(answers) = message.list(SEVERAL) else { return Ok(tool(vec![result(message)])) };
    let (mut node, mut each) = (tool(Vec::new()), Vec::new());
    for raw in answers {
        let mut answer = Object::parse(raw, "tool_messages[]")?;
        answer.take("role");
        node.parts.push(result(&mut answer));
        if each.is_empty() {
            node.occurrence.at = answer.text("timestamp");
        }
        let mut rest = answer.rest();
        leave_out_agent(&mut rest);
        each.push(rest);
    }
    if each.iter().any(|rest| !rest.is_empty()) {
        node.occurrence.extra = Json::from_serialize(&each).ok();
    }
    Ok(node)
}

/// One answer of a tool.
pub(super) fn result(message: &mut Object<'_>) -> Part {
    let call_id = message.text("id").filter(|id| !id.is_empty());
    let parts = message.take("content").map(text_or_source).map(Part::text).into_iter().collect();
    let is_error = message.read("error");
    Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code: None })
}

/// Cost, tokens and model of the call behind a message.
fn call(message: &mut Object<'_>, losses: &mut BTreeSet<Loss>) -> Option<Call> {
    let cost = message.read("cost");
    let mut tokens = message.object("usage");
    let usage = tokens.read("prompt_tokens").zip(tokens.read("completion_tokens"));
    let usage = usage.map(|(input, output)| Usage { input, output, ..Usage::default() });
    let model = message.take_if("raw_data", is_object).and_then(|raw| {
        let field = "messages[].raw_data";
        losses.insert(Loss::new(super::FORMAT, field, "the provider's own copy of the message"));
        Object::of(raw)?.text("model")
    });
    if cost.is_none() && usage.is_none() && model.is_none() {
        return None;
    }
    Some(Call { model, usage, cost, ..Call::default() })
}

/// The requestor, as an extra of a user's tool results.
pub(super) fn requested_by_user() -> Option<Json> {
    json_object([("requestor", Json::string("user"))])
}
