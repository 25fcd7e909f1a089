//! The tally of a view: what it built, in numbers, before equal examples are dropped and formats refuse any.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Evidence, Example, Message, Objective};
use crate::trajectory::Part;

/// What a view built.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tally {
    /// Examples; both halves of a preference count.
    pub examples: u64,
    /// Examples by what a trainer makes of them.
    pub objectives: BTreeMap<Objective, u64>,
    /// Examples by what says that they are right.
    pub evidence: BTreeMap<Evidence, u64>,
    /// Examples by the largest weight in them, to two decimals.
    pub weights: BTreeMap<String, u64>,
    /// Single messages that are wanted (`wanted`) and not (`unwanted`), and labelled steps that are right (`right`)
    /// and wrong (`wrong`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, u64>,
    /// Bytes of text in all messages.
    pub bytes: u64,
    /// Of them, learned.
    pub learned_bytes: u64,
}

impl Tally {
    /// Counts an example.
    pub fn add(&mut self, example: &Example) {
        self.examples += 1;
        *self.objectives.entry(example.objective).or_default() += 1;
        *self.evidence.entry(example.lineage.evidence).or_default() += 1;
        let weights = example.segments.iter().map(|segment| segment.weight);
        if let Some(weight) = weights.reduce(f64::max) {
            *self.weights.entry(format!("{weight:.2}")).or_default() += 1;
        }
        let mut label = |word: &str| *self.labels.entry(word.to_owned()).or_default() += 1;
        if let Some(wanted) = example.desirable {
            label(if wanted { "wanted" } else { "unwanted" });
        }
        for step in &example.step_labels {
            label(if step.correct { "right" } else { "wrong" });
        }
        self.bytes += example.context.iter().map(|message| text_len(message)).sum::<u64>();
        self.learned_bytes +=
            example.segments.iter().map(|segment| (segment.end - segment.start) as u64).sum::<u64>();
    }

    /// Adds what was counted elsewhere.
    pub fn merge(&mut self, other: &Self) {
        fn each<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            for (key, count) in from {
                *into.entry(key.clone()).or_default() += count;
            }
        }
        self.examples += other.examples;
        each(&mut self.objectives, &other.objectives);
        each(&mut self.evidence, &other.evidence);
        each(&mut self.weights, &other.weights);
        each(&mut self.labels, &other.labels);
        self.bytes += other.bytes;
        self.learned_bytes += other.learned_bytes;
    }
}

fn text_len(message: &Message) -> u64 {
    fn of(parts: &[Part]) -> u64 {
        let len = |part: &Part| match part {
            Part::ToolResult(result) => of(&result.parts),
            part => part.cited_text().map_or(0, |text| text.len() as u64),
        };
        parts.iter().map(len).sum()
    }
    of(&message.parts)
}
