//! Histories: what a conversation has said up to one of its messages, read back from the journal. A request that goes on
//! from an answer which its upstream keeps brings none of it, and a teacher elsewhere has to be told.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use recoup::importers::recoup_proxy::Entry;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Items that nobody but their own upstream understands.
const OWN: [&str; 2] = ["reasoning", "item_reference"];
/// Members by which an upstream knows its own items.
const MARKS: [&str; 2] = ["id", "status"];

/// A message with the one before it.
struct Said {
    before: Option<u32>,
    /// What a teacher is told of it.
    told: Option<Value>,
}

/// The items up to a message, oldest first. Instructions count for their own request alone, as the API has it; `None` where
/// the lines do not hold them all.
pub(super) fn up_to(lines: &[u8], message: u32) -> Option<Vec<Value>> {
    let mut said: HashMap<u32, Said> = HashMap::new();
    let mut asked: HashMap<u32, Option<u32>> = HashMap::new();
    for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        match Entry::parse(line).ok()? {
            Entry::Begin(begin) => {
                let mut before = begin.parent;
                for (place, raw) in begin.messages.iter().enumerate() {
                    let number = begin.first.checked_add(u32::try_from(place).ok()?)?;
                    let item = item(raw).filter(|item| place > 0 || item["role"] != "system");
                    said.insert(number, Said { before, told: item });
                    before = Some(number);
                }
                asked.insert(begin.request, before);
            }
            Entry::End(end) => {
                let mut number = end.first;
                for alternative in &end.answers {
                    let mut before = asked.get(&end.request).copied().flatten();
                    for raw in alternative {
                        said.insert(number, Said { before, told: item(raw) });
                        before = Some(number);
                        number = number.checked_add(1)?;
                    }
                }
            }
            Entry::Label(_) | Entry::Outcome(_) => {}
        }
    }
    let mut items = Vec::new();
    let mut next = Some(message);
    // Each is taken out, so that no chain goes in a circle.
    while let Some(number) = next {
        let Said { before, told } = said.remove(&number)?;
        items.extend(told);
        next = before;
    }
    items.reverse();
    Some(items)
}

/// An item as another server takes it.
fn item(raw: &RawValue) -> Option<Value> {
    let mut item: Map<String, Value> = serde_json::from_str(raw.get()).ok()?;
    if item.get("type").and_then(Value::as_str).is_some_and(|kind| OWN.contains(&kind)) {
        return None;
    }
    for mark in MARKS {
        item.remove(mark);
    }
    Some(Value::Object(item))
}

/// The body of a request that says its whole history itself.
pub(super) fn told(body: &[u8], history: Vec<Value>) -> Option<Vec<u8>> {
    let mut members: BTreeMap<Cow<'_, str>, Box<RawValue>> = serde_json::from_slice(body).ok()?;
    let mut input = history;
    match serde_json::from_str(members.get("input")?.get()).ok()? {
        Value::Array(items) => input.extend(items),
        text => input.push(serde_json::json!({ "role": "user", "content": text })),
    }
    members.insert("input".into(), to_raw_value(&input).ok()?);
    members.remove("previous_response_id");
    serde_json::to_vec(&members).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{told, up_to};

    #[test]
    fn a_history_is_put_together_from_its_pieces() {
        let begin = |request: u32, parent: Option<u32>, first: u32, messages: Value| {
            json!({ "recoup_proxy": "begin", "conversation": "c", "request": request, "at": "", "api": "responses", "client": "",
                "actor": "student", "turn": request, "parent": parent, "first": first, "messages": messages })
        };
        let end = |request: u32, first: u32, answers: Value| json!({ "recoup_proxy": "end", "conversation": "c", "request": request, "at": "", "first": first, "answers": answers, "seconds": 0.0 });
        let lines = [
            begin(
                0,
                None,
                0,
                json!([{ "role": "system", "content": "Be brief." }, { "role": "user", "content": "hi" }]),
            ),
            end(
                0,
                2,
                json!([[{ "type": "reasoning", "id": "r" },
                { "type": "function_call", "id": "fc", "status": "completed", "call_id": "c", "name": "go", "arguments": "{}" }]]),
            ),
            begin(
                1,
                Some(3),
                4,
                json!([{ "type": "function_call_output", "call_id": "c", "output": "a wall" }]),
            ),
            end(1, 5, json!([[{ "type": "message", "id": "m", "role": "assistant", "content": [] }]])),
        ];
        let lines = lines.map(|line| line.to_string()).join("\n");
        let history = up_to(lines.as_bytes(), 5).unwrap();
        let expected = json!([{ "role": "user", "content": "hi" },
            { "type": "function_call", "call_id": "c", "name": "go", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c", "output": "a wall" },
            { "type": "message", "role": "assistant", "content": [] }]);
        assert_eq!(Value::Array(history.clone()), expected);
        assert_eq!(up_to(lines.as_bytes(), 9), None, "what the journal does not hold is not guessed");
        let body =
            told(br#"{"model":"t","previous_response_id":"r1","input":"go on","n":1.50}"#, history).unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["input"][4], json!({ "role": "user", "content": "go on" }));
        assert!(body.get("previous_response_id").is_none());
    }
}
