//! `unsloth`: `{"conversations": […], "tools": "…"}`, messages for Unsloth, one learned step a row.
//!
//! Unsloth finds what is learned by the words that begin an answer and a question, and between them a tool's
//! result would be learned too. Of a row only what follows the last of these words is certain, so each
//! learned message ends a row of its own.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat::{chat_messages, shapes, tools_text};
use super::learned::require_last;
use super::rows::stepwise;
use super::shape::{Shape, key};
use super::trl::{one_row_a_step, with};
use super::{Built, Exporter, Refusal};
use crate::views::{Example, Objective};

/// See the module.
pub(super) struct Unsloth;

impl Exporter for Unsloth {
    fn format(&self) -> &'static str {
        "unsloth"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        require_last(example)?;
        Ok(json!({"conversations": chat_messages(example)?, "tools": tools_text(example)}))
    }

    fn rows(&self, example: Example) -> Vec<Built> {
        stepwise(example, |step| self.row(step))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape =
            Shape::Object(&[key("conversations", shapes::MESSAGES), key("tools", Shape::Text)]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "one learned message a row, its last"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        let settings = with(one_row_a_step(objective), "train_on_responses_only", true);
        with(settings, "last_response_only", true)
    }

    /// See [`super::TrlMessages`].
    fn open(&self, row: &mut Value) {
        row["conversations"][0]["train"] = json!(false);
    }
}
