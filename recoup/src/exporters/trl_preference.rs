//! `trl-preference`: `{"prompt": […], "chosen": […], "rejected": […], "tools": "…"}`, a decision and its two
//! answers, for TRL's trainers of preferences.

use serde_json::{Value, json};

use super::chat::{shapes, tools_text};
use super::learned::require_last;
use super::shape::{Shape, key};
use super::trl_prompt_completion::prompt_and_completion;
use super::{Exporter, Refusal};
use crate::views::Example;

/// See the module.
pub struct TrlPreference;

/// # Errors
/// Where the halves differ before their last messages, or more is learned than those.
pub(super) fn require_pair(chosen: &Example, rejected: &Example) -> Result<(), Refusal> {
    let before = |example: &Example| example.context.len().saturating_sub(1);
    let same_state = before(chosen) == before(rejected)
        && chosen
            .context
            .iter()
            .zip(&rejected.context)
            .take(before(chosen))
            .all(|(left, right)| left.reads_as(right));
    if chosen.tools != rejected.tools || !same_state {
        return Err(Refusal::because("halves-differ-before-the-decision"));
    }
    require_last(chosen)?;
    require_last(rejected)
}

impl Exporter for TrlPreference {
    fn format(&self) -> &'static str {
        "trl-preference"
    }

    fn row(&self, _: &Example) -> Result<Value, Refusal> {
        Err(Refusal::OBJECTIVE)
    }

    fn pair(&self, chosen: &Example, rejected: &Example) -> Result<Value, Refusal> {
        require_pair(chosen, rejected)?;
        let (prompt, better) = prompt_and_completion(chosen)?;
        let (_, worse) = prompt_and_completion(rejected)?;
        Ok(json!({"prompt": prompt, "chosen": [better], "rejected": [worse], "tools": tools_text(chosen)}))
    }

    fn shape(&self) -> &'static Shape {
        const ROW: Shape = Shape::Object(&[
            key("prompt", shapes::MESSAGES),
            key("chosen", shapes::ANSWER),
            key("rejected", shapes::ANSWER),
            key("tools", Shape::Text),
        ]);
        &ROW
    }

    fn mask(&self) -> &'static str {
        "the two answers are compared; the prompt is context"
    }

    /// The messages of the first row say `train` (see [`super::TrlMessages`]).
    fn open(&self, row: &mut Value) {
        row["prompt"][0]["train"] = json!(false);
        row["chosen"][0]["train"] = json!(true);
        row["rejected"][0]["train"] = json!(true);
    }
}
