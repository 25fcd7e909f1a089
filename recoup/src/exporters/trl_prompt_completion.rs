//! `trl-prompt-completion`: `{"prompt": […], "completion": [one assistant message], "tools": "…"}`,
//! one learned step a row: the form that carries a mask into TRL, which learns completions only.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat::{chat_messages, shapes, tools_text};
use super::learned::require_last;
use super::rows::stepwise;
use super::shape::{Shape, key};
use super::trl::one_row_a_step;
use super::{Built, Exporter, Refusal};
use crate::views::{Example, Objective};

/// See the module.
pub struct TrlPromptCompletion;

/// The messages before the last, and the last.
pub(super) fn prompt_and_completion(example: &Example) -> Result<(Vec<Value>, Value), Refusal> {
    require_last(example)?;
    let mut prompt = chat_messages(example)?;
    let completion = prompt.pop().ok_or(Refusal::because("no-message"))?;
    if prompt.is_empty() {
        return Err(Refusal::because("no-prompt"));
    }
    Ok((prompt, completion))
}

impl Exporter for TrlPromptCompletion {
    fn format(&self) -> &'static str {
        "trl-prompt-completion"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let (prompt, completion) = prompt_and_completion(example)?;
        Ok(json!({"prompt": prompt, "completion": [completion], "tools": tools_text(example)}))
    }

    fn rows(&self, example: Example) -> Vec<Built> {
        stepwise(example, |step| self.row(step))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[
            key("prompt", shapes::MESSAGES),
            key("completion", shapes::ANSWER),
            key("tools", Shape::Text),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "one learned message a row, which is its completion"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        one_row_a_step(objective)
    }

    /// The messages of the first row say `train` (see [`super::TrlMessages`]).
    fn open(&self, row: &mut Value) {
        row["prompt"][0]["train"] = json!(false);
        row["completion"][0]["train"] = json!(true);
    }
}
