//! A message of tau2: the agent's, the simulated user's, or one or several answers of tools.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::value::RawValue;

use crate::importers::RecordError;
use crate::importers::object::{
    Object, boolean, elements, is_array, is_object, json_object, missing, number, text, unknown_role,
};
use crate::importers::openai_chat::function;
use crate::json::Json;
use crate::trajectory::{Call, Node, Part, Role, ToolResult, Trajectory, Usage};
use crate::warning::Loss;

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
    let word = message.take_text("role").ok_or_else(|| missing("role"))?;
    let mut node = match &*word {
        "tool" => Node::new(Role::Tool, Role::Tool.as_str(), results(&mut message)?),
        "assistant" | "user" | "system" => spoken(&word, &mut message)?,
        _ => return Err(unknown_role("role", &word)),
    };
    node.occurrence.at = message.take_text("timestamp").map(Cow::into_owned);
    node.occurrence.call = call(&mut message, losses).map(Box::new);
    // An agent's opening that no model was asked for is the harness's greeting.
    let greeting = first && node.occurrence.call.as_ref().is_none_or(|call| call.usage.is_none());
    node.occurrence.sampled = node.role == Role::Assistant && !greeting;
    let mut rest = message.rest();
    if node.role == Role::Tool && rest.get("requestor").is_some_and(|who| who.as_str() == "\"assistant\"") {
        rest.remove("requestor");
    }
    node.occurrence.extra = (!rest.is_empty()).then(|| json_object(rest));
    Ok(node)
}

/// What an agent or a user says and calls. A call that the user asked for makes it the user's.
fn spoken(word: &str, message: &mut Object<'_>) -> Result<Node, RecordError> {
    let mut role = match word {
        "assistant" => Role::Assistant,
        "user" => Role::User,
        _ => Role::System,
    };
    let mut parts: Vec<Part> = Vec::new();
    if let Some(reasoning) = message.take_text("reasoning_content") {
        parts.push(Part::Reasoning { text: reasoning.into_owned(), signature: None });
    }
    parts.extend(message.take_text("content").map(Part::text));
    let calls = message.take_if("tool_calls", is_array);
    for raw in calls.map(|raw| elements(raw, "tool_calls")).transpose()?.unwrap_or_default() {
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
    let id = call.take_text("id").filter(|id| !id.is_empty()).map(Cow::into_owned);
    let by_user = call.take_text("requestor").is_some_and(|who| who == "user");
    Ok((Part::ToolCall(function(&mut call, id)?), by_user))
}

/// The answers in a message: one, or the several of a `tool_messages` list.
fn results(message: &mut Object<'_>) -> Result<Vec<Part>, RecordError> {
    match message.take_if("tool_messages", is_array) {
        None => Ok(vec![result(message)]),
        Some(raw) => elements(raw, "tool_messages")?
            .into_iter()
            .map(|raw| Ok(result(&mut Object::parse(raw, "tool_messages[]")?)))
            .collect(),
    }
}

/// One answer of a tool.
pub(super) fn result(message: &mut Object<'_>) -> Part {
    let call_id = message.take_text("id").filter(|id| !id.is_empty()).map(Cow::into_owned);
    let content = message.take("content");
    let text = content.map(|raw| text(raw).unwrap_or(Cow::Borrowed(raw.get())));
    let is_error = message.take_if("error", |raw| boolean(raw).is_some()).and_then(boolean);
    let parts = text.map(Part::text).into_iter().collect();
    Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code: None })
}

/// Cost, tokens and model of the call behind a message.
fn call(message: &mut Object<'_>, losses: &mut BTreeSet<Loss>) -> Option<Call> {
    let cost = message.take_if("cost", |raw| number(raw).is_some()).and_then(number);
    let usage = message.take_if("usage", is_object).and_then(|raw| {
        let mut usage = Object::parse(raw, "usage").ok()?;
        let mut tokens = |key| usage.take_integer(key).and_then(|tokens| u64::try_from(tokens).ok());
        Some(Usage {
            input: tokens("prompt_tokens")?,
            output: tokens("completion_tokens")?,
            ..Usage::default()
        })
    });
    let model = message.take_if("raw_data", is_object).and_then(|raw| {
        let field = "messages[].raw_data";
        losses.insert(Loss::new(super::FORMAT, field, "the provider's own copy of the message"));
        Object::parse(raw, "raw_data").ok()?.take_text("model").map(Cow::into_owned)
    });
    if cost.is_none() && usage.is_none() && model.is_none() {
        return None;
    }
    Some(Call { model, usage, cost, ..Call::default() })
}

/// The requestor, as an extra of a user's tool results.
pub(super) fn requested_by_user() -> Json {
    json_object([("requestor", Json::string("user"))])
}
