//! `unique`: with the goal as the query, this run comes first among the runs of other tasks.
//!
//! A goal that any run satisfies is a reward hack of whoever relabels.

use super::{Gate, Ground};
use crate::hindsight::proposal::{Proposal, Source};

/// See the module.
pub(super) struct Unique;

/// By how much a model's goal must fit its own run better than any other.
const MARGIN: f64 = 1.2;

impl Gate for Unique {
    fn name(&self) -> &'static str {
        "unique"
    }

    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
        let task = &ground.episode.run.task.key;
        let standing = ground.corpus.standing(&proposal.goal, ground.document, task);
        // What a model writes may come first by the length of runs alone.
        let is_close = proposal.source == Source::Model && standing.own < MARGIN * standing.best_other;
        if standing.own <= 0.0 || standing.before > 0 || is_close {
            return Err(format!(
                "{} runs of other tasks fit the goal as well (BM25 {:.2} here, {:.2} there)",
                standing.before, standing.own, standing.best_other
            ));
        }
        Ok(())
    }
}
