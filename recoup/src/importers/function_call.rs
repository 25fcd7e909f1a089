//! A function call as OpenAI's chat API writes it, which harnesses keep in their own records.

use serde_json::value::RawValue;

use super::members::{Object, text};
use crate::trajectory::{ArgumentsForm, ToolCall};

/// Reads `{"id", "function": {"name", "arguments"}}`, or Inspect's form of it, where `function` is the
/// name and `arguments` stands beside it. `None` where no function is named.
pub(super) fn tool_call(raw: &RawValue) -> Option<ToolCall> {
    let mut call = Object::of(raw).ok()?;
    let call_id = call.id("id");
    let mut function = match call.text("function") {
        Some(name) => return Some(with_arguments(call_id, name, call.take("arguments"))),
        None => call.object("function"),
    };
    let name = function.text("name")?;
    Some(with_arguments(call_id, name, function.take("arguments")))
}

/// A call whose arguments are the content of a JSON string, or else the bytes of the value.
pub(super) fn with_arguments(call_id: Option<String>, name: String, raw: Option<&RawValue>) -> ToolCall {
    let (arguments_raw, arguments_form) = match raw {
        None => (String::new(), ArgumentsForm::String),
        Some(raw) => match text(raw) {
            Some(text) => (text, ArgumentsForm::String),
            None => (raw.get().to_owned(), ArgumentsForm::Object),
        },
    };
    ToolCall { call_id, name, arguments_raw, arguments_form }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::tool_call;
    use crate::trajectory::ArgumentsForm;

    fn read(text: &str) -> Option<crate::trajectory::ToolCall> {
        tool_call(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn arguments_keep_their_bytes_in_both_forms() {
        let openai = read(r#"{"id":"c1","function":{"name":"ls","arguments":"{ \"p\": 1.0 }"}}"#).unwrap();
        assert_eq!(
            (openai.arguments_raw.as_str(), openai.arguments_form),
            (r#"{ "p": 1.0 }"#, ArgumentsForm::String)
        );
        let inspect = read(r#"{"id":"c1","function":"ls","arguments":{ "p": 1.0 }}"#).unwrap();
        assert_eq!((inspect.name.as_str(), inspect.arguments_raw.as_str()), ("ls", r#"{ "p": 1.0 }"#));
        assert_eq!(inspect.arguments_form, ArgumentsForm::Object);
        assert!(read(r#"{"id":"c1"}"#).is_none());
    }
}
