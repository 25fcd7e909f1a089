//! `trl-tokenized`: `{"input_ids": […], "labels": […]}`, tokens whose mask is proved.
//!
//! TRL uses labels as they stand: -100 is not learned. A row is made for one model, with its own template
//! and tokenizer. Where the template allows the proof of a last turn only, an example goes out one learned
//! message a row; where it is longer than the model's context, in windows. Rows of text are proved by the same masks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::chat::{chat_messages, tools};
use super::learned::learned_whole;
use super::shape::{Shape, key};
use super::trl::one_row_a_step;
use super::windows::windows;
use super::writer::leftover;
use super::{Built, ExportOptions, Exporter, Prover, Refusal, TokenCounts, Training};
use crate::templates::{ChatFormat, Conversation, MaskedRow, Refused, RenderOptions, Target, mask};
use crate::views::{Example, Objective};

/// The format's name.
pub const FORMAT: &str = "trl-tokenized";
/// The label of a token that is not learned.
pub const IGNORED: i64 = -100;
/// Why a row has no place in the model's context.
const LONGER: &str = Refused::TooLong { tokens: 0, limit: 0 }.reason();

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

    /// Whether its rows are a form for what a trainer should make of a view; answers that are compared or labelled go
    /// out as text.
    pub fn carries(objective: Objective) -> bool {
        matches!(objective, Objective::TokenSum | Objective::MeanPerExample)
    }

    /// A training file for TRL as this model takes it: its tokens where they are a form for the view, else text
    /// that is proved for it.
    pub fn made_for<'a>(&'a self, training: Training<'a>) -> Training<'a> {
        if Self::carries(training.view.objective()) {
            return Training { exporter: self, ..training };
        }
        Training { options: ExportOptions { prover: Some(self), ..training.options }, ..training }
    }

    /// The model's chat format.
    pub fn format(&self) -> &ChatFormat {
        &self.format
    }

    /// The masked row of an example, or why it has none.
    fn masked(&self, example: &Example) -> Result<MaskedRow, Refusal> {
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

    /// Tokens of an example; none where it has no text, which its row will say.
    fn length(&self, example: &Example) -> usize {
        let Ok(messages) = chat_messages(example) else { return 0 };
        let tools = tools(example);
        let conversation = Conversation { messages: &messages, tools: tools.as_deref() };
        let rendering = self.format.render(&conversation, RenderOptions::default());
        let encoded = rendering.ok().and_then(|text| self.format.tokenizer().encode(&text.text).ok());
        encoded.map_or(0, |encoded| encoded.ids.len())
    }

    /// The rows of an example that fits: one, or one for each learned message where only the last turn of a
    /// conversation can be proved.
    fn fitting(&self, example: Example, windows: u64) -> Vec<Built> {
        let built = |example: Example| {
            let row = self.masked(&example);
            let tokens = row.as_ref().ok().map(|row| TokenCounts { windows, ..counts(&example, row) });
            Built { tokens, ..Built::one(example, row.map(|row| written(&row))) }
        };
        let whole = built(example);
        let last_turns_only = [Refused::OneMethodOnly.reason(), Refused::MethodsDisagree.reason()];
        match &whole.row {
            Err(refusal) if last_turns_only.contains(&refusal.reason) => {
                whole.example.steps().into_iter().map(built).collect()
            }
            _ => vec![whole],
        }
    }
}

/// The row as TRL reads it.
fn written(row: &MaskedRow) -> Value {
    let label = |(id, weight): (&u32, &f32)| if *weight == 0.0 { IGNORED } else { i64::from(*id) };
    let labels: Vec<i64> = row.ids.iter().zip(&row.weights).map(label).collect();
    json!({"input_ids": row.ids, "labels": labels})
}

fn counts(example: &Example, row: &MaskedRow) -> TokenCounts {
    let learned = (0..example.context.len()).filter(|index| example.segments_of(*index).next().is_some());
    let is_recorded =
        |index: &usize| example.context.get(*index).is_some_and(|shown| shown.sampled.is_some());
    let (recorded, retokenized): (Vec<usize>, Vec<usize>) = learned.partition(is_recorded);
    TokenCounts {
        tokens: row.ids.len() as u64,
        trained_tokens: row.trained() as u64,
        recorded: recorded.len() as u64,
        recorded_otherwise: row.recorded_otherwise as u64,
        retokenized: retokenized.len() as u64,
        straddling: row.straddling as u64,
        windows: 0,
    }
}

/// What is learned, by the index of its chat message.
fn targets<'a>(example: &'a Example, messages: &[Value]) -> Result<Vec<Target<'a>>, Refusal> {
    let learned = learned_whole(example, messages)?.into_iter().enumerate();
    let target = |(message, learned): (usize, Option<(usize, bool)>)| {
        let (index, _) = learned.filter(|(_, learned)| *learned)?;
        let sampled = example.context.get(index)?.sampled.as_ref();
        Some(Target { message, weight: 1.0, completion_ids: sampled.map(|sampled| sampled.ids.as_slice()) })
    };
    Ok(learned.filter_map(target).collect())
}

impl Prover for TrlTokenized {
    fn prove(&self, example: &Example) -> Result<TokenCounts, Refusal> {
        self.masked(example).map(|row| counts(example, &row))
    }
}

impl Exporter for TrlTokenized {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        self.masked(example).map(|row| written(&row))
    }

    fn rows(&self, example: Example) -> Vec<Built> {
        let built = self.fitting(example, 0);
        let [Built { example, row: Err(refusal), .. }] = built.as_slice() else { return built };
        let cut = match self.format.tokens_max() {
            Some(limit) if refusal.reason == LONGER => windows(example, limit, &|window| self.length(window)),
            _ => None,
        };
        match cut {
            Some(windows) => windows.into_iter().flat_map(|window| self.fitting(window, 1)).collect(),
            None => built,
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

    fn mask(&self) -> &'static str {
        "`labels`, -100 where a token is not learned"
    }

    fn train_with(&self, objective: Objective) -> BTreeMap<String, Value> {
        one_row_a_step(objective)
    }
}
