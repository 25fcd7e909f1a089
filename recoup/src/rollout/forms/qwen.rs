//! Qwen XML: `<function=NAME>` with a `<parameter=NAME>` each, values without quotes, as Qwen 3 Coder was trained on.
//!
//! A value is text where the tool's schema says so, else JSON: which of the two it is cannot be told from the text.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::hermes::{CLOSE, OPEN, blocks, response, split};
use super::{Form, NoPlace, ToolTypes, Written, loose, offered, words};
use crate::models::ChatMessage;
use crate::trajectory::Tool;
use crate::verdict::{CallAst, TurnAst};

const FUNCTION: &str = "<function=";

/// See the module.
pub struct Qwen;

impl Form for Qwen {
    fn name(&self) -> &'static str {
        "qwen-xml"
    }

    fn instructions(&self, tools: &[Tool]) -> Option<String> {
        Some(format!(
            "You have access to the following functions:\n\n<tools>\n{}\n</tools>\n\nIf you choose to call a function, \
             reply in this format with nothing after it:\n\n<tool_call>\n<function=example_function>\n\
             <parameter=example_parameter>\nvalue\n</parameter>\n</function>\n</tool_call>",
            offered(tools)
        ))
    }

    fn write(&self, turn: &TurnAst, _: usize) -> Result<Written, NoPlace> {
        let block = |call: &CallAst| {
            let mut out = format!("<function={}>", call.name);
            for (name, value) in members(call) {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let _ = write!(out, "\n<parameter={name}>\n{value}\n</parameter>");
            }
            out.push_str("\n</function>");
            out
        };
        Ok(Written { content: blocks(turn, block), calls: Vec::new() })
    }

    fn strict(&self, written: &Written, tools: &ToolTypes) -> Result<TurnAst, String> {
        let text = &written.content;
        if text.contains(FUNCTION) && !text.contains(OPEN) {
            return Err("a call stands outside its tags".to_owned());
        }
        split(text, |inner| {
            let (name, mut rest) = tag(inner.trim_start(), FUNCTION).ok_or("a call names no function")?;
            let mut arguments = Map::new();
            loop {
                rest = rest.trim_start();
                if let Some(rest) = rest.strip_prefix("</function>") {
                    return Ok((call(name, arguments)?, rest));
                }
                let (parameter, inner) = tag(rest, "<parameter=").ok_or("a call holds no parameter")?;
                let inner = inner.strip_prefix('\n').ok_or("a value does not begin a line")?;
                // The value may be empty, and its end then follows at once.
                let (value, behind) = match inner.strip_prefix("</parameter>") {
                    Some(_) => return Err("a value has no line".to_owned()),
                    None => inner.split_once("\n</parameter>").ok_or("a value does not end")?,
                };
                let value = typed(value, tools.is_text(name, parameter))
                    .ok_or_else(|| format!("the value of `{parameter}` is not of its type"))?;
                if arguments.insert(parameter.to_owned(), value).is_some() {
                    return Err(format!("`{parameter}` is there twice"));
                }
                rest = behind;
            }
        })
    }

    fn lenient(&self, written: &Written, tools: &ToolTypes) -> Result<TurnAst, String> {
        let text = &written.content;
        let Some(at) = text.find(FUNCTION) else {
            return if text.contains(OPEN) || text.contains(CLOSE) {
                Err("a call names no function".to_owned())
            } else {
                words(text)
            };
        };
        let (before, rest) = text.split_at(at);
        let before = before.trim_end().strip_suffix(OPEN).unwrap_or(before).trim();
        let mut calls = Vec::new();
        for piece in rest.split(FUNCTION).skip(1) {
            let (name, body) = piece.split_once('>').ok_or("a call names no function")?;
            let mut arguments = Map::new();
            for piece in body.split("<parameter=").skip(1) {
                let (parameter, value) = piece.split_once('>').ok_or("a parameter has no name")?;
                let end =
                    ["</parameter>", "</function>", CLOSE].iter().filter_map(|end| value.find(end)).min();
                let value = value[..end.unwrap_or(value.len())].trim();
                let value = typed(value, tools.is_text(name.trim(), parameter.trim()))
                    .or_else(|| loose::value(value).map(|(value, _)| value))
                    .unwrap_or_else(|| Value::from(value));
                arguments.insert(parameter.trim().to_owned(), value);
            }
            calls.push(call(name.trim(), arguments)?);
        }
        Ok(TurnAst { text: before.to_owned(), calls })
    }

    fn result(&self, _: &str, text: &str) -> ChatMessage {
        response(text)
    }
}

/// A tag's name and what follows it.
fn tag<'a>(text: &'a str, start: &str) -> Option<(&'a str, &'a str)> {
    text.strip_prefix(start)?.split_once('>')
}

fn members(call: &CallAst) -> Map<String, Value> {
    match call.arguments.to_value() {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn typed(value: &str, is_text: bool) -> Option<Value> {
    if is_text { Some(Value::from(value)) } else { serde_json::from_str(value).ok() }
}

fn call(name: &str, arguments: Map<String, Value>) -> Result<CallAst, String> {
    CallAst::read(name, &Value::Object(arguments).to_string()).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::Qwen;
    use crate::interleaving::Reading;
    use crate::json::Json;
    use crate::rollout::forms::{ToolTypes, Written, read, written};
    use crate::trajectory::Tool;
    use crate::verdict::{CallAst, TurnAst};

    #[test]
    fn values_have_the_types_of_their_tool() {
        let schema = r#"{"properties":{"to":{"type":"string"},"n":{"type":"integer"}}}"#;
        let tool = Tool {
            name: "go".to_owned(),
            description: String::new(),
            parameters: Json::parse(schema).ok(),
            read_only: None,
        };
        let types = ToolTypes::of(&[tool]);
        let call = CallAst::read("go", r#"{"to":"12","n":12}"#).unwrap();
        let turn = TurnAst { text: String::new(), calls: vec![call] };
        let text = written(&Qwen, &turn, &types, 0).unwrap();
        assert!(
            text.content.contains("<parameter=n>\n12\n</parameter>\n<parameter=to>\n12\n"),
            "{}",
            text.content
        );
        let short = "<function=go><parameter=to>12</parameter><parameter=n> 12";
        let short = read(&Qwen, &Written { content: short.to_owned(), calls: Vec::new() }, &types);
        assert_eq!((short.reading, short.turn), (Reading::Lenient, Ok(turn)));
    }
}
