//! `trl-kto`: `{"prompt": […], "completion": […], "label": true, "tools": "…"}`, answers that are wanted or not.

use serde_json::{Value, json};

use super::chat::{shapes, tools_text};
use super::shape::{Shape, key};
use super::trl_prompt_completion::prompt_and_completion;
use super::{Exporter, Refusal};
use crate::views::Example;

/// See the module.
pub struct TrlKto;

impl Exporter for TrlKto {
    fn format(&self) -> &'static str {
        "trl-kto"
    }

    fn row(&self, _: &Example) -> Result<Value, Refusal> {
        Err(Refusal::OBJECTIVE)
    }

    fn labelled(&self, example: &Example, is_wanted: bool) -> Result<Value, Refusal> {
        let (prompt, completion) = prompt_and_completion(example)?;
        Ok(json!({
            "prompt": prompt, "completion": [completion], "label": is_wanted, "tools": tools_text(example),
        }))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[
            key("prompt", shapes::MESSAGES),
            key("completion", shapes::ANSWER),
            key("label", Shape::Flag),
            key("tools", Shape::Text),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "one labelled message a row, which is its completion"
    }

    /// The messages of the first row say `train` (see [`super::TrlMessages`]).
    fn open(&self, row: &mut Value) {
        row["prompt"][0]["train"] = json!(false);
        row["completion"][0]["train"] = json!(true);
    }
}
