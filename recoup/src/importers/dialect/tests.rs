//! One exchange in every dialect must give the same nodes.

use serde_json::value::RawValue;

use super::{Aside, Dialect, messages};
use crate::importers::RecordError;
use crate::trajectory::{ArgumentsForm, Node, Part, Role};

fn read(text: &str) -> Result<Vec<Node>, RecordError> {
    let raw = RawValue::from_string(text.to_owned()).unwrap();
    messages(&raw, None, Role::User, &mut Aside::default())
}

fn part_shown(part: &Part) -> String {
    match part {
        Part::Text(text) => text.text.clone(),
        Part::Reasoning { text, signature } => format!("<{text}|{}>", signature.as_deref().unwrap_or("")),
        Part::ToolCall(call) => format!("{}({})", call.name, call.arguments_raw),
        Part::ToolResult(result) => format!(
            "={}{}",
            result.parts.iter().map(part_shown).collect::<String>(),
            if result.is_error == Some(true) { "!" } else { "" }
        ),
        Part::Media(media) => format!("[{}{}]", media.mime, if media.blob.is_some() { "" } else { "?" }),
        Part::Opaque { kind, .. } => format!("#{kind}"),
    }
}

/// Role, kinds of parts and texts, in short.
fn shown(nodes: &[Node]) -> String {
    let node = |node: &Node| {
        let parts: Vec<String> = node.parts.iter().map(part_shown).collect();
        format!("{} {}", node.role.as_str(), parts.join(" "))
    };
    nodes.iter().map(node).collect::<Vec<_>>().join("\n")
}

const WANTED: &str = "system Be brief.
user see [image/png]
assistant <hm|> Let me look. ls({ \"p\": 1.0 }) cat({})
tool =a b
tool =broken
assistant done";

#[test]
fn one_exchange_reads_alike_in_every_dialect() {
    let dialects = [
        (
            Dialect::Chat,
            r#"[{"role":"system","content":"Be brief."},
            {"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]},
            {"role":"assistant","reasoning":"hm","content":"Let me look.","tool_calls":[{"id":"a","type":"function","function":{"name":"ls","arguments":"{ \"p\": 1.0 }"}},{"id":"b","type":"function","function":{"name":"cat","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"a","content":"a b"},{"role":"tool","tool_call_id":"b","content":"broken"},
            {"role":"assistant","content":"done"}]"#,
        ),
        (
            Dialect::Responses,
            r#"{"instructions":"Be brief.","input":[
            {"role":"user","content":[{"type":"input_text","text":"see"},{"type":"input_image","image_url":"data:image/png;base64,aGk="}]},
            {"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]},
            {"type":"message","role":"assistant","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]},
            {"type":"function_call","call_id":"a","name":"ls","arguments":"{ \"p\": 1.0 }"},
            {"type":"function_call","call_id":"b","name":"cat","arguments":"{}"},
            {"type":"function_call_output","call_id":"a","output":"a b"},{"type":"function_call_output","call_id":"b","output":"broken"},
            {"role":"assistant","content":"done"}]}"#,
        ),
        (
            Dialect::Anthropic,
            r#"{"system":"Be brief.","messages":[
            {"role":"user","content":[{"type":"text","text":"see"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}]},
            {"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Let me look."},{"type":"tool_use","id":"a","name":"ls","input":{ "p": 1.0 }},{"type":"tool_use","id":"b","name":"cat","input":{}}]},
            {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a b"}]},{"type":"tool_result","tool_use_id":"b","content":"broken"}]},
            {"role":"assistant","content":"done"}]}"#,
        ),
        (
            Dialect::GenAi,
            r#"[{"role":"system","parts":[{"type":"text","content":"Be brief."}]},
            {"role":"user","parts":[{"type":"text","content":"see"},{"type":"blob","modality":"image","mime_type":"image/png","content":"aGk="}]},
            {"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"Let me look."},{"type":"tool_call","id":"a","name":"ls","arguments":{ "p": 1.0 }},{"type":"tool_call","id":"b","name":"cat","arguments":{}}],"finish_reason":"tool_call"},
            {"role":"tool","parts":[{"type":"tool_call_response","id":"a","response":"a b"},{"type":"tool_call_response","id":"b","result":"broken"}]},
            {"role":"assistant","parts":[{"type":"text","content":"done"}],"finish_reason":"stop"}]"#,
        ),
        (
            Dialect::Gemini,
            r#"{"systemInstruction":{"parts":[{"text":"Be brief."}]},"contents":[
            {"role":"user","parts":[{"text":"see"},{"inlineData":{"mimeType":"image/png","data":"aGk="}}]},
            {"role":"model","parts":[{"text":"hm","thought":true},{"text":"Let me look."},{"functionCall":{"name":"ls","args":{ "p": 1.0 }}},{"functionCall":{"name":"cat","args":{}}}]},
            {"role":"user","parts":[{"functionResponse":{"name":"ls","response":{"result":"a b"}}},{"functionResponse":{"name":"cat","response":{"output":"broken"}}}]},
            {"role":"model","parts":[{"text":"done"}]}]}"#,
        ),
        (
            Dialect::LangChain,
            r#"[{"lc":1,"type":"constructor","id":["langchain","schema","messages","SystemMessage"],"kwargs":{"content":"Be brief.","type":"system"}},
            {"type":"human","data":{"content":[{"type":"text","text":"see"},{"type":"image","base64":"aGk=","mime_type":"image/png"}]}},
            {"type":"ai","content":[{"type":"reasoning","reasoning":"hm"},{"type":"text","text":"Let me look."}],"tool_calls":[{"name":"ls","args":{ "p": 1.0 },"id":"a","type":"tool_call"},{"name":"cat","args":{},"id":"b"}]},
            {"type":"tool","content":"a b","tool_call_id":"a"},{"type":"tool","content":"broken","tool_call_id":"b"},
            {"type":"AIMessageChunk","content":"done"}]"#,
        ),
    ];
    for (dialect, text) in dialects {
        let nodes = read(text).unwrap();
        assert_eq!(shown(&nodes), WANTED, "{dialect:?}");
        let call = nodes[2].tool_calls().next().unwrap().1;
        let stringly = matches!(dialect, Dialect::Chat | Dialect::Responses);
        assert_eq!(call.arguments_form == ArgumentsForm::String, stringly, "{dialect:?}");
        let sampled: Vec<bool> = nodes.iter().map(|node| node.occurrence.sampled).collect();
        assert_eq!(sampled, [false, false, true, false, false, true], "{dialect:?}");
    }
}

#[test]
fn a_json_string_holds_messages_and_any_other_text_is_said() {
    let messages = r#"[{"role":"assistant","content":"hi"}]"#;
    let quoted = serde_json::to_string(messages).unwrap();
    assert_eq!(shown(&read(&quoted).unwrap()), "assistant hi");
    assert_eq!(shown(&read(r#""{\"a\":1}""#).unwrap()), r#"user {"a":1}"#);
    assert_eq!(shown(&read(r#""[1]""#).unwrap()), "user [1]");
}

#[test]
fn answers_of_providers_are_unwrapped() {
    for (text, wanted) in [
        (
            r#"{"id":"c","choices":[{"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}"#,
            "assistant hi",
        ),
        (
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}]}"#,
            "assistant hi",
        ),
        (
            r#"{"object":"response","instructions":"x","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hi"}]},{"type":"web_search_call","id":"w"}]}"#,
            "assistant hi #web_search_call",
        ),
        (
            r#"{"id":"m","type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}"#,
            "assistant hi",
        ),
        (
            r#"{"generations":[[{"text":"hi","message":{"lc":1,"type":"constructor","id":["AIMessage"],"kwargs":{"content":"hi"}}}]]}"#,
            "assistant hi",
        ),
        (
            r#"{"messages":[[{"lc":1,"type":"constructor","id":["HumanMessage"],"kwargs":{"content":"hi"}}]]}"#,
            "user hi",
        ),
    ] {
        assert_eq!(shown(&read(text).unwrap()), wanted, "{text}");
    }
}

#[test]
fn seals_stay_and_unknown_pieces_keep_their_source() {
    let text = r#"[{"role":"model","parts":[{"text":"t","thought":true},{"functionCall":{"name":"f","args":{}},"thoughtSignature":"s1"},{"functionCall":{"name":"g"},"thoughtSignature":"s2"},{"executableCode":{"code":"1"}}]}]"#;
    assert_eq!(shown(&read(text).unwrap()), "assistant <t|s1> f({}) <|s2> g() #executableCode");
    let text = r#"[{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"a","name":"f","input":{}}]},
        {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","is_error":true,"content":[{"type":"image","source":{"type":"url","url":"https://example.org/a.png"}}]},{"type":"text","text":"go on"}]}]"#;
    assert_eq!(
        shown(&read(text).unwrap()),
        "assistant #redacted_thinking f({})\ntool =[image/png?]!\nuser go on"
    );
}

#[test]
fn what_is_no_message_is_an_error_with_its_place() {
    for (text, wanted) in [
        (
            r#"[{"role":"user","content":"a"},{"x":1}]"#,
            "messages[1]: `message` is not a message of a known form",
        ),
        (r#"[{"role":"wizard","content":"a"}]"#, "messages[0]: `role` is `wizard`"),
        (r#"[7]"#, "messages[0]: `message` is not an object"),
        (r#"{"a":1}"#, "`message` is not a message of a known form"),
    ] {
        let reason = read(text).map(|nodes| shown(&nodes)).unwrap_err().reason;
        assert!(reason.starts_with(wanted), "{text}: {reason}");
    }
}
