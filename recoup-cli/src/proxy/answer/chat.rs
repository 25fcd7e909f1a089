//! OpenAI's chat completions, whole and in chunks.
//!
//! Servers add members of their own to the messages; chunks are joined as OpenAI's own clients join
//! them, so those come through: texts are appended, lists of pieces with an `index` joined by it.

use recoup::trajectory::Call;
use serde_json::{Map, Value};

use super::{Answer, NoAnswer, raw, said, usage};

/// Choices that are kept.
const CHOICES_MAX: usize = 128;
/// Pieces of one list (calls of one message).
const PIECES_MAX: u64 = 4096;

/// Reads a completion.
pub(super) fn whole(body: &[u8]) -> Result<Answer, NoAnswer> {
    let mut body: Value = serde_json::from_slice(body).map_err(|error| NoAnswer::Form(error.to_string()))?;
    let Some(Value::Array(choices)) = body.get_mut("choices").map(Value::take) else {
        return Err(match body.get("error") {
            Some(error) if !error.is_null() => NoAnswer::Upstream(said(&body)),
            _ => NoAnswer::Form("there are no choices".to_owned()),
        });
    };
    let choices = choices.into_iter().take(CHOICES_MAX).filter_map(|choice| match choice {
        Value::Object(mut choice) => {
            let message = choice.shift_remove("message")?;
            Some((message, choice))
        }
        _ => None,
    });
    answer(&body, choices.collect())
}

fn answer(head: &Value, mut choices: Vec<(Value, Map<String, Value>)>) -> Result<Answer, NoAnswer> {
    let Some((_, first)) = choices.first() else {
        return Err(NoAnswer::Form("there is no choice".to_owned()));
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let tokens = first.pointer_list("logprobs", "content");
    let logprobs: Option<Vec<f64>> = tokens.map(|tokens| {
        tokens.iter().filter_map(|token| token.get("logprob").and_then(Value::as_f64)).collect()
    });
    let call = Call {
        model: text(head.get("model")),
        finish_reason: text(first.get("finish_reason")),
        usage: head.get("usage").and_then(usage),
        cost: head.pointer("/usage/cost").and_then(Value::as_f64).filter(|cost| cost.is_finite()),
        prompt_ids: ids(head.get("prompt_token_ids").or_else(|| first.get("prompt_token_ids"))),
        completion_ids: ids(first.get("token_ids")),
        logprobs,
        ..Call::default()
    };
    let alternatives = choices.iter_mut().map(|(message, _)| {
        if let Value::Object(message) = message
            && !message.contains_key("role")
        {
            message.insert("role".to_owned(), "assistant".into());
        }
        Ok(vec![raw(message)?])
    });
    Ok(Answer { alternatives: alternatives.collect::<Result<_, _>>()?, call, id: text(head.get("id")) })
}

trait PointerList {
    fn pointer_list(&self, outer: &str, inner: &str) -> Option<&Vec<Value>>;
}

impl PointerList for Map<String, Value> {
    fn pointer_list(&self, outer: &str, inner: &str) -> Option<&Vec<Value>> {
        self.get(outer)?.get(inner)?.as_array()
    }
}

fn ids(value: Option<&Value>) -> Option<Vec<u32>> {
    value?.as_array()?.iter().map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect()
}

/// A completion while its chunks come.
#[derive(Default)]
pub(super) struct Assembling {
    head: Map<String, Value>,
    choices: Vec<Option<(Value, Map<String, Value>)>>,
    done: bool,
    error: Option<String>,
}

impl Assembling {
    pub(super) fn event(&mut self, data: &[u8]) {
        if data == b"[DONE]" {
            self.done = true;
            return;
        }
        let Ok(Value::Object(mut chunk)) = serde_json::from_slice(data) else { return };
        if chunk.get("error").is_some_and(|error| !error.is_null()) {
            self.error = Some(said(&Value::Object(chunk)));
            return;
        }
        if let Some(Value::Array(choices)) = chunk.shift_remove("choices") {
            for choice in choices {
                self.choice(choice);
            }
        }
        for (key, value) in chunk {
            if !value.is_null() {
                self.head.insert(key, value);
            }
        }
    }

    fn choice(&mut self, choice: Value) {
        let Value::Object(mut choice) = choice else { return };
        let index = choice.shift_remove("index").and_then(|index| index.as_u64()).unwrap_or(0) as usize;
        if index >= CHOICES_MAX {
            return;
        }
        if self.choices.len() <= index {
            self.choices.resize_with(index + 1, || None);
        }
        let Some(place) = self.choices.get_mut(index) else { return };
        let (message, rest) = place.get_or_insert_with(|| (Value::Object(Map::new()), Map::new()));
        if let Some(delta) = choice.shift_remove("delta") {
            join(message, delta);
        }
        for (key, value) in choice {
            join(rest.entry(key).or_insert(Value::Null), value);
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.done
    }

    /// Some servers send no `[DONE]`: a stream that ended in order with every choice finished is whole.
    pub(super) fn finish(self, cut: bool) -> Result<Answer, NoAnswer> {
        if let Some(error) = self.error {
            return Err(NoAnswer::Upstream(error));
        }
        let choices: Vec<_> = self.choices.into_iter().flatten().collect();
        let finished = !choices.is_empty()
            && choices.iter().all(|(_, rest)| rest.get("finish_reason").is_some_and(Value::is_string));
        if !self.done && (cut || !finished) {
            return Err(NoAnswer::Cut);
        }
        answer(&Value::Object(self.head), choices)
    }
}

/// Joins a piece to what came before it.
fn join(before: &mut Value, piece: Value) {
    match (before, piece) {
        (_, Value::Null) => {}
        (Value::String(before), Value::String(piece)) => before.push_str(&piece),
        (Value::Object(before), Value::Object(piece)) => {
            for (key, value) in piece {
                match before.get_mut(&key) {
                    // Said once, and repeated by some servers.
                    Some(known) if matches!(&*key, "id" | "type" | "role" | "name" | "index") => {
                        if known.is_null() || known == "" {
                            *known = value;
                        }
                    }
                    Some(known) => join(known, value),
                    None => {
                        let mut fresh = Value::Null;
                        join(&mut fresh, value);
                        before.insert(key, fresh);
                    }
                }
            }
        }
        (Value::Array(before), Value::Array(pieces)) => {
            for piece in pieces {
                add(before, piece);
            }
        }
        (before @ Value::Null, Value::Array(pieces)) => {
            let mut list = Vec::new();
            for piece in pieces {
                add(&mut list, piece);
            }
            *before = Value::Array(list);
        }
        (before, piece) => *before = piece,
    }
}

fn add(list: &mut Vec<Value>, mut piece: Value) {
    let index = piece.as_object_mut().and_then(|piece| piece.get("index")?.as_u64());
    let Some(index) = index.filter(|index| *index < PIECES_MAX) else {
        list.push(piece);
        return;
    };
    let same = list.iter_mut().find(|known| known.get("index").and_then(Value::as_u64) == Some(index));
    match same {
        Some(known) => join(known, piece),
        None => list.push(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Assembling, NoAnswer, whole};

    fn streamed(chunks: &[&str]) -> Result<Answer, NoAnswer> {
        let mut assembling = Assembling::default();
        for chunk in chunks {
            assembling.event(chunk.as_bytes());
        }
        assembling.finish(false)
    }

    #[test]
    fn chunks_become_the_message_that_one_piece_would_have_been() {
        let answer = streamed(&[
            r#"{"id":"c","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"Hi"},"logprobs":{"content":[{"token":"Hi","logprob":-0.5}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":""}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\""}}]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":": 1}"}}]},"token_ids":[5,6]}]}"#,
            r#"{"choices":[{"index":0,"delta":{"x_extra":"kept"},"finish_reason":"tool_calls","token_ids":[7]}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}"#,
            "[DONE]",
        ])
        .unwrap();
        let message: serde_json::Value = serde_json::from_str(answer.alternatives[0][0].get()).unwrap();
        assert_eq!(message["content"], "Hi");
        assert_eq!(message["tool_calls"][1]["function"]["arguments"], "{\"x\": 1}");
        assert_eq!(message["x_extra"], "kept");
        assert_eq!(answer.call.completion_ids, Some(vec![5, 6, 7]));
        assert_eq!(answer.call.logprobs, Some(vec![-0.5]));
        assert_eq!(answer.call.usage.map(|usage| (usage.input, usage.output)), Some((3, 4)));
        assert_eq!(answer.call.finish_reason.as_deref(), Some("tool_calls"));
    }

    #[test]
    fn a_stream_without_its_end_is_cut() {
        let head = r#"{"choices":[{"index":0,"delta":{"content":"Hi"}}]}"#;
        assert_eq!(streamed(&[head]).unwrap_err(), NoAnswer::Cut);
        let end = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
        assert!(streamed(&[head, end]).is_ok());
        let error = streamed(&[head, r#"{"error":{"message":"overloaded"}}"#]).unwrap_err();
        assert_eq!(error, NoAnswer::Upstream("overloaded".to_owned()));
    }

    #[test]
    fn a_whole_body_keeps_every_choice() {
        let body = br#"{"id":"c","model":"m","choices":[{"message":{"role":"assistant","content":"a"},"finish_reason":"stop"},{"message":{"content":"b"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
        let answer = whole(body).unwrap();
        assert_eq!(answer.alternatives.len(), 2);
        assert_eq!(answer.alternatives[1][0].get(), r#"{"content":"b","role":"assistant"}"#);
        assert!(matches!(whole(b"{}"), Err(NoAnswer::Form(_))));
        assert!(matches!(whole(b"\xff"), Err(NoAnswer::Form(_))));
    }
}
