//! `unique`: with the goal as the query, this run comes first among the runs of other tasks.
//!
//! A goal that any run satisfies is a reward hack of whoever relabels.

use super::{Gate, Ground};
use crate::hindsight::proposal::Proposal;

/// See the module.
pub(super) struct Unique;

impl Gate for Unique {
    fn name(&self) -> &'static str {
        "unique"
    }

    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
        let task = &ground.episode.run.task.key;
        let standing = ground.corpus.standing(&proposal.goal, ground.document, task);
        if standing.own <= 0.0 || standing.before > 0 {
            return Err(format!(
                "{} runs of other tasks fit the goal as well (BM25 {:.2} here, {:.2} there)",
                standing.before, standing.own, standing.best_other
            ));
        }
        Ok(())
    }
}
