//! `unique`: with the goal as the query, this run comes first among the runs of other tasks.
//!
//! A goal that any run satisfies is a reward hack of whoever relabels.

use super::{Gate, Ground};
use crate::hindsight::proposal::{Proposal, Source};

/// See the module.
pub(super) struct Unique;

/// Most other runs, one in so many, that may show all that a model's goal claims.
const SHARING_ONE_IN: usize = 50;
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
        if proposal.source == Source::Model {
            let (sharing, others) = ground.corpus.sharing(&claimed(proposal, ground), task);
            if sharing > 1 && sharing * SHARING_ONE_IN >= others {
                return Err(format!(
                    "{sharing} of {others} runs of other tasks show all that the goal claims"
                ));
            }
        }
        Ok(())
    }
}

/// What claims say, as it stands in the run: the claim where it quotes a value, the key where it names one.
fn claimed<'g>(proposal: &'g Proposal, ground: &'g Ground<'_>) -> Vec<&'g str> {
    let mut phrases = Vec::new();
    for claim in &proposal.claims {
        for fact in claim.facts.iter().filter_map(|fact| ground.facts.get(*fact)) {
            let key = fact.path.last().filter(|_| !fact.value.contains(claim.text.as_str()));
            phrases.push(key.map_or(claim.text.as_str(), String::as_str));
        }
    }
    phrases
}
