//! `tinker`: `{"messages": […], "tools": "…"}` with `trainable` on every message, as tinker-cookbook's renderers read
//! it under `TrainOnWhat.CUSTOMIZED`; a preference is a labelled comparison.
//!
//! Content is a list of parts in every message, since readers infer one type for all of a file. A call's
//! arguments are the text that the model wrote.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat::{chat_messages_with_text, shapes, tools_text};
use super::learned::learned_whole;
use super::shape::{Shape, key, optional};
use super::trl::with;
use super::trl_preference::require_pair;
use super::{Exporter, Refusal};
use crate::views::{Example, Objective};

/// See the module.
pub(super) struct Tinker;

const PART: Shape = Shape::Either(&[
    Shape::Object(&[key("type", Shape::Word(&["text"])), key("text", Shape::Text)]),
    Shape::Object(&[key("type", Shape::Word(&["thinking"])), key("thinking", Shape::Text)]),
]);
const MESSAGES: Shape = Shape::List(&Shape::Object(&[
    shapes::ROLE,
    key("content", Shape::List(&PART)),
    shapes::NAME,
    shapes::CALLS_WITH_TEXT,
    shapes::TOOL_CALL_ID,
    optional("trainable", Shape::Flag),
]));

fn messages(example: &Example) -> Result<Vec<Value>, Refusal> {
    let mut messages = chat_messages_with_text(example)?;
    for message in &mut messages {
        let reasoning = message.as_object_mut().and_then(|members| members.shift_remove("reasoning_content"));
        let thinking = reasoning.map(|reasoning| json!({"type": "thinking", "thinking": reasoning}));
        let text = (message["content"] != "").then(|| json!({"type": "text", "text": message["content"]}));
        message["content"] = thinking.into_iter().chain(text).collect();
    }
    Ok(messages)
}

impl Exporter for Tinker {
    fn format(&self) -> &'static str {
        "tinker"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let mut messages = messages(example)?;
        let learned = learned_whole(example, &messages)?;
        for (message, learned) in messages.iter_mut().zip(learned) {
            message["trainable"] = json!(learned.is_some_and(|(_, learned)| learned));
        }
        Ok(json!({"messages": messages, "tools": tools_text(example)}))
    }

    fn pair(&self, chosen: &Example, rejected: &Example) -> Result<Value, Refusal> {
        require_pair(chosen, rejected)?;
        if !chosen.tools.is_empty() {
            // A comparison has no place for them.
            return Err(Refusal::because("tools-in-a-preference"));
        }
        let mut prompt = messages(chosen)?;
        let better = prompt.pop();
        let worse = messages(rejected)?.pop();
        Ok(json!({
            "comparison": {"prompt_conversation": prompt, "completion_A": [better], "completion_B": [worse]},
            "label": "A",
        }))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Either(&[
            Shape::Object(&[key("messages", MESSAGES), key("tools", Shape::Text)]),
            Shape::Object(&[
                key(
                    "comparison",
                    Shape::Object(&[
                        key("prompt_conversation", MESSAGES),
                        key("completion_A", MESSAGES),
                        key("completion_B", MESSAGES),
                    ]),
                ),
                key("label", Shape::Word(&["A"])),
            ]),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "`trainable` of each message"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        let settings = match objective {
            Objective::Preference => return BTreeMap::new(),
            Objective::MeanPerExample => with(BTreeMap::new(), "batch_size", 1),
            _ => BTreeMap::new(),
        };
        with(settings, "train_on_what", "customized")
    }
}
