//! A typed line: what a person at the keyboard means by it.

use recoup::environments::{Action, ArgumentKind, Parameter, ToolSpec};
use recoup::json::Json;
use serde_json::{Map, Value};

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Typed {
    /// Nothing: an empty line.
    Nothing,
    /// `:word`, and what stands behind it.
    Command(String),
    /// Something to do in the environment.
    Act(Action),
}

impl Typed {
    /// Reads a line: `:command`, `tool name=value …`, `tool {"name": value}`, an action as `:expert` shows it, or
    /// words to say.
    ///
    /// # Errors
    /// In words, where a tool is named and what follows are no arguments.
    pub(super) fn read(line: &str, tools: &[ToolSpec]) -> Result<Self, String> {
        let line = line.trim();
        if line.is_empty() {
            return Ok(Self::Nothing);
        }
        if let Some(words) = line.strip_prefix(":say ") {
            return Ok(Self::Act(Action::say(words.trim())));
        }
        if let Some(command) = line.strip_prefix(':') {
            return Ok(Self::Command(command.trim().to_owned()));
        }
        if let Ok(action) = Action::from_json(line) {
            return Ok(Self::Act(action));
        }
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let object = serde_json::from_str::<Map<String, Value>>(rest).ok();
        match (tools.iter().find(|tool| tool.name == word), object) {
            (_, Some(arguments)) => Ok(Self::Act(call(word, arguments))),
            (Some(tool), None) if rest.starts_with('{') => {
                Err(format!("what follows `{}` is no JSON object", tool.name))
            }
            (Some(tool), None) => Ok(Self::Act(call(word, arguments(tool, rest)?))),
            (None, None) => Ok(Self::Act(Action::say(line))),
        }
    }
}

fn call(tool: &str, arguments: Map<String, Value>) -> Action {
    Action::call(tool, Json::from_foreign(&Value::Object(arguments).to_string()))
}

/// Reads `name=value …`. A value goes on until the next ` name=` of the tool, so words need no quotes.
fn arguments(tool: &ToolSpec, text: &str) -> Result<Map<String, Value>, String> {
    let mut starts: Vec<(usize, &Parameter)> = Vec::new();
    for parameter in &tool.parameters {
        let key = format!("{}=", parameter.name);
        let found = text.match_indices(&key).map(|(at, _)| at);
        let at_word = |at: &usize| text[..*at].chars().next_back().is_none_or(char::is_whitespace);
        starts.extend(found.filter(at_word).map(|at| (at, parameter)));
    }
    starts.sort_by_key(|(at, _)| *at);
    if starts.first().map_or(text.len(), |(at, _)| *at) > 0 {
        return Err(format!(
            "`{}` is a tool, and `{text}` does not begin with one of its arguments as name=value; \
             `:say {} {text}` says it as words",
            tool.name, tool.name
        ));
    }
    let mut arguments = Map::new();
    for (index, (at, parameter)) in starts.iter().enumerate() {
        let end = starts.get(index + 1).map_or(text.len(), |(at, _)| *at);
        let value = text[at + parameter.name.len() + 1..end].trim();
        arguments.insert(parameter.name.clone(), value_of(parameter.kind, value));
    }
    Ok(arguments)
}

/// A value as its parameter wants it; what cannot be one stays text, for the environment to refuse.
fn value_of(kind: ArgumentKind, text: &str) -> Value {
    if kind == ArgumentKind::String {
        let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
        return Value::from(inner.unwrap_or(text));
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
}

#[cfg(test)]
mod tests {
    use recoup::environments::{Action, ToolSpec};
    use recoup::json::Json;

    use super::Typed;

    fn read(line: &str) -> Result<Typed, String> {
        let tools = r#"[{"name":"put","description":"","parameters":{"type":"object","properties":
            {"item":{"type":"string"},"count":{"type":"integer"},"tags":{"type":"array"}},"required":["item"]}}]"#;
        Typed::read(line, &ToolSpec::read_all("test", tools).unwrap())
    }

    fn put(arguments: &str) -> Typed {
        Typed::Act(Action::call("put", Json::parse(arguments).unwrap()))
    }

    #[test]
    fn arguments_are_words_numbers_or_json() {
        assert_eq!(read("put item=red apple count=2"), Ok(put(r#"{"item":"red apple","count":2}"#)));
        assert_eq!(read(r#"put item="a=b" tags=["x", "y"]"#), Ok(put(r#"{"item":"a=b","tags":["x","y"]}"#)));
        assert_eq!(read(r#"put {"count": 2}"#), Ok(put(r#"{"count":2}"#)));
        assert_eq!(read("put"), Ok(put("{}")));
        assert_eq!(read(r#"{"tool":"put","arguments":{"item":"pear"}}"#), Ok(put(r#"{"item":"pear"}"#)));
        // The environment says what is wrong with a value.
        assert_eq!(read("put item=7 count=two"), Ok(put(r#"{"item":"7","count":"two"}"#)));
    }

    #[test]
    fn what_is_no_call_is_said() {
        assert_eq!(read("hello there"), Ok(Typed::Act(Action::say("hello there"))));
        assert_eq!(read(":say put it down"), Ok(Typed::Act(Action::say("put it down"))));
        assert_eq!(read("  "), Ok(Typed::Nothing));
        assert_eq!(read(":undo"), Ok(Typed::Command("undo".to_owned())));
    }

    #[test]
    fn a_tool_with_something_else_behind_it_is_asked_about() {
        assert!(read("put it down").unwrap_err().contains(":say put it down"));
        assert!(read("put {item").unwrap_err().contains("no JSON object"));
        // A tool that is not there is called all the same where the form is a call's.
        assert_eq!(
            read(r#"fly {"to":"moon"}"#),
            Ok(Typed::Act(Action::call("fly", Json::parse(r#"{"to":"moon"}"#).unwrap())))
        );
    }
}
