//! `verl` and `verl-rl`: Parquet rows for verl's supervised training, and prompts for its reinforcement learning.
//!
//! Columns are typed, so a call's arguments and the tools are JSON text: as nested columns, the keys of one call
//! would appear with nulls in all others. verl hands `tools` to the chat template as they stand, so the loader
//! written beside the rows, `recoup_verl.py`, reads the texts before verl does. verl learns every message of the
//! assistant, so rows where one is not learned are refused.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::chat::{chat_messages_with_text, shapes, tools};
use super::learned::require_all;
use super::shape::{Shape, key, optional};
use super::trl::with;
use super::{Exporter, Manifest, Refusal};
use crate::views::{Example, Objective};

/// See the module.
pub(super) struct VerlSft;

/// See the module.
pub(super) struct VerlRl;

/// The loader's file, which verl is told of by `data.custom_cls.path`.
const LOADER: &str = "recoup_verl.py";
const LOADER_TEXT: &str = include_str!("recoup_verl.py");

const MESSAGES: Shape = Shape::List(&Shape::Object(&[
    shapes::ROLE,
    shapes::CONTENT,
    shapes::NAME,
    shapes::TOOL_CALL_ID,
    shapes::REASONING,
    shapes::CALLS_WITH_TEXT,
]));

impl Exporter for VerlSft {
    fn format(&self) -> &'static str {
        "verl"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        require_all(example)?;
        let mut row = Map::from_iter([("messages".to_owned(), chat_messages_with_text(example)?.into())]);
        let text = |tools| ("tools".to_owned(), Value::Array(tools).to_string().into());
        row.extend(tools(example).map(text));
        Ok(row.into())
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[key("messages", MESSAGES), optional("tools", Shape::Text)]);
        &ROW
    }

    fn is_columnar(&self) -> bool {
        true
    }

    fn mask(&self) -> &'static str {
        "every message of the assistant is learned; rows where one is not are refused"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        let settings = match objective {
            Objective::MeanPerExample => with(BTreeMap::new(), "data.train_batch_size", 1),
            _ => BTreeMap::new(),
        };
        let settings = with(settings, "data.custom_cls.path", LOADER);
        with(settings, "data.custom_cls.name", "RecoupSFTDataset")
    }

    fn companions(&self, _: &Path, _: &Manifest) -> std::io::Result<Vec<(&'static str, String)>> {
        Ok(vec![(LOADER, LOADER_TEXT.to_owned())])
    }
}

impl Exporter for VerlRl {
    fn format(&self) -> &'static str {
        "verl-rl"
    }

    /// What stands before the first message that is learned, and the task's key, by which a reward function
    /// finds what the policy's answer is held against: answers themselves never leave.
    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let first = example.segments.iter().map(|segment| segment.message).min();
        let mut prompt = example.clone();
        prompt.context.truncate(first.ok_or(Refusal::because("nothing-is-learned"))?);
        if prompt.context.is_empty() {
            return Err(Refusal::because("no-prompt"));
        }
        let lineage = &example.lineage;
        Ok(json!({
            "data_source": format!("recoup/{}", lineage.view),
            "prompt": chat_messages_with_text(&prompt)?,
            "ability": "agent",
            "reward_model": {"style": "rule", "ground_truth": lineage.task.0},
            "extra_info": {
                "split": lineage.side.as_str(),
                "index": example.content_hash().to_string(),
                "trajectory": lineage.trajectory.to_string(),
                "tools": tools(example).map(|tools| Value::Array(tools).to_string()).unwrap_or_default(),
            },
        }))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[
            key("data_source", Shape::Text),
            key("prompt", MESSAGES),
            key("ability", Shape::Text),
            key(
                "reward_model",
                Shape::Object(&[key("style", Shape::Word(&["rule"])), key("ground_truth", Shape::Text)]),
            ),
            key(
                "extra_info",
                Shape::Object(&[
                    key("split", Shape::Text),
                    key("index", Shape::Text),
                    key("trajectory", Shape::Text),
                    key("tools", Shape::Text),
                ]),
            ),
        ]);
        &ROW
    }

    fn is_columnar(&self) -> bool {
        true
    }

    fn mask(&self) -> &'static str {
        "prompts only: what is learned is what the policy will sample"
    }
}
