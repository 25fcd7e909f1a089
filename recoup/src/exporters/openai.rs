//! `openai`: rows for OpenAI's fine-tuning and for everybody who took its form over.
//!
//! To imitate: `{"messages": […], "tools": […]}`, where each message of the assistant has a `weight`, 0 or 1.
//! To prefer: `{"input": {"messages", "tools"}, "preferred_output": […], "non_preferred_output": […]}`.
//! Arguments are the text that the model wrote; every call has an id of its own, and its result follows before
//! anybody else speaks, as OpenAI demands.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::chat::{chat_messages_with_text, shapes, tools};
use super::learned::learned_whole;
use super::shape::{Key, Shape, key, optional};
use super::trl::with;
use super::trl_preference::require_pair;
use super::{Exporter, Refusal};
use crate::views::{Example, Objective};

/// See the module.
pub(super) struct OpenAi;

const TOOL_CALL_ID: Key = key("tool_call_id", Shape::Text);
const MESSAGE: Shape = Shape::Either(&[
    Shape::Object(&[key("role", Shape::Word(&["system", "user"])), shapes::CONTENT]),
    Shape::Object(&[
        key("role", Shape::Word(&["assistant"])),
        optional("content", Shape::Text),
        shapes::CALLS_WITH_TEXT,
        optional("weight", Shape::Integer),
    ]),
    Shape::Object(&[key("role", Shape::Word(&["tool"])), TOOL_CALL_ID, shapes::CONTENT]),
]);
const ANSWER: Shape = Shape::List(&Shape::Object(&[
    key("role", Shape::Word(&["assistant"])),
    optional("content", Shape::Text),
    shapes::CALLS_WITH_TEXT,
]));

/// The conversation, without what the form has no place for.
fn messages(example: &Example) -> Result<Vec<Value>, Refusal> {
    let mut messages = chat_messages_with_text(example)?;
    for message in messages.iter_mut().filter_map(Value::as_object_mut) {
        if message.contains_key("reasoning_content") {
            return Err(Refusal::because("reasoning-not-carried"));
        }
        // A result names its call, which names the tool.
        message.shift_remove("name");
        if message.contains_key("tool_calls") && message.get("content").is_some_and(|content| content == "") {
            message.shift_remove("content");
        }
    }
    require_results(&messages)?;
    Ok(messages)
}

/// # Errors
/// Where somebody speaks before all calls of a message have their results. The last message may call and have none.
fn require_results(messages: &[Value]) -> Result<(), Refusal> {
    let mut open = BTreeSet::new();
    for message in messages {
        match message["tool_call_id"].as_str() {
            Some(id) => _ = open.remove(id),
            None if open.is_empty() => {}
            None => return Err(Refusal::because("call-without-its-result")),
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.filter_map(|call| call["id"].as_str()));
    }
    Ok(())
}

fn with_tools(mut row: Map<String, Value>, example: &Example) -> Value {
    row.extend(tools(example).map(|tools| ("tools".to_owned(), tools.into())));
    row.into()
}

impl Exporter for OpenAi {
    fn format(&self) -> &'static str {
        "openai"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let mut messages = messages(example)?;
        let learned = learned_whole(example, &messages)?;
        for (message, learned) in messages.iter_mut().zip(learned) {
            if let Some((_, learned)) = learned {
                message["weight"] = json!(u8::from(learned));
            }
        }
        Ok(with_tools(Map::from_iter([("messages".to_owned(), messages.into())]), example))
    }

    fn pair(&self, chosen: &Example, rejected: &Example) -> Result<Value, Refusal> {
        require_pair(chosen, rejected)?;
        let mut input = messages(chosen)?;
        let better = input.pop();
        let worse = messages(rejected)?.pop();
        let input = with_tools(Map::from_iter([("messages".to_owned(), input.into())]), chosen);
        Ok(json!({"input": input, "preferred_output": [better], "non_preferred_output": [worse]}))
    }

    fn shape(&self) -> &'static Shape {
        const MESSAGES: Key = key("messages", Shape::List(&MESSAGE));
        const TOOLS: Key = optional("tools", shapes::TOOLS);
        const ROW: Shape = Shape::Either(&[
            Shape::Object(&[MESSAGES, TOOLS]),
            Shape::Object(&[
                key("input", Shape::Object(&[MESSAGES, TOOLS])),
                key("preferred_output", ANSWER),
                key("non_preferred_output", ANSWER),
            ]),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "`weight` of each message of the assistant, 0 or 1"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        match objective {
            Objective::MeanPerExample => with(BTreeMap::new(), "batch_size", 1),
            _ => BTreeMap::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::require_results;

    #[test]
    fn results_follow_their_calls_before_anybody_else_speaks() {
        let calls = |ids: &[&str]| {
            let calls: Vec<Value> = ids.iter().map(|id| json!({"id": id})).collect();
            json!({"role": "assistant", "tool_calls": calls})
        };
        let result = |id: &str| json!({"role": "tool", "tool_call_id": id});
        let user = json!({"role": "user"});
        let is_fine = |messages: &[Value]| require_results(messages).is_ok();
        assert!(is_fine(&[
            user.clone(),
            calls(&["a", "b"]),
            result("b"),
            result("a"),
            user.clone(),
            calls(&["c"])
        ]));
        assert!(!is_fine(&[calls(&["a", "b"]), result("a"), user.clone(), result("b")]));
        assert!(!is_fine(&[calls(&["a"]), calls(&["b"]), result("b")]));
    }
}
