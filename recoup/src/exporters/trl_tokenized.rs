//! `trl-tokenized`: `{"input_ids": […], "labels": […]}`, tokens whose mask is proved.
//!
//! TRL uses labels as they stand: -100 is not learned. A row is made for one model, with its own template
//! and tokenizer. Where the template allows the proof of a last turn only, an example goes out one learned
//! message a row.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat::{chat_messages, tools};
use super::shape::{Shape, key};
use super::trl::one_row_a_step;
use super::writer::leftover;
use super::{Built, Exporter, Refusal};
use crate::templates::{ChatFormat, Conversation, MaskedRow, Refused, Target, mask};
use crate::trajectory::Role;
use crate::views::{Example, Objective};

/// The format's name.
pub const FORMAT: &str = "trl-tokenized";
/// The label of a token that is not learned.
pub const IGNORED: i64 = -100;

/// See the module.
#[derive(Debug)]
pub struct TrlTokenized {
    format: ChatFormat,
}

impl TrlTokenized {
    /// An exporter for a model.
    pub fn new(format: ChatFormat) -> Self {
        Self { format }
    }

    /// The model's chat format.
    pub fn format(&self) -> &ChatFormat {
        &self.format
    }

    /// The masked row of an example.
    ///
    /// # Errors
    /// Why it has none.
    pub fn masked(&self, example: &Example) -> Result<MaskedRow, Refusal> {
        if example.tools.iter().any(|tool| tool.parameters.is_none()) {
            return Err(Refusal::because("tool-without-schema"));
        }
        let messages = chat_messages(example)?;
        let tools = tools(example);
        let is_leftover = |values: &[Value]| values.iter().any(|value| leftover(value).is_some());
        if is_leftover(&messages) || tools.as_deref().is_some_and(is_leftover) {
            return Err(Refusal::because("leftover-in-the-text"));
        }
        let targets = targets(example, &messages)?;
        let conversation = Conversation { messages: &messages, tools: tools.as_deref() };
        mask(&conversation, &targets, &self.format).map_err(|refused| Refusal { reason: refused.reason() })
    }
}

/// What is learned, by the index of its chat message: the assistant's messages are as many and in the same
/// order as the example's.
fn targets<'a>(example: &'a Example, messages: &[Value]) -> Result<Vec<Target<'a>>, Refusal> {
    let rows = (0..messages.len()).filter(|index| messages[*index]["role"] == "assistant");
    let shown = example.context.iter().enumerate().filter(|(_, shown)| shown.role == Role::Assistant);
    let mut targets = Vec::new();
    for (message, (index, shown)) in rows.zip(shown) {
        if example.segments_of(index).next().is_none() {
            continue;
        }
        if !example.learns_all_of(index) {
            return Err(Refusal::because("a-part-of-a-message-is-learned"));
        }
        let completion_ids = shown.sampled.as_ref().map(|sampled| sampled.ids.as_slice());
        targets.push(Target { message, weight: 1.0, completion_ids });
    }
    Ok(targets)
}

impl Exporter for TrlTokenized {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        let row = self.masked(example)?;
        let label = |(id, weight): (&u32, &f32)| if *weight == 0.0 { IGNORED } else { i64::from(*id) };
        let labels: Vec<i64> = row.ids.iter().zip(&row.weights).map(label).collect();
        Ok(json!({"input_ids": row.ids, "labels": labels}))
    }

    fn rows(&self, example: Example) -> Vec<Built> {
        let row = self.row(&example);
        let last_turns_only = [Refused::OneMethodOnly.reason(), Refused::MethodsDisagree.reason()];
        match row {
            Err(refusal) if last_turns_only.contains(&refusal.reason) => {
                let steps = example.steps().into_iter();
                let built = |example| {
                    let row = self.row(&example);
                    Built::one(example, row)
                };
                steps.map(built).collect()
            }
            row => vec![Built::one(example, row)],
        }
    }

    fn shape(&self) -> &'static Shape {
        const TOKENS: Shape = Shape::List(&Shape::Integer);
        const ROW: Shape = Shape::Object(&[key("input_ids", TOKENS), key("labels", TOKENS)]);
        &ROW
    }

    fn is_text(&self) -> bool {
        false
    }

    fn tokens(&self, row: &Value) -> Option<(u64, u64)> {
        let labels = row["labels"].as_array()?;
        let learned = labels.iter().filter(|label| label.as_i64() != Some(IGNORED)).count();
        Some((labels.len() as u64, learned as u64))
    }

    fn mask(&self) -> &'static str {
        "`labels`, -100 where a token is not learned"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        one_row_a_step(objective)
    }
}
