//! `paraphrase`: the goal is another one than the run was given.
//!
//! Words count by how much they tell among all runs, so other filling words change nothing. A goal that asks
//! for nearly all of the original one is refused even where it adds something: the original was not reached.
//! Where the environment itself says that its goal is fulfilled and the original one is not, they differ by
//! proof, and only the same words are refused.

use std::collections::BTreeMap;

use super::{Gate, Ground};
use crate::hindsight::proposal::{Proposal, Source};
use crate::hindsight::tokens::{stems, values};

/// See the module.
pub(super) struct Paraphrase;

/// Most of the original goal, by weight, that a goal may ask for.
const OF_ORIGINAL_MAX: f64 = 0.8;
/// Most that both may share of what they hold together.
const SHARED_MAX: f64 = 0.7;

impl Gate for Paraphrase {
    fn name(&self) -> &'static str {
        "paraphrase"
    }

    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
        let original = &ground.episode.run.task.goal;
        if plain(original) == plain(&proposal.goal) {
            return Err("the goal is the original one".to_owned());
        }
        if proposal.source == Source::Environment || original.is_empty() {
            return Ok(());
        }
        let (of_original, of_goal) = (weights(original, ground), weights(&proposal.goal, ground));
        let shared: f64 =
            of_original.iter().filter(|(term, _)| of_goal.contains_key(*term)).map(|it| it.1).sum();
        let (total, goal): (f64, f64) = (of_original.values().sum(), of_goal.values().sum());
        if total > 0.0 && shared / total >= OF_ORIGINAL_MAX {
            return Err(format!("the goal asks for {:.0} % of the original one", 100.0 * shared / total));
        }
        let union = total + goal - shared;
        if union > 0.0 && shared / union >= SHARED_MAX {
            return Err(format!("{:.0} % of both goals are the same", 100.0 * shared / union));
        }
        Ok(())
    }
}

fn plain(text: &str) -> String {
    let kept = text.chars().filter(|c| c.is_alphanumeric());
    kept.flat_map(char::to_lowercase).collect()
}

/// What a goal holds, each term with how much it tells.
fn weights(goal: &str, ground: &Ground<'_>) -> BTreeMap<String, f64> {
    let words = stems(goal).into_iter().map(|stem| {
        // The corpus knows words, not stems; a stem that is none tells what an average word does.
        let weight = ground.corpus.idf(&stem).clamp(0.5, 4.0);
        (stem, weight)
    });
    let values = values(goal).into_iter().map(|value| {
        let weight = ground.corpus.idf(&value).clamp(1.0, 6.0);
        (format!("={}", value.to_lowercase()), weight)
    });
    words.chain(values).collect()
}
