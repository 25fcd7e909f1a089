//! `trl-prompt-completion`: `{"prompt": […], "completion": [one assistant message], "tools": "…"}`,
//! one learned step a row: the form that carries a mask into TRL, which learns completions only.

use serde_json::{Value, json};

use super::chat::{chat_messages, tools_text};
use super::{Built, Exporter, Refusal};
use crate::trajectory::Role;
use crate::views::Example;

/// See the module.
pub struct TrlPromptCompletion;

impl Exporter for TrlPromptCompletion {
    fn format(&self) -> &'static str {
        "trl-prompt-completion"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let last = example.context.len().checked_sub(1).ok_or(Refusal::because("no-message"))?;
        if example.context[last].role != Role::Assistant || !example.learns_all_of(last) {
            return Err(Refusal::because("last-message-is-not-learned"));
        }
        if example.segments.iter().any(|segment| segment.message != last) {
            return Err(Refusal::because("several-learned-messages"));
        }
        let mut prompt = chat_messages(example)?;
        let completion = prompt.pop().ok_or(Refusal::because("no-message"))?;
        if prompt.is_empty() {
            return Err(Refusal::because("no-prompt"));
        }
        Ok(json!({"prompt": prompt, "completion": [completion], "tools": tools_text(example)}))
    }

    /// One row a learned message: what TRL learns of a row is its completion.
    fn rows(&self, example: Example) -> Vec<Built> {
        let steps = example.steps();
        if steps.is_empty() {
            let row = Err(Refusal::because("no-learned-message"));
            return vec![Built { example, row, tokens: None }];
        }
        steps.into_iter().map(|example| Built { row: self.row(&example), example, tokens: None }).collect()
    }

    /// The messages of the first row say `train` (see [`super::TrlMessages`]).
    fn open(&self, row: &mut Value) {
        row["prompt"][0]["train"] = json!(false);
        row["completion"][0]["train"] = json!(true);
    }
}
