//! `parquet`: examples as they are, one a row, for programs that know what they want of them.
//!
//! Nothing is left out and nothing refused: weights, pairs, labels of steps and the tokens that a policy sampled
//! stand in columns of their own, structured ones as JSON text.

use serde_json::{Map, Value, json};

use super::shape::{Shape, key, optional};
use super::{Exporter, Refusal};
use crate::views::Example;

/// See the module.
pub(super) struct Plain;

impl Exporter for Plain {
    fn format(&self) -> &'static str {
        "parquet"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let lineage = &example.lineage;
        let mut row = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            row.extend(value.map(|value| (name.to_owned(), value)));
        };
        let text = |value: Value| Some(Value::from(value.to_string()));
        set("id", Some(example.content_hash().to_string().into()));
        set("view", Some(lineage.view.as_str().into()));
        set("trajectory", Some(lineage.trajectory.to_string().into()));
        set("task", Some(lineage.task.0.as_str().into()));
        set("licence", Some(lineage.licence.as_str().into()));
        set("split", Some(lineage.side.as_str().into()));
        set("objective", Some(json!(example.objective)));
        set("messages", text(json!(example.context)));
        set("tools", text(json!(example.tools)));
        set("learned", text(json!(example.segments)));
        set("pair", example.pair.as_ref().map(|pair| pair.id.as_str().into()));
        set("chosen", example.pair.as_ref().map(|pair| pair.chosen.into()));
        set("group", example.group.as_deref().map(Value::from));
        set("desirable", example.desirable.map(Value::from));
        set(
            "step_labels",
            (!example.step_labels.is_empty()).then(|| json!(example.step_labels).to_string().into()),
        );
        set("lineage", text(json!(lineage)));
        set("teacher_logprobs", example.teacher_logprobs.as_ref().map(|all| json!(all).to_string().into()));
        Ok(row.into())
    }

    fn carries_everything(&self) -> bool {
        true
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[
            key("id", Shape::Text),
            key("view", Shape::Text),
            key("trajectory", Shape::Text),
            key("task", Shape::Text),
            key("licence", Shape::Text),
            key("split", Shape::Text),
            key("objective", Shape::Text),
            key("messages", Shape::Text),
            key("tools", Shape::Text),
            key("learned", Shape::Text),
            key("lineage", Shape::Text),
            optional("pair", Shape::Text),
            optional("chosen", Shape::Flag),
            optional("group", Shape::Text),
            optional("desirable", Shape::Flag),
            optional("step_labels", Shape::Text),
            optional("teacher_logprobs", Shape::Text),
        ]);
        &ROW
    }

    fn is_columnar(&self) -> bool {
        true
    }

    fn mask(&self) -> &'static str {
        "`learned`, the byte ranges of each message's parts with their weights"
    }
}
