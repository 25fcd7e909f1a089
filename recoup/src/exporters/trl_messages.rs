//! `trl-messages`: `{"messages": […], "tools": "…"}`, the whole conversation in one row.
//!
//! TRL reads no weight for a message: with `assistant_only_loss` it learns every assistant message of
//! the row. So a row is refused unless exactly that is meant, and `trl-prompt-completion` carries it
//! step by step instead.

use serde_json::{Value, json};

use super::chat::{chat_messages, tools_text};
use super::{Exporter, Refusal};
use crate::trajectory::Role;
use crate::views::Example;

/// See the module.
pub struct TrlMessages;

impl Exporter for TrlMessages {
    fn format(&self) -> &'static str {
        "trl-messages"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let mut messages = example.context.iter().enumerate();
        if !messages.all(|(index, message)| message.role != Role::Assistant || example.learns_all_of(index)) {
            return Err(Refusal::because("an-assistant-message-is-not-learned"));
        }
        Ok(json!({"messages": chat_messages(example)?, "tools": tools_text(example)}))
    }

    fn train_with(&self) -> &'static [(&'static str, bool)] {
        &[("assistant_only_loss", true)]
    }

    /// One message of the first row says `train`, so that `messages` has mixed keys and `datasets`
    /// keeps the column as JSON (docs/decisions/0002-trl-rows.md).
    fn open(&self, row: &mut Value) {
        row["messages"][0]["train"] = json!(false);
    }
}
