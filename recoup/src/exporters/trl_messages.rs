//! `trl-messages`: `{"messages": […], "tools": "…"}`, the whole conversation in one row.
//!
//! TRL reads no weight for a message: with `assistant_only_loss` it learns every assistant message of
//! the row. So a row is refused unless exactly that is meant, and `trl-prompt-completion` carries it
//! step by step instead.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat::{chat_messages, shapes, tools_text};
use super::learned::require_all;
use super::shape::{Shape, key};
use super::trl::{one_row_a_step, with};
use super::{Exporter, Refusal};
use crate::views::{Example, Objective};

/// See the module.
pub struct TrlMessages;

impl Exporter for TrlMessages {
    fn format(&self) -> &'static str {
        "trl-messages"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        require_all(example)?;
        Ok(json!({"messages": chat_messages(example)?, "tools": tools_text(example)}))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[key("messages", shapes::MESSAGES), key("tools", Shape::Text)]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "every message of the assistant is learned; rows where one is not are refused"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        with(one_row_a_step(objective), "assistant_only_loss", true)
    }

    /// One message of the first row says `train`, so that `messages` has mixed keys and `datasets`
    /// keeps the column as JSON (docs/decisions/0002-trl-rows.md).
    fn open(&self, row: &mut Value) {
        row["messages"][0]["train"] = json!(false);
    }
}
