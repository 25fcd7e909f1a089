//! A function call as OpenAI's chat API writes it, in the forms that providers, harnesses and data sets
//! made of it.

use serde_json::value::RawValue;

use super::object::Object;
use super::value::{is_object, text};
use crate::trajectory::{ArgumentsForm, ToolCall};

/// Takes a call out of its object: `{"id", "function": {"name", "arguments"}}`, a custom tool's
/// `{"id", "custom": {"name", "input"}}`, Inspect's form, where `function` is the name and `arguments`
/// stands beside it, or that of data sets, which leave the wrapper out. `None` where no function is
/// named.
pub(super) fn tool_call(call: &mut Object<'_>) -> Option<ToolCall> {
    let call_id = call.id("id");
    // Its place among the calls is its index; a type other than `function` shows in the member's name.
    call.take("index");
    call.take("type");
    if let Some(name) = call.text("function") {
        return Some(called(call_id, name, call.take("arguments")));
    }
    if call.get("function").is_some_and(is_object) {
        return function(&mut call.object("function"), call_id);
    }
    if call.get("custom").is_some_and(is_object) {
        let mut custom = call.object("custom");
        return Some(called(call_id, custom.text("name")?, custom.take("input")));
    }
    function(call, call_id)
}

/// Takes a called function out of its object: `{"name", "arguments"}`.
pub(super) fn function(function: &mut Object<'_>, call_id: Option<String>) -> Option<ToolCall> {
    Some(called(call_id, function.text("name")?, function.take("arguments")))
}

/// A call whose arguments are the content of a JSON string, or else the bytes of the value.
pub(super) fn called(call_id: Option<String>, name: String, arguments: Option<&RawValue>) -> ToolCall {
    let (arguments_raw, arguments_form) = match arguments {
        None => (String::new(), ArgumentsForm::String),
        Some(raw) => match text(raw) {
            Some(text) => (text.into_owned(), ArgumentsForm::String),
            None => (raw.get().to_owned(), ArgumentsForm::Object),
        },
    };
    ToolCall { call_id, name, arguments_raw, arguments_form }
}

#[cfg(test)]
mod tests {
    use super::tool_call;
    use crate::importers::object::Object;
    use crate::trajectory::ArgumentsForm;

    fn read(text: &str) -> Option<crate::trajectory::ToolCall> {
        tool_call(&mut serde_json::from_str::<Object<'_>>(text).unwrap())
    }

    #[test]
    fn arguments_keep_their_bytes_in_every_form() {
        for (text, form) in [
            (r#"{"id":"c1","function":{"name":"ls","arguments":"{ \"p\": 1.0 }"}}"#, ArgumentsForm::String),
            (r#"{"id":"c1","custom":{"name":"ls","input":"{ \"p\": 1.0 }"}}"#, ArgumentsForm::String),
            (r#"{"id":"c1","function":"ls","arguments":{ "p": 1.0 }}"#, ArgumentsForm::Object),
            (r#"{"id":"c1","name":"ls","arguments":{ "p": 1.0 }}"#, ArgumentsForm::Object),
        ] {
            let call = read(text).unwrap();
            assert_eq!((call.call_id.as_deref(), call.name.as_str()), (Some("c1"), "ls"), "{text}");
            assert_eq!((call.arguments_raw.as_str(), call.arguments_form), (r#"{ "p": 1.0 }"#, form));
        }
        assert!(read(r#"{"id":"c1"}"#).is_none());
    }

    #[test]
    fn what_a_call_has_no_place_for_is_left() {
        let text = r#"{"id":"c1","type":"function","index":0,"function":{"name":"f"},"extra_content":{}}"#;
        let mut call: Object<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(tool_call(&mut call).unwrap().arguments_raw, "");
        assert_eq!(call.keys().collect::<Vec<_>>(), ["extra_content"]);
    }
}
