//! Fingerprints: when two messages, or two histories, are the same though their bytes differ.
//!
//! A client sends an answer back in its own words: members in another order, empty ones left out or put
//! in, marks for the provider's cache moved from turn to turn. What counts is the role, the text, the
//! calls with their ids, names and arguments, and everything of other parts but such marks. Reasoning
//! does not count, for most clients drop it.

use recoup::canonical::write_string;
use recoup::importers::recoup_proxy::Api;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::conversations::Shown;

/// A fingerprint of a message, or of a history up to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Fingerprint(pub u128);

impl Fingerprint {
    /// Of some bytes.
    pub(super) fn of(fields: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self(u128::from_le_bytes(first))
    }

    /// Of a history that goes on with a message; one that says nothing leaves the history as it is.
    pub(super) fn then(self, message: Option<Self>) -> Self {
        let Some(message) = message else { return self };
        Self::of(&[&self.0.to_le_bytes(), &message.0.to_le_bytes()])
    }
}

/// Bytes from which on a text is not said twice by chance.
const LONG: usize = 160;
/// Marks for the provider, which say nothing of a message's content.
const MARKS: [&str; 6] = ["cache_control", "id", "status", "annotations", "logprobs", "index"];
/// Parts and items that clients drop when they send an answer back.
const REASONING: [&str; 4] = ["thinking", "redacted_thinking", "reasoning", "item_reference"];

/// What conversations look at of a message; it has no fingerprint where it is something that clients drop.
pub(super) fn show(api: Api, raw: &RawValue) -> Shown {
    let Ok(Value::Object(message)) = serde_json::from_str(raw.get()) else {
        let fingerprint = Some(Fingerprint::of(&[raw.get().as_bytes()]));
        return Shown { fingerprint, answer: false, particular: false };
    };
    let text = |key: &str| message.get(key).and_then(Value::as_str);
    let kind = text("type").unwrap_or("message");
    if api == Api::Responses && REASONING.contains(&kind) {
        return Shown { fingerprint: None, answer: true, particular: is_particular(&message) };
    }
    let role = text("role").unwrap_or(kind);
    let answer = role == "assistant" || (api == Api::Responses && kind.ends_with("_call"));
    let mut out = String::new();
    write_string(&mut out, if role == "developer" { "system" } else { role });
    match (api, kind) {
        (Api::Responses, "message") | (Api::Chat | Api::Messages, _) => {
            content(&mut out, message.get("content"), answer);
            for call in message.get("tool_calls").and_then(Value::as_array).into_iter().flatten() {
                let function = call.get("function").or_else(|| call.get("custom")).unwrap_or(call);
                let arguments = function.get("arguments").or_else(|| function.get("input"));
                called(&mut out, call.get("id"), function.get("name"), arguments);
            }
            if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
                called(&mut out, None, call.get("name"), call.get("arguments"));
            }
            for key in ["tool_call_id", "name"] {
                if let Some(value) = text(key) {
                    write_string(&mut out, value);
                }
            }
        }
        (Api::Responses, "function_call") => {
            called(&mut out, message.get("call_id"), message.get("name"), message.get("arguments"));
        }
        (Api::Responses, _) => canonical(&mut out, &Value::Object(message.clone())),
    }
    let fingerprint = Some(Fingerprint::of(&[out.as_bytes()]));
    Shown { fingerprint, answer, particular: answer && is_particular(&message) }
}

/// Whether a message is so particular that two conversations would not share it by chance: calls have
/// ids of their own, and long texts differ.
fn is_particular(message: &Map<String, Value>) -> bool {
    let has_calls =
        message.get("tool_calls").and_then(Value::as_array).is_some_and(|calls| !calls.is_empty());
    let is_call = message.get("call_id").is_some_and(|id| id.as_str().is_some_and(|id| !id.is_empty()));
    let content = message.get("content");
    let parts = content.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let uses_tools = parts.iter().any(|part| part.get("type").is_some_and(|kind| kind == "tool_use"));
    let said: usize = parts.iter().map(|part| text_length(part.get("text"))).sum();
    has_calls || is_call || uses_tools || said.max(text_length(content)) >= LONG
}

fn text_length(value: Option<&Value>) -> usize {
    value.and_then(Value::as_str).map_or(0, |text| text.trim().len())
}

/// Texts without the white space around an answer's, other parts in canonical form.
fn content(out: &mut String, value: Option<&Value>, answer: bool) {
    let plain = |out: &mut String, text: &str| {
        let text = if answer { text.trim() } else { text };
        if !text.is_empty() {
            write_string(out, text);
        }
    };
    match value {
        Some(Value::String(text)) => plain(out, text),
        Some(Value::Array(parts)) => {
            for part in parts {
                let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
                match (kind, part.get("text").and_then(Value::as_str)) {
                    ("text" | "input_text" | "output_text", Some(text)) => plain(out, text),
                    ("tool_use", _) => called(out, part.get("id"), part.get("name"), part.get("input")),
                    ("tool_result", _) => {
                        canonical(out, part.get("tool_use_id").unwrap_or(&Value::Null));
                        canonical(
                            out,
                            part.get("is_error")
                                .filter(|flag| **flag != Value::Bool(false))
                                .unwrap_or(&Value::Null),
                        );
                        content(out, part.get("content"), false);
                    }
                    (kind, _) if REASONING.contains(&kind) => {}
                    _ => canonical(out, part),
                }
            }
        }
        None | Some(Value::Null) => {}
        Some(other) => canonical(out, other),
    }
}

fn called(out: &mut String, id: Option<&Value>, name: Option<&Value>, arguments: Option<&Value>) {
    out.push('(');
    for value in [id, name].into_iter().flatten() {
        canonical(out, value);
    }
    match arguments {
        Some(Value::String(text)) => match serde_json::from_str::<Value>(text) {
            Ok(value) => write_members(out, &value, &|_, _| true),
            Err(_) => write_string(out, text.trim()),
        },
        Some(value) => write_members(out, value, &|_, _| true),
        None => {}
    }
    out.push(')');
}

/// A value with its members sorted, marks and nulls left out.
fn canonical(out: &mut String, value: &Value) {
    if !value.is_null() {
        write_members(out, value, &|key, value| !value.is_null() && !MARKS.contains(&key));
    }
}

/// A value with its members sorted, and only those that say something.
fn write_members(out: &mut String, value: &Value, says: &impl Fn(&str, &Value) -> bool) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => {
            out.push_str(&value.to_string());
            out.push(',');
        }
        Value::String(text) => write_string(out, text),
        Value::Array(values) => {
            out.push('[');
            for value in values {
                write_members(out, value, says);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> =
                members.iter().filter(|(key, value)| says(key, value)).collect();
            members.sort_by_key(|(key, _)| *key);
            out.push('{');
            for (key, value) in members {
                write_string(out, key);
                write_members(out, value, says);
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::{Api, Fingerprint, is_particular, show};

    /// The fingerprint of a message, and whether it is an answer.
    fn told(api: Api, text: &str) -> (Option<Fingerprint>, bool) {
        let shown = show(api, serde_json::from_str::<&RawValue>(text).unwrap());
        (shown.fingerprint, shown.answer)
    }

    fn same(api: Api, first: &str, second: &str) -> bool {
        told(api, first) == told(api, second)
    }

    #[test]
    fn what_clients_change_does_not_count() {
        let answer = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\": 1, \"b\": [2]}"}}],"refusal":null}"#;
        let back = r#"{"tool_calls":[{"function":{"arguments":"{\"b\":[2],\"a\":1}","name":"f"},"id":"c1","type":"function","index":0}],"role":"assistant","content":"","reasoning_content":"hm"}"#;
        assert!(same(Api::Chat, answer, back));
        assert!(!same(Api::Chat, answer, &back.replace("c1", "c2")));
        assert!(same(
            Api::Chat,
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}"#
        ));
        assert!(!same(Api::Chat, r#"{"role":"user","content":"hi"}"#, r#"{"role":"user","content":"hi "}"#));
        assert!(same(
            Api::Chat,
            r#"{"role":"assistant","content":"hi\n"}"#,
            r#"{"role":"assistant","content":"hi"}"#
        ));
        assert!(same(
            Api::Messages,
            r#"{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"s"},{"type":"text","text":"hi"}]}"#,
            r#"{"role":"assistant","content":"hi"}"#
        ));
    }

    #[test]
    fn every_argument_of_a_call_counts() {
        let call = |arguments: &str| {
            format!(
                r#"{{"role":"assistant","tool_calls":[{{"id":"c","function":{{"name":"f","arguments":{arguments}}}}}]}}"#
            )
        };
        let first = call(r#""{\"id\":1,\"x\":null}""#);
        assert!(same(Api::Chat, &first, &call(r#""{\"x\": null, \"id\": 1}""#)));
        assert!(!same(Api::Chat, &first, &call(r#""{\"id\":2,\"x\":null}""#)));
        assert!(!same(Api::Chat, &first, &call(r#""{\"id\":1}""#)));
        let used = |id: u8| {
            format!(
                r#"{{"role":"assistant","content":[{{"type":"tool_use","id":"t","name":"f","input":{{"index":{id}}}}}]}}"#
            )
        };
        assert!(!same(Api::Messages, &used(1), &used(2)));
    }

    #[test]
    fn calls_and_long_texts_are_particular() {
        let particular = |text: &str| is_particular(&serde_json::from_str(text).unwrap());
        assert!(!particular(r#"{"role":"assistant","content":"ok","tool_calls":null}"#));
        assert!(!particular(r#"{"role":"assistant","content":"say \"tool_use\"","tool_calls":[]}"#));
        let padded = format!(r#"{{"role":"assistant","content":"ok","reasoning":"{}"}}"#, "x".repeat(200));
        assert!(!particular(&padded));
        assert!(particular(&padded.replace("ok", &"y".repeat(160))));
        assert!(particular(r#"{"role":"assistant","tool_calls":[{"id":"c"}]}"#));
        assert!(particular(r#"{"role":"assistant","content":[{"type":"tool_use","id":"t"}]}"#));
        assert!(particular(r#"{"type":"function_call","call_id":"c"}"#));
    }

    #[test]
    fn reasoning_items_say_nothing() {
        assert_eq!(told(Api::Responses, r#"{"type":"reasoning","id":"r","summary":[]}"#), (None, true));
        assert!(same(
            Api::Responses,
            r#"{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"}"#,
            r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{ }"}"#
        ));
        assert!(same(
            Api::Responses,
            r#"{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}"#,
            r#"{"role":"assistant","content":"hi"}"#
        ));
    }
}
