//! Hermes: `<tool_call>` with a JSON object of name and arguments, as Hermes and Qwen 2.5 and 3 were trained on.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Form, NoPlace, ToolTypes, Written, loose, offered, words};
use crate::models::ChatMessage;
use crate::trajectory::Tool;
use crate::verdict::{CallAst, TurnAst};

pub(super) const OPEN: &str = "<tool_call>";
pub(super) const CLOSE: &str = "</tool_call>";

/// See the module.
pub struct Hermes;

/// A call as the form writes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call<'a> {
    name: String,
    #[serde(borrow)]
    arguments: &'a RawValue,
}

impl Form for Hermes {
    fn name(&self) -> &'static str {
        "hermes"
    }

    fn instructions(&self, tools: &[Tool]) -> Option<String> {
        Some(format!(
            "You may call one or more functions to assist with the user query.\n\nThey are given within \
             <tools></tools>:\n<tools>\n{}\n</tools>\n\nFor each function call, return a JSON object with function \
             name and arguments within <tool_call></tool_call>:\n<tool_call>\n{{\"name\": <function-name>, \
             \"arguments\": <args-json-object>}}\n</tool_call>",
            offered(tools)
        ))
    }

    fn write(&self, turn: &TurnAst, _: usize) -> Result<Written, NoPlace> {
        let block = |call: &CallAst| {
            let (name, arguments) = (Value::from(call.name.as_str()), call.arguments.as_str());
            format!("{{\"name\": {name}, \"arguments\": {arguments}}}")
        };
        Ok(Written { content: blocks(turn, block), calls: Vec::new() })
    }

    fn strict(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        split(&written.content, |inner| {
            let mut values = serde_json::Deserializer::from_str(inner).into_iter::<Call<'_>>();
            let call = values.next().ok_or("a call is empty")?.map_err(|error| error.to_string())?;
            let rest = &inner[values.byte_offset()..];
            let call = CallAst::read(&call.name, call.arguments.get()).map_err(|error| error.to_string())?;
            Ok((call, rest))
        })
    }

    fn lenient(&self, written: &Written, _: &ToolTypes) -> Result<TurnAst, String> {
        let text = &written.content;
        let Some((before, rest)) = text.split_once(OPEN) else {
            return match bare_call(text) {
                Some(call) => Ok(TurnAst { text: String::new(), calls: vec![call] }),
                None if text.contains(CLOSE) => Err("a call ends that has not begun".to_owned()),
                None => words(text),
            };
        };
        let calls: Option<Vec<CallAst>> = rest.split(OPEN).map(object_call).collect();
        let calls = calls.ok_or("a call is no object with a name and arguments")?;
        Ok(TurnAst { text: before.trim().to_owned(), calls })
    }

    fn result(&self, _: &str, text: &str) -> ChatMessage {
        response(text)
    }
}

/// A tool's answer as Hermes' and Qwen's templates show it.
pub(super) fn response(text: &str) -> ChatMessage {
    ChatMessage::user(format!("<tool_response>\n{text}\n</tool_response>"))
}

/// The text, then each call between its tags.
pub(super) fn blocks(turn: &TurnAst, block: impl Fn(&CallAst) -> String) -> String {
    let mut out = turn.text.clone();
    for call in &turn.calls {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(OPEN);
        out.push('\n');
        out.push_str(&block(call));
        out.push('\n');
        out.push_str(CLOSE);
    }
    out
}

/// Reads text and calls between tags. `call` reads one and gives back what stands behind it.
pub(super) fn split<'a>(
    content: &'a str,
    call: impl Fn(&'a str) -> Result<(CallAst, &'a str), String>,
) -> Result<TurnAst, String> {
    let Some(at) = content.find(OPEN) else {
        return match bare_call(content) {
            Some(_) => Err("a call stands outside its tags".to_owned()),
            None if content.contains(CLOSE) => Err("a call ends that has not begun".to_owned()),
            None => words(content),
        };
    };
    let (before, mut rest) = content.split_at(at);
    let text = match before {
        "" => "",
        _ => before.strip_suffix('\n').ok_or("a call does not begin a line")?,
    };
    if text.contains(CLOSE) {
        return Err("a call ends that has not begun".to_owned());
    }
    let mut calls = Vec::new();
    while let Some(inner) = rest.strip_prefix(OPEN) {
        let (found, behind) = call(inner)?;
        let behind = behind.trim_start().strip_prefix(CLOSE).ok_or("a call does not end")?;
        calls.push(found);
        rest = behind.trim_start();
    }
    if rest.is_empty() {
        Ok(TurnAst { text: text.to_owned(), calls })
    } else {
        Err("something stands behind the calls".to_owned())
    }
}

/// A call that is the whole text, without tags, as some models write it.
pub(super) fn bare_call(text: &str) -> Option<CallAst> {
    let text = text.trim_start();
    if text.starts_with(['{', '`']) { object_call(text) } else { None }
}

/// A call that is nearly an object with a name and arguments.
pub(super) fn object_call(text: &str) -> Option<CallAst> {
    let Value::Object(mut call) = loose::value(text)?.0 else { return None };
    // Some wrap it as OpenAI's API does.
    if let Some(Value::Object(inner)) = call.get_mut("function") {
        call = std::mem::take(inner);
    }
    let name = ["name", "function", "tool"].iter().find_map(|key| call.get(*key)?.as_str())?;
    let arguments = ["arguments", "parameters", "args", "input"].iter().find_map(|key| call.get(*key));
    let arguments = arguments.map_or_else(|| "{}".to_owned(), ToString::to_string);
    CallAst::read(name, &loose::object(&arguments)?).ok()
}

#[cfg(test)]
mod tests {
    use super::Hermes;
    use crate::interleaving::Reading;
    use crate::rollout::forms::{Form as _, ToolTypes, Written, read};
    use crate::verdict::{CallAst, TurnAst};

    fn reading(content: &str) -> (Reading, Option<TurnAst>) {
        let written = Written { content: content.to_owned(), calls: Vec::new() };
        let read = read(&Hermes, &written, &ToolTypes::default());
        (read.reading, read.turn.ok())
    }

    #[test]
    fn strict_is_what_the_form_writes() {
        let go = CallAst::read("go", r#"{"to":"</tool_call>"}"#).unwrap();
        let turn = TurnAst { text: "So.".to_owned(), calls: vec![go.clone(), go] };
        let written = Hermes.write(&turn, 0).unwrap();
        assert_eq!(
            written.content.lines().take(4).collect::<Vec<_>>(),
            ["So.", "<tool_call>", r#"{"name": "go", "arguments": {"to":"</tool_call>"}}"#, "</tool_call>"]
        );
        assert_eq!(reading(&written.content), (Reading::Strict, Some(turn)));
        assert_eq!(reading("<think>\nx\n</think>\n\nDone.").0, Reading::Strict);
    }

    #[test]
    fn lenient_is_what_models_write() {
        let go = CallAst::read("go", r#"{"n":1}"#).unwrap();
        for content in [
            "<tool_call>{'name': 'go', 'arguments': {'n': 1}}",
            "<tool_call>\n{\"name\": \"go\", \"arguments\": \"{\\\"n\\\": 1}\"}\n</tool_call>",
            "<tool_call>\n{\"name\": \"go\", \"parameters\": {\"n\": 1}}\n</tool_call> and more",
            "```json\n{\"name\": \"go\", \"arguments\": {\"n\": 1}}\n```",
        ] {
            let (how, turn) = reading(content);
            assert_eq!((how, turn.unwrap().calls), (Reading::Lenient, vec![go.clone()]), "{content}");
        }
        assert_eq!(reading("<tool_call>go north</tool_call>").0, Reading::Unreadable);
        assert_eq!(reading(" \n").0, Reading::Unreadable);
    }
}
