//! A conversation as templates see it: what Hugging Face makes of messages before it renders them.
//!
//! A message's keys without a value are dropped, and its reasoning stands under every name that
//! templates read it by.

use std::borrow::Cow;

use minijinja::Value;
use serde_json::{Map, Value as Json};

use super::python::container::{dictionary, list};
use super::python::text::is_space;

/// Names of a message's reasoning: the first that has a value is the reasoning.
const REASONING: [&str; 3] = ["reasoning_content", "thinking", "reasoning"];

/// Messages and tools, in the form of chat-completion APIs.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    /// `{"role": …, "content": …, "tool_calls": …}` each; the order of keys is kept.
    pub messages: &'a [Json],
    /// Tools as `{"type": "function", "function": …}`; `None` without any.
    pub tools: Option<&'a [Json]>,
}

/// Which messages carry anchors: a character that occurs nowhere else, at both ends of each string that
/// the message's author wrote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Anchors {
    /// The first message's character; those of the others follow it.
    pub first: char,
}

impl Anchors {
    /// The character of a message.
    pub(super) fn of(self, message: usize) -> Option<char> {
        char::from_u32(u32::from(self.first).checked_add(u32::try_from(message).ok()?)?)
    }

    /// The message of a character, of so many.
    pub(super) fn message(self, c: char, count: usize) -> Option<usize> {
        let index = u32::from(c).checked_sub(u32::from(self.first))? as usize;
        (index < count).then_some(index)
    }
}

impl Conversation<'_> {
    /// The messages for the engine.
    pub(super) fn messages(&self, anchors: Option<Anchors>) -> Value {
        let message = |(index, message): (usize, &Json)| match message.as_object() {
            Some(members) => message_value(members, anchors.and_then(|anchors| anchors.of(index))),
            None => plain(message),
        };
        list(self.messages.iter().enumerate().map(message))
    }

    /// The tools for the engine; none where there are none.
    pub(super) fn tools(&self) -> Value {
        self.tools.map_or(Value::from(()), |tools| list(tools.iter().map(plain)))
    }

    /// Calls `visit` with each string of the messages and tools, keys included.
    pub(super) fn strings<'a>(&'a self, visit: &mut dyn FnMut(&'a str)) {
        for value in self.messages.iter().chain(self.tools.unwrap_or_default()) {
            each_string(value, visit);
        }
    }
}

fn each_string<'a>(value: &'a Json, visit: &mut dyn FnMut(&'a str)) {
    match value {
        Json::String(text) => visit(text),
        Json::Array(items) => items.iter().for_each(|item| each_string(item, visit)),
        Json::Object(members) => {
            for (key, value) in members {
                visit(key);
                each_string(value, visit);
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
}

fn message_value(members: &Map<String, Json>, anchor: Option<char>) -> Value {
    let reasoning = REASONING.iter().find_map(|name| members.get(*name).filter(|value| !value.is_null()));
    let reasoning = reasoning.map(|value| anchored(value, anchor));
    let mut pairs: Vec<(&str, Value)> = Vec::with_capacity(members.len() + 2);
    // Later pairs replace the values of earlier ones and keep their places, as in a Python `dict`.
    if let Some(reasoning) = &reasoning {
        pairs.push(("thinking", reasoning.clone()));
    }
    for (key, value) in members {
        let value = match key.as_str() {
            _ if value.is_null() => continue,
            "content" | "thinking" | "reasoning" => anchored(value, anchor),
            "tool_calls" => calls(value, anchor),
            _ => plain(value),
        };
        pairs.push((key, value));
    }
    if let Some(reasoning) = reasoning {
        pairs.push(("reasoning_content", reasoning));
    }
    dictionary(pairs)
}

/// Tool calls: a call's name and the strings of its arguments are its author's.
fn calls(value: &Json, anchor: Option<char>) -> Value {
    match value {
        Json::Array(items) => list(items.iter().map(|item| call(item, anchor))),
        other => plain(other),
    }
}

fn call(value: &Json, anchor: Option<char>) -> Value {
    let Some(members) = value.as_object() else { return plain(value) };
    dictionary(members.iter().map(|(key, value)| {
        let value = match key.as_str() {
            "function" => call(value, anchor),
            "name" | "arguments" => anchored(value, anchor),
            _ => plain(value),
        };
        (key.as_str(), value)
    }))
}

/// A value whose strings carry the anchor: of a content's parts only their texts.
fn anchored(value: &Json, anchor: Option<char>) -> Value {
    let Some(anchor) = anchor else { return plain(value) };
    match value {
        Json::String(text) => Value::from(with_anchor(text, anchor).as_ref()),
        Json::Array(items) => list(items.iter().map(|item| anchored(item, Some(anchor)))),
        Json::Object(members) => dictionary(members.iter().map(|(key, value)| {
            let value = if key == "type" { plain(value) } else { anchored(value, Some(anchor)) };
            (key.as_str(), value)
        })),
        other => plain(other),
    }
}

/// The text with the anchor at both ends of what is not white space, so that trimming it changes nothing.
fn with_anchor(text: &str, anchor: char) -> Cow<'_, str> {
    let start = text.len() - text.trim_start_matches(is_space).len();
    let end = text.trim_end_matches(is_space).len();
    if start >= end {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    out.push_str(&text[..start]);
    out.push(anchor);
    out.push_str(&text[start..end]);
    out.push(anchor);
    out.push_str(&text[end..]);
    Cow::Owned(out)
}

/// A JSON value for the engine.
pub(super) fn plain(value: &Json) -> Value {
    match value {
        Json::Null => Value::from(()),
        Json::Bool(value) => Value::from(*value),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Value::from(integer),
            (None, Some(integer)) => Value::from(integer),
            (None, None) => number.as_f64().map_or(Value::UNDEFINED, Value::from),
        },
        Json::String(text) => Value::from(text.as_str()),
        Json::Array(items) => list(items.iter().map(plain)),
        Json::Object(members) => dictionary(members.iter().map(|(key, value)| (key.as_str(), plain(value)))),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Anchors, Conversation};
    use crate::templates::python::repr::str_of;

    #[test]
    fn nulls_go_and_reasoning_has_every_name() {
        let messages = [json!({"role": "assistant", "content": null, "reasoning": "r", "name": "n"})];
        let conversation = Conversation { messages: &messages, tools: None };
        assert_eq!(
            str_of(&conversation.messages(None)),
            "[{'thinking': 'r', 'role': 'assistant', 'reasoning': 'r', 'name': 'n', 'reasoning_content': 'r'}]"
        );
    }

    #[test]
    fn anchors_stand_inside_white_space() {
        let messages = [
            json!({"role": "user", "content": " "}),
            json!({"role": "assistant", "content": " a\n", "tool_calls": [
                {"type": "function", "function": {"name": "f", "arguments": {"k": ["v", 1]}}}]}),
        ];
        let conversation = Conversation { messages: &messages, tools: None };
        assert_eq!(
            str_of(&conversation.messages(Some(Anchors { first: '@' }))),
            "[{'role': 'user', 'content': ' '}, {'role': 'assistant', 'content': ' AaA\\n', 'tool_calls': \
             [{'type': 'function', 'function': {'name': 'AfA', 'arguments': {'k': ['AvA', 1]}}}]}]"
        );
    }
}
