//! The disguise: what a teacher sees in place of secrets and personal data, and the way back.
//!
//! Every text of a request is redacted, each value by the same placeholder in all of it; the values come
//! back in what the teacher answers. The placeholders live as long as the question.

use recoup::importers::recoup_proxy::Api;
use recoup::redaction::{Placeholders, redact_text};
use serde_json::Value;

/// Members whose texts are words of the API, names that the client calls by, or bytes.
const KEPT: [&str; 13] = [
    "role",
    "type",
    "id",
    "tool_call_id",
    "tool_use_id",
    "call_id",
    "model",
    "data",
    "media_type",
    "signature",
    "encrypted_content",
    "detail",
    "file_id",
];
/// Members that hold what a tool is called with, where no name is the API's.
const ARGUMENTS: [&str; 3] = ["input", "arguments", "parameters"];
/// Members of a request that are words of the API.
const WORDS: [&str; 6] =
    ["model", "service_tier", "tool_choice", "reasoning_effort", "verbosity", "truncation"];

/// What stands for what.
#[derive(Clone, Debug, Default)]
pub(super) struct Disguise(Placeholders);

/// An answer that holds a placeholder of nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unrestored(pub String);

impl Disguise {
    /// Redacts a request's body. Whether anything was changed says the body that comes back.
    pub(super) fn put_on(&mut self, body: &[u8]) -> serde_json::Result<Option<Vec<u8>>> {
        let mut body: Value = serde_json::from_slice(body)?;
        let mut changed = false;
        each_text(&body, &mut |text| self.0.reserve(text));
        for (key, told) in body.as_object_mut().into_iter().flatten() {
            if WORDS.contains(&key.as_str()) {
                continue;
            }
            // The history of one API bears the name of another's arguments.
            let api = key != "metadata";
            change_texts(told, api, &mut |text| {
                let redacted = redact_text(text, &mut self.0);
                changed |= redacted != *text;
                *text = redacted;
            });
        }
        if changed { serde_json::to_vec(&body).map(Some) } else { Ok(None) }
    }

    /// Puts the values back into an answer.
    ///
    /// # Errors
    /// [`Unrestored`] where a placeholder stands for nothing.
    pub(super) fn take_off(&self, answer: &[u8]) -> Result<Vec<u8>, Unrestored> {
        let Ok(mut answer) = serde_json::from_slice::<Value>(answer) else { return Ok(answer.to_vec()) };
        let mut unknown = None;
        change_texts(&mut answer, true, &mut |text| {
            if let Some(found) = self.0.unknown_in(text) {
                unknown.get_or_insert_with(|| found.to_owned());
            }
            *text = self.0.restore(text);
        });
        match unknown {
            Some(unknown) => Err(Unrestored(unknown)),
            None => Ok(serde_json::to_vec(&answer).unwrap_or_default()),
        }
    }
}

fn each_text(value: &Value, show: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => show(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, show)),
        Value::Object(members) => members.values().for_each(|value| each_text(value, show)),
        _ => {}
    }
}

/// Changes every text that is content; `api` says whether names of members are the API's.
fn change_texts(value: &mut Value, api: bool, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) if !is_data_url(text) => change(text),
        Value::Array(values) => values.iter_mut().for_each(|value| change_texts(value, api, change)),
        Value::Object(members) => {
            // The name of what is called or offered; a message's is somebody's.
            let names = api && !members.contains_key("role");
            for (key, value) in members {
                let kept = api && (KEPT.contains(&key.as_str()) || names && key == "name");
                if !(kept && value.is_string()) {
                    change_texts(value, api && !ARGUMENTS.contains(&key.as_str()), change);
                }
            }
        }
        _ => {}
    }
}

/// Whether a text is bytes in the form of a URL, and nothing but that.
fn is_data_url(text: &str) -> bool {
    let Some((kind, data)) = text.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,")) else {
        return false;
    };
    let mime = |byte: u8| byte.is_ascii_alphanumeric() || b"/.+-".contains(&byte);
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    kind.contains('/') && kind.bytes().all(mime) && data.bytes().all(base64)
}

/// An answer in one piece as the event stream that a client asked for.
pub(super) fn streamed(api: Api, answer: &[u8]) -> Vec<u8> {
    let answer: Value = serde_json::from_slice(answer).unwrap_or_default();
    let mut out = Vec::new();
    match api {
        Api::Chat => chat_events(&answer, &mut out),
        Api::Messages => message_events(&answer, &mut out),
        Api::Responses => response_events(&answer, &mut out),
    }
    out
}

fn event(out: &mut Vec<u8>, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

fn chat_events(answer: &Value, out: &mut Vec<u8>) {
    let head = |choices: Value, usage: &Value| {
        serde_json::json!({
            "id": answer["id"], "object": "chat.completion.chunk", "created": answer["created"],
            "model": answer["model"], "choices": choices, "usage": usage,
        })
    };
    for choice in answer["choices"].as_array().into_iter().flatten() {
        let mut delta = choice["message"].clone();
        for (index, call) in delta["tool_calls"].as_array_mut().into_iter().flatten().enumerate() {
            call["index"] = index.into();
        }
        let said = serde_json::json!([{ "index": choice["index"], "delta": delta, "finish_reason": null }]);
        event(out, None, &head(said, &Value::Null));
        let finish = &choice["finish_reason"];
        let done = serde_json::json!([{ "index": choice["index"], "delta": {}, "finish_reason": finish }]);
        event(out, None, &head(done, &Value::Null));
    }
    if !answer["usage"].is_null() {
        event(out, None, &head(Value::Array(Vec::new()), &answer["usage"]));
    }
    out.extend_from_slice(b"data: [DONE]\n\n");
}

fn message_events(answer: &Value, out: &mut Vec<u8>) {
    let mut typed = |mut data: Value, kind: &str| {
        data["type"] = kind.into();
        event(out, Some(kind), &data);
    };
    let mut start = answer.clone();
    start["content"] = Value::Array(Vec::new());
    start["stop_reason"] = Value::Null;
    typed(serde_json::json!({ "message": start }), "message_start");
    for (index, block) in answer["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let delta = match block["type"].as_str() {
            Some("text") => {
                empty["text"] = "".into();
                serde_json::json!({ "type": "text_delta", "text": block["text"] })
            }
            Some("tool_use") => {
                empty["input"] = serde_json::json!({});
                serde_json::json!({ "type": "input_json_delta", "partial_json": block["input"].to_string() })
            }
            Some("thinking") => {
                empty["thinking"] = "".into();
                serde_json::json!({ "type": "thinking_delta", "thinking": block["thinking"] })
            }
            _ => Value::Null,
        };
        typed(serde_json::json!({ "index": index, "content_block": empty }), "content_block_start");
        if !delta.is_null() {
            typed(serde_json::json!({ "index": index, "delta": delta }), "content_block_delta");
        }
        typed(serde_json::json!({ "index": index }), "content_block_stop");
    }
    let delta =
        serde_json::json!({ "stop_reason": answer["stop_reason"], "stop_sequence": answer["stop_sequence"] });
    typed(serde_json::json!({ "delta": delta, "usage": answer["usage"] }), "message_delta");
    typed(serde_json::json!({}), "message_stop");
}

fn response_events(answer: &Value, out: &mut Vec<u8>) {
    let mut number = 0_u64;
    let mut typed = |mut data: Value, kind: &str| {
        data["type"] = kind.into();
        data["sequence_number"] = number.into();
        number += 1;
        event(out, Some(kind), &data);
    };
    let mut start = answer.clone();
    start["output"] = Value::Array(Vec::new());
    start["status"] = "in_progress".into();
    typed(serde_json::json!({ "response": start }), "response.created");
    for (index, item) in answer["output"].as_array().into_iter().flatten().enumerate() {
        typed(serde_json::json!({ "output_index": index, "item": item }), "response.output_item.added");
        for (part, content) in item["content"].as_array().into_iter().flatten().enumerate() {
            if let Some(text) = content["text"].as_str() {
                let place = serde_json::json!({ "item_id": item["id"], "output_index": index, "content_index": part });
                let with = |key: &str, value: Value| {
                    let mut data = place.clone();
                    data[key] = value;
                    data
                };
                typed(with("part", content.clone()), "response.content_part.added");
                typed(with("delta", text.into()), "response.output_text.delta");
                typed(with("text", text.into()), "response.output_text.done");
                typed(with("part", content.clone()), "response.content_part.done");
            }
        }
        typed(serde_json::json!({ "output_index": index, "item": item }), "response.output_item.done");
    }
    typed(serde_json::json!({ "response": answer }), "response.completed");
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use recoup::importers::recoup_proxy::Api;
    use serde_json::{Value, json};

    use super::super::answer;
    use super::{Disguise, Unrestored, streamed};

    #[test]
    fn a_teacher_sees_placeholders_and_the_client_values() {
        let body = json!({ "model": "t", "messages": [
            { "role": "user", "content": "write to mia@example.com, not <EMAIL_1>" },
            { "role": "tool", "tool_call_id": "mia@example.com", "content": [{ "type": "text", "text": "mia@example.com" }] },
        ] });
        let mut disguise = Disguise::default();
        let sent = disguise.put_on(body.to_string().as_bytes()).unwrap().unwrap();
        let sent: Value = serde_json::from_slice(&sent).unwrap();
        assert_eq!(sent["messages"][0]["content"], "write to <EMAIL_2>, not <EMAIL_1>");
        assert_eq!(sent["messages"][1]["content"][0]["text"], "<EMAIL_2>");
        assert_eq!(sent["messages"][1]["tool_call_id"], "mia@example.com");
        let restored = disguise.take_off(br#"{"a":"{\"to\":\"<EMAIL_2>\"}","b":"<EMAIL_1>"}"#).unwrap();
        assert_eq!(restored, br#"{"a":"{\"to\":\"mia@example.com\"}","b":"<EMAIL_1>"}"#);
        assert_eq!(disguise.take_off(br#"["<EMAIL_7>"]"#), Err(Unrestored("<EMAIL_7>".to_owned())));
        let nothing =
            Disguise::default().put_on(br#"{"messages":[{"role":"user","content":"hi"}]}"#).unwrap();
        assert_eq!(nothing, None, "an innocent request goes as it is");
    }

    #[test]
    fn nothing_hides_behind_a_name_of_the_api() {
        let mail = "mia@example.com";
        let body = json!({ "model": "t", "user": mail, "metadata": { "id": mail }, "messages": [
            { "role": "user", "name": mail, "content": format!("data: {mail}") },
            { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "data:image/png;base64,AAAA" } }] },
            { "role": "user", "content": format!("data:text/plain;base64,{mail}") },
            { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "f", "input": { "id": mail, "data": [{ "name": mail }] } }] },
        ] });
        let sent = Disguise::default().put_on(body.to_string().as_bytes()).unwrap().unwrap();
        let text = String::from_utf8(sent).unwrap();
        assert!(!text.contains(mail), "{text}");
        let sent: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(sent["messages"][1], body["messages"][1]);
        assert_eq!(sent["messages"][3]["content"][0]["input"]["data"][0]["name"], "<EMAIL_1>");
        assert_eq!(sent["messages"][3]["content"][0]["name"], "f");
    }

    #[test]
    fn a_stream_made_of_an_answer_reads_as_the_answer() {
        let chat = json!({ "id": "c", "model": "m", "choices": [{ "index": 0, "finish_reason": "tool_calls", "message": {
            "role": "assistant", "content": "hi", "tool_calls": [{ "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } }] } }],
            "usage": { "prompt_tokens": 1, "completion_tokens": 2 } });
        let message = json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "content": [{ "type": "text", "text": "hi" }, { "type": "tool_use", "id": "t", "name": "f", "input": { "x": 1 } }],
            "usage": { "input_tokens": 1, "output_tokens": 2 } });
        let response = json!({ "id": "r", "model": "m", "status": "completed", "output": [{ "type": "message", "id": "i", "role": "assistant",
            "content": [{ "type": "output_text", "text": "hi" }] }], "usage": { "input_tokens": 1, "output_tokens": 2 } });
        for (api, answer) in [(Api::Chat, chat), (Api::Messages, message), (Api::Responses, response)] {
            let bytes = answer.to_string().into_bytes();
            let mut stream = answer::Stream::new(api);
            assert!(stream.feed(&Bytes::from(streamed(api, &bytes))), "{api:?}");
            let (read, whole) = (stream.finish(false).unwrap(), answer::whole(api, &bytes).unwrap());
            let values = |answer: &answer::Answer| -> Vec<Value> {
                answer.alternatives[0].iter().map(|raw| serde_json::from_str(raw.get()).unwrap()).collect()
            };
            let mut streamed = values(&read);
            let calls = streamed[0].get_mut("tool_calls").and_then(Value::as_array_mut);
            for call in calls.into_iter().flatten() {
                call.as_object_mut().unwrap().shift_remove("index");
            }
            assert_eq!(streamed, values(&whole), "{api:?}");
            assert_eq!((read.call, read.id), (whole.call, whole.id), "{api:?}");
        }
    }
}
