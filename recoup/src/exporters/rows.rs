//! Rows: examples on their way into a format, halves of a preference together, weights carried or refused.

use std::fmt::Debug;

use serde_json::Value;

use super::{Exporter, TokenCounts};
use crate::id::Hash;
use crate::views::{Example, Objective, StepLabel};

/// An example, and its row or why it has none.
#[derive(Clone, Debug)]
pub struct Built {
    /// The example; of a preference, the better half, whose pair says what the worse one is.
    pub example: Example,
    /// How often the row is written: once, unless it was resampled by its weight.
    pub copies: u32,
    /// Its row.
    pub row: Result<Value, Refusal>,
    /// What of a row of tokens is counted.
    pub tokens: Option<TokenCounts>,
}

impl Built {
    /// What came of one example.
    pub fn one(example: Example, row: Result<Value, Refusal>) -> Self {
        Self { example, copies: 1, row, tokens: None }
    }
}

/// Why a format cannot carry an example.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("cannot be written: {reason}")]
pub struct Refusal {
    /// Stable words, by which manifests count.
    pub reason: &'static str,
}

impl Refusal {
    /// The format has no form for what a trainer should make of the example.
    pub(super) const OBJECTIVE: Self = Self::because("objective-not-carried");
    /// The format cannot say which of a conversation's messages are learned.
    pub(super) const MASK: Self = Self::because("an-assistant-message-is-not-learned");

    pub(super) const fn because(reason: &'static str) -> Self {
        Self { reason }
    }
}

/// Holds what rows of text say against the model that will be trained on them.
pub trait Prover: Debug + Sync {
    /// The tokens of an example in that model's words.
    ///
    /// # Errors
    /// Where it cannot be proved which of them are learned.
    fn prove(&self, example: &Example) -> Result<TokenCounts, Refusal>;
}

/// What a user decides about an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportOptions<'a> {
    /// Write a row of weight w as `⌊w⌋` rows and, with the probability of what is left, one more. The draw is
    /// the example's own hash, so it falls the same every time.
    pub resample: bool,
    /// The model that a row of text must be proved for.
    pub prover: Option<&'a dyn Prover>,
    /// Examples to show.
    pub previews: usize,
}

/// The rows of a view's examples. The two halves of a preference stand side by side.
pub fn build_rows(exporter: &dyn Exporter, examples: Vec<Example>, options: ExportOptions<'_>) -> Vec<Built> {
    let mut built = Vec::new();
    let mut examples = examples.into_iter().peekable();
    while let Some(example) = examples.next() {
        if exporter.carries_everything() {
            built.extend(exporter.rows(example).into_iter().map(|row| proved(row, None, options.prover)));
            continue;
        }
        let next = examples.peek().and_then(|next| next.pair.as_ref());
        let are_halves = example
            .pair
            .as_ref()
            .zip(next)
            .is_some_and(|(one, next)| one.id == next.id && one.chosen != next.chosen);
        let other = if are_halves { examples.next() } else { None };
        built.extend(rows_of(exporter, example, other, options));
    }
    built
}

fn rows_of(
    exporter: &dyn Exporter,
    mut example: Example,
    mut other: Option<Example>,
    options: ExportOptions<'_>,
) -> Vec<Built> {
    let refused = |example, reason| vec![Built::one(example, Err(Refusal::because(reason)))];
    if example.objective == Objective::GoalContrast {
        return refused(example, "goal-contrast-needs-a-loss-of-its-own");
    }
    if example.tools.iter().any(|tool| tool.parameters.is_none()) {
        return refused(example, "tool-without-schema");
    }
    let Some(weight) = weight(&example, other.as_ref()) else {
        return refused(example, "weights-differ-within-the-example");
    };
    let mut copies = 1;
    if weight.to_bits() != 1.0_f64.to_bits() {
        if !options.resample {
            return refused(example, "weight-not-carried");
        }
        copies = self::copies(weight, example.content_hash());
        if copies == 0 {
            return refused(example, "resampled-away");
        }
        for half in [Some(&mut example), other.as_mut()].into_iter().flatten() {
            half.segments.iter_mut().for_each(|segment| segment.weight = 1.0);
        }
    }
    let prover = options.prover;
    let built = match (example.objective, other) {
        (Objective::Preference, Some(other)) => {
            return vec![Built { copies, ..preference(exporter, example, other, prover) }];
        }
        (Objective::Preference, None) => return refused(example, "half-of-a-preference"),
        (Objective::Desirability, _) => match example.desirable {
            Some(is_wanted) => stepwise(example, |step| exporter.labelled(step, is_wanted)),
            None => return refused(example, "not-labelled"),
        },
        (Objective::StepRewards, _) => labelled_steps(exporter, &example),
        (Objective::TokenSum | Objective::MeanPerExample | Objective::GoalContrast, _) => {
            exporter.rows(example)
        }
    };
    built.into_iter().map(|built| Built { copies, ..proved(built, None, prover) }).collect()
}

fn preference(
    exporter: &dyn Exporter,
    example: Example,
    other: Example,
    prover: Option<&dyn Prover>,
) -> Built {
    let is_chosen = example.pair.as_ref().is_some_and(|pair| pair.chosen);
    let (chosen, rejected) = if is_chosen { (example, other) } else { (other, example) };
    let row = exporter.pair(&chosen, &rejected);
    proved(Built::one(chosen, row), Some(&rejected), prover)
}

/// A row that is proved for a model, its other half too, and what that counts; as it was without a model.
fn proved(mut built: Built, other: Option<&Example>, prover: Option<&dyn Prover>) -> Built {
    let Some(prover) = prover.filter(|_| built.row.is_ok()) else { return built };
    let prove = || {
        let mut tokens = prover.prove(&built.example)?;
        if let Some(other) = other {
            tokens += prover.prove(other)?;
        }
        Ok(tokens)
    };
    match prove() {
        Ok(tokens) => built.tokens = Some(tokens),
        Err(refusal) => built.row = Err(refusal),
    }
    built
}

/// An example as one row for each message that is learned.
pub(super) fn stepwise(example: Example, row: impl Fn(&Example) -> Result<Value, Refusal>) -> Vec<Built> {
    let steps = example.steps();
    if steps.is_empty() {
        return vec![Built::one(example, Err(Refusal::because("nothing-is-learned")))];
    }
    let built = |step| {
        let row = row(&step);
        Built::one(step, row)
    };
    steps.into_iter().map(built).collect()
}

/// Every labelled step by itself, wanted where it is right.
fn labelled_steps(exporter: &dyn Exporter, example: &Example) -> Vec<Built> {
    let step = |label: &StepLabel| {
        let message = example.context.get(label.message)?;
        let mut step = example.clone();
        step.context.truncate(label.message + 1);
        step.segments = message.segments(label.message).collect();
        step.step_labels = vec![*label];
        let row = match label.value {
            // A share of continuations that succeeded says more than yes or no.
            Some(value) if value > 0.0 && value < 1.0 => Err(Refusal::because("value-of-a-step-not-carried")),
            _ => exporter.labelled(&step, label.correct),
        };
        Some(Built::one(step, row))
    };
    example.step_labels.iter().filter_map(step).collect()
}

/// The one weight of all that is learned; `None` where there are several.
fn weight(example: &Example, other: Option<&Example>) -> Option<f64> {
    let halves = [Some(example), other].into_iter().flatten();
    let mut weights = halves.flat_map(|half| half.segments.iter().map(|segment| segment.weight));
    let first = weights.next().unwrap_or(1.0);
    weights.all(|weight| weight.to_bits() == first.to_bits()).then_some(first)
}

/// How many rows stand for one of a weight.
fn copies(weight: f64, hash: Hash) -> u32 {
    let weight = weight.clamp(0.0, f64::from(u16::MAX));
    let (head, _) = hash.0.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
    let draw = u64::from_le_bytes(*head) as f64 / 2_f64.powi(64);
    weight.floor() as u32 + u32::from(draw < weight.fract())
}
