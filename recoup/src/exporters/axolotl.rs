//! `axolotl`: rows for axolotl's `chat_template` type, and for its `chat_template.default` of preferences.
//!
//! To imitate: `{"messages": […], "tools": "…"}`, where each message of the assistant has `train`, and content
//! that is learned in part is a list of texts with a `train` each. Arguments are JSON text, which axolotl parses, so
//! that no reader merges the arguments of different calls. `tools` is the text of a list: axolotl refuses `null` there.
//! To prefer: `{"messages": […], "chosen": {…}, "rejected": {…}}`; axolotl reads nothing but role and content there.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::chat::{chat_messages, chat_messages_with_text, shapes, tools};
use super::learned::{Learned, learned};
use super::shape::{Shape, key};
use super::trl::with;
use super::trl_preference::require_pair;
use super::{Exporter, Refusal};
use crate::trajectory::Part;
use crate::views::{Example, Objective};

/// See the module.
pub(super) struct Axolotl;

const PART: Shape = Shape::Object(&[
    key("type", Shape::Word(&["text"])),
    key("text", Shape::Text),
    key("train", Shape::Flag),
]);
const MESSAGE: Shape = Shape::Object(&[
    shapes::ROLE,
    key("content", Shape::Either(&[Shape::Text, Shape::List(&PART)])),
    shapes::NAME,
    shapes::TOOL_CALL_ID,
    shapes::REASONING,
    shapes::CALLS_WITH_TEXT,
    shapes::TRAIN,
]);
const PLAIN: Shape = Shape::Object(&[shapes::ROLE, shapes::CONTENT]);

/// The texts of a message that is learned in part, each whether it is learned.
fn parts(example: &Example, index: usize) -> Result<Vec<Value>, Refusal> {
    let refused = Refusal::because("a-part-of-a-call-or-of-reasoning-is-learned");
    let mut out = Vec::new();
    let mut push = |text: Option<&str>, train: bool| {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            out.push(json!({"type": "text", "text": text, "train": train}));
        }
    };
    for (position, part) in
        example.context.get(index).into_iter().flat_map(|message| message.parts.iter().enumerate())
    {
        // Only content has parts; what stands beside it would be learned or not with the whole message.
        let Part::Text(part) = part else { return Err(refused) };
        let mut done = 0;
        for segment in example.segments_of(index).filter(|segment| segment.part_path == [position]) {
            push(part.text.get(done..segment.start), false);
            push(part.text.get(segment.start..segment.end), true);
            done = segment.end;
        }
        push(part.text.get(done..), false);
    }
    // The token that ends a message is learned with the message.
    if out.last().is_none_or(|last: &Value| last["train"] != true) {
        return Err(Refusal::because("a-message-is-learned-without-its-end"));
    }
    Ok(out)
}

impl Exporter for Axolotl {
    fn format(&self) -> &'static str {
        "axolotl"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let mut messages = chat_messages_with_text(example)?;
        let learned = learned(example, &messages);
        for (message, learned) in messages.iter_mut().zip(learned) {
            match learned {
                None => {}
                Some((_, Learned::Nothing)) => message["train"] = json!(false),
                Some((_, Learned::All)) => message["train"] = json!(true),
                Some((index, Learned::Part)) => {
                    message["content"] = parts(example, index)?.into();
                    message["train"] = json!(true);
                }
            }
        }
        let tools = Value::Array(tools(example).unwrap_or_default()).to_string();
        Ok(json!({"messages": messages, "tools": tools}))
    }

    fn pair(&self, chosen: &Example, rejected: &Example) -> Result<Value, Refusal> {
        require_pair(chosen, rejected)?;
        if !chosen.tools.is_empty() {
            return Err(Refusal::because("tools-in-a-preference"));
        }
        let plain = |message: &Value| {
            let known = ["role", "content"];
            let members = message.as_object().ok_or(Refusal::because("no-message"))?;
            if members.keys().any(|key| !known.contains(&key.as_str())) {
                return Err(Refusal::because("more-than-content-in-a-preference"));
            }
            Ok(Value::Object(members.clone()))
        };
        let all =
            |example: &Example| chat_messages(example)?.iter().map(plain).collect::<Result<Vec<_>, _>>();
        let mut messages = all(chosen)?;
        let better = messages.pop();
        let worse = all(rejected)?.pop();
        let row = [("messages", Some(messages.into())), ("chosen", better), ("rejected", worse)];
        Ok(row
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value?)))
            .collect::<Map<_, _>>()
            .into())
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Either(&[
            Shape::Object(&[key("messages", Shape::List(&MESSAGE)), key("tools", Shape::Text)]),
            Shape::Object(&[
                key("messages", Shape::List(&PLAIN)),
                key("chosen", PLAIN),
                key("rejected", PLAIN),
            ]),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "`train` of each message of the assistant, or of each text of its content"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        let settings = match objective {
            Objective::Preference => return with(BTreeMap::new(), "type", "chat_template.default"),
            Objective::MeanPerExample => [
                ("micro_batch_size", json!(1)),
                ("gradient_accumulation_steps", json!(1)),
                ("sample_packing", json!(false)),
            ]
            .map(|(name, value)| (name.to_owned(), value))
            .into(),
            _ => BTreeMap::new(),
        };
        let settings = with(settings, "type", "chat_template");
        let settings = with(settings, "message_field_training", "train");
        with(settings, "train_on_inputs", false)
    }
}
