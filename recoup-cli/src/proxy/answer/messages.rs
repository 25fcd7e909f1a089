//! Anthropic's messages, whole and in events.

use std::fmt::Write as _;

use recoup::trajectory::Call;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Answer, NoAnswer, RawObject, raw, said, usage};

/// Blocks of one message.
const BLOCKS_MAX: usize = 4096;

/// Reads a message.
pub(super) fn whole(body: &[u8]) -> Result<Answer, NoAnswer> {
    let message: RawObject =
        serde_json::from_slice(body).map_err(|error| NoAnswer::Form(error.to_string()))?;
    let content = message.get("content").ok_or_else(|| {
        serde_json::from_slice(body).map_or(NoAnswer::Cut, |value: Value| NoAnswer::Upstream(said(&value)))
    })?;
    let tokens = message.get("usage").map_or(Value::Null, |raw| value(raw));
    answer(&message, content, text(&message, "stop_reason"), &tokens)
}

fn answer(
    message: &RawObject,
    content: &RawValue,
    stop_reason: Option<String>,
    tokens: &Value,
) -> Result<Answer, NoAnswer> {
    let call = Call {
        model: text(message, "model"),
        finish_reason: stop_reason,
        usage: usage(tokens),
        ..Call::default()
    };
    let said = raw(&Said { role: "assistant", content })?;
    Ok(Answer { alternatives: vec![vec![said]], call, id: text(message, "id") })
}

/// A message of an answer.
#[derive(serde::Serialize)]
struct Said<'a> {
    role: &'a str,
    content: &'a RawValue,
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

fn text(object: &RawObject, key: &str) -> Option<String> {
    serde_json::from_str(object.get(key)?.get()).ok()
}

/// A message while its events come.
#[derive(Default)]
pub(super) struct Assembling {
    message: RawObject,
    usage: Value,
    stop_reason: Option<String>,
    blocks: Vec<Option<Block>>,
    done: bool,
    error: Option<String>,
}

/// A block of content: what it started with, and what was added to its members.
#[derive(Default)]
struct Block {
    start: RawObject,
    /// Texts by member.
    texts: Vec<(&'static str, String)>,
    citations: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Event {
    r#type: String,
    #[serde(default)]
    index: usize,
    message: Option<Box<RawValue>>,
    content_block: Option<Box<RawValue>>,
    delta: Option<Box<RawValue>>,
    usage: Option<Value>,
}

impl Assembling {
    pub(super) fn event(&mut self, data: &[u8]) {
        let Ok(event) = serde_json::from_slice::<Event>(data) else { return };
        match &*event.r#type {
            "message_start" => {
                let message = event.message.and_then(|raw| serde_json::from_str(raw.get()).ok());
                self.message = message.unwrap_or_default();
                self.usage = self.message.get("usage").map_or(Value::Null, |raw| value(raw));
            }
            "content_block_start" if event.index < BLOCKS_MAX => {
                if self.blocks.len() <= event.index {
                    self.blocks.resize_with(event.index + 1, || None);
                }
                let start = event.content_block.and_then(|raw| serde_json::from_str(raw.get()).ok());
                if let Some(place) = self.blocks.get_mut(event.index) {
                    *place = Some(Block { start: start.unwrap_or_default(), ..Block::default() });
                }
            }
            "content_block_delta" => {
                if let (Some(Some(block)), Some(delta)) = (self.blocks.get_mut(event.index), event.delta) {
                    block.add(&delta);
                }
            }
            "message_delta" => {
                let delta = event.delta.as_ref().map_or(Value::Null, |raw| value(raw));
                if let Some(reason) = delta.get("stop_reason").and_then(Value::as_str) {
                    self.stop_reason = Some(reason.to_owned());
                }
                // Counts are of the whole message so far.
                if let (Some(Value::Object(later)), Value::Object(usage)) = (event.usage, &mut self.usage) {
                    usage.extend(later.into_iter().filter(|(_, count)| !count.is_null()));
                }
            }
            "message_stop" => self.done = true,
            "error" => {
                self.error = Some(
                    serde_json::from_slice(data).map_or_else(|_| String::new(), |value: Value| said(&value)),
                );
            }
            _ => {}
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.done
    }

    pub(super) fn finish(self) -> Result<Answer, NoAnswer> {
        if let Some(error) = self.error {
            return Err(NoAnswer::Upstream(error));
        }
        if !self.done {
            return Err(NoAnswer::Cut);
        }
        let mut content = String::from("[");
        for block in self.blocks.into_iter().flatten() {
            content.push_str(if content.len() > 1 { "," } else { "" });
            content.push_str(raw(&block.finish()?)?.get());
        }
        content.push(']');
        let content = RawValue::from_string(content).map_err(|error| NoAnswer::Form(error.to_string()))?;
        answer(&self.message, &content, self.stop_reason, &self.usage)
    }
}

impl Block {
    fn add(&mut self, delta: &RawValue) {
        #[derive(Deserialize)]
        struct Delta {
            r#type: String,
            text: Option<String>,
            thinking: Option<String>,
            signature: Option<String>,
            partial_json: Option<String>,
            citation: Option<Box<RawValue>>,
        }
        let Ok(delta) = serde_json::from_str::<Delta>(delta.get()) else { return };
        let piece = match &*delta.r#type {
            "text_delta" => delta.text.map(|text| ("text", text)),
            "thinking_delta" => delta.thinking.map(|text| ("thinking", text)),
            "signature_delta" => delta.signature.map(|text| ("signature", text)),
            "input_json_delta" => delta.partial_json.map(|text| ("input", text)),
            _ => {
                self.citations.extend(delta.citation);
                None
            }
        };
        let Some((member, piece)) = piece else { return };
        match self.texts.iter_mut().find(|(known, _)| *known == member) {
            Some((_, text)) => text.push_str(&piece),
            None => self.texts.push((member, piece)),
        }
    }

    fn finish(mut self) -> Result<RawObject, NoAnswer> {
        for (member, text) in self.texts {
            let joined = match member {
                // The pieces spell the object itself.
                "input" => match RawValue::from_string(text.trim().to_owned()) {
                    Ok(input) => Some(input),
                    Err(_) if text.trim().is_empty() => None,
                    Err(_) => Some(raw(&text)?),
                },
                _ => Some(raw(&format!("{}{text}", self::text(&self.start, member).unwrap_or_default()))?),
            };
            if let Some(joined) = joined {
                self.start.insert(member.to_owned(), joined);
            }
        }
        if !self.citations.is_empty() {
            let mut list = String::from("[");
            for (index, citation) in self.citations.iter().enumerate() {
                let _ = write!(list, "{}{}", if index > 0 { "," } else { "" }, citation.get());
            }
            list.push(']');
            let list = RawValue::from_string(list).map_err(|error| NoAnswer::Form(error.to_string()))?;
            self.start.insert("citations".to_owned(), list);
        }
        Ok(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::{Assembling, NoAnswer, whole};

    const EVENTS: [&str; 12] = [
        r#"{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":5,"cache_read_input_tokens":2,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"x\": 1.50"}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"}"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
        r#"{"type":"message_stop"}"#,
    ];

    #[test]
    fn events_become_the_message() {
        let mut assembling = Assembling::default();
        for event in EVENTS {
            assembling.event(event.as_bytes());
        }
        let answer = assembling.finish().unwrap();
        assert_eq!(
            answer.alternatives[0][0].get(),
            r#"{"role":"assistant","content":[{"signature":"sig","thinking":"Hm","type":"thinking"},{"id":"t","input":{"x": 1.50},"name":"f","type":"tool_use"}]}"#
        );
        let usage = answer.call.usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.cached), (7, 9, 2));
        assert_eq!(
            (answer.call.finish_reason.as_deref(), answer.id.as_deref()),
            (Some("tool_use"), Some("m1"))
        );
    }

    #[test]
    fn what_is_cut_or_an_error_is_no_answer() {
        let mut assembling = Assembling::default();
        EVENTS.iter().take(8).for_each(|event| assembling.event(event.as_bytes()));
        assert_eq!(assembling.finish().unwrap_err(), NoAnswer::Cut);
        let error = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
        let mut assembling = Assembling::default();
        assembling.event(error);
        assert_eq!(assembling.finish().unwrap_err(), NoAnswer::Upstream("Overloaded".to_owned()));
        assert_eq!(whole(error).unwrap_err(), NoAnswer::Upstream("Overloaded".to_owned()));
    }
}
