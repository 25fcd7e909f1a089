//! Llama JSON: the whole message is an object of name and parameters, several with semicolons between, as Llama 3.1
//! and 3.2 were trained on. There are no words beside a call.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::hermes::object_call;
use super::{Form, NoPlace, ToolTypes, Written, offered, words};
use crate::models::ChatMessage;
use crate::trajectory::Tool;
use crate::verdict::{CallAst, TurnAst};

const TAG: &str = "<|python_tag|>";

/// See the module.
pub struct Llama;

/// A call as the form writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    name: String,
    #[serde(borrow)]
    parameters: &'a RawValue,
}

impl Form for Llama {
    fn name(&self) -> &'static str {
        "llama-json"
    }

    fn instructions(&self, tools: &[Tool]) -> Option<String> {
        Some(format!(
            "You have access to the following functions. To call a function, respond with JSON for a function call in \
             the format {{\"name\": function name, \"parameters\": dictionary of argument name and its value}}, and \
             with nothing else. Do not use variables.\n\n{}",
            offered(tools)
        ))
    }

    fn write(&self, turn: &TurnAst, _: usize) -> Result<Written, NoPlace> {
        if turn.calls.is_empty() {
            return Ok(Written { content: turn.text.clone(), calls: Vec::new() });
        }
        if !turn.text.is_empty() {
            return Err(NoPlace::WordsBesideCall(self.name()));
        }
        let call = |call: &CallAst| {
            let (name, parameters) = (Value::from(call.name.as_str()), call.arguments.as_str());
            format!("{{\"name\": {name}, \"parameters\": {parameters}}}")
        };
        let calls: Vec<String> = turn.calls.iter().map(call).collect();
        Ok(Written { content: calls.join("; "), calls: Vec::new() })
    }

    fn strict(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        let mut rest = written.content.trim_start();
        let tagged = rest.strip_prefix(TAG);
        if tagged.is_none() && !rest.starts_with('{') {
            return words(&written.content);
        }
        rest = tagged.unwrap_or(rest);
        let mut calls = Vec::new();
        loop {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Call<'_>>();
            let call = values.next().ok_or("a call is empty")?.map_err(|error| error.to_string())?;
            calls.push(CallAst::read(&call.name, call.parameters.get()).map_err(|error| error.to_string())?);
            rest = rest[values.byte_offset()..].trim_start();
            match rest.strip_prefix(';') {
                Some(more) => rest = more,
                None if rest.is_empty() => return Ok(TurnAst { text: String::new(), calls }),
                None => return Err("something stands behind the calls".to_owned()),
            }
        }
    }

    fn lenient(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        let text = written.content.trim();
        let object = text.find('{').map_or("", |at| &text[at..]);
        match object_call(object) {
            Some(call) => Ok(TurnAst { text: String::new(), calls: vec![call] }),
            None if text.starts_with(['{', '<']) => {
                Err("a call is no object with a name and parameters".to_owned())
            }
            None => words(text),
        }
    }

    fn result(&self, _: &str, text: &str) -> ChatMessage {
        ChatMessage::user(text)
    }
}

#[cfg(test)]
mod tests {
    use super::Llama;
    use crate::interleaving::Reading;
    use crate::rollout::forms::{ToolTypes, Written, read};
    use crate::verdict::CallAst;

    #[test]
    fn the_message_is_the_call() {
        let go = CallAst::read("go", r#"{"n":1}"#).unwrap();
        for (content, how, calls) in [
            (r#"{"name": "go", "parameters": {"n": 1}}"#, Reading::Strict, 1),
            (
                r#"<|python_tag|>{"name": "go", "parameters": {"n": 1}}; {"name": "go", "parameters": {"n": 1}}"#,
                Reading::Strict,
                2,
            ),
            (r#"I will go: {"name": "go", "arguments": {"n": 1}}"#, Reading::Strict, 0),
            (r#"{"name": "go", "arguments": {"n": 1}}"#, Reading::Lenient, 1),
            (r#"{"type": "function", "name": "go", "parameters": {"n": 1}}"#, Reading::Lenient, 1),
        ] {
            let written = Written { content: content.to_owned(), calls: Vec::new() };
            let read = read(&Llama, &written, &ToolTypes::default());
            assert_eq!((read.reading, read.turn.unwrap().calls), (how, vec![go.clone(); calls]), "{content}");
        }
    }
}
