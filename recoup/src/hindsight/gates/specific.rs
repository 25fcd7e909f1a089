//! `specific`: a goal names at least two different things of the run.

use std::collections::BTreeSet;

use super::{Gate, Ground};
use crate::hindsight::proposal::{Proposal, Source};
use crate::hindsight::tokens::{is_plain, stems, values, words};

/// See the module.
pub(super) struct Specific;

/// Fewest different entities or values.
const THINGS_MIN: usize = 2;

impl Gate for Specific {
    fn name(&self) -> &'static str {
        "specific"
    }

    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String> {
        let count = things(proposal, ground);
        if count < THINGS_MIN {
            return Err(format!("the goal names {count} entities or values; {THINGS_MIN} are asked for"));
        }
        Ok(())
    }
}

fn things(proposal: &Proposal, ground: &Ground<'_>) -> usize {
    if proposal.source == Source::Environment {
        // It makes no claims: what its goal names is what the run showed too.
        let goal: BTreeSet<String> =
            values(&proposal.goal).into_iter().chain(stems(&proposal.goal)).collect();
        let mut shown = BTreeSet::new();
        for (_, it) in ground.episode.shown() {
            shown.extend(values(it.text).into_iter().chain(stems(it.text)));
        }
        return goal.intersection(&shown).count();
    }
    let tells = |text: &&str| {
        !values(text).is_empty() || words(text).any(|word| !is_plain(&word) && word.chars().count() > 2)
    };
    let texts: BTreeSet<&str> =
        proposal.claims.iter().map(|claim| claim.text.as_str()).filter(tells).collect();
    if proposal.source != Source::Model {
        return texts.len();
    }
    // A value and the key above it are one thing, however many claims name them.
    let told = proposal.claims.iter().filter(|claim| tells(&claim.text.as_str()));
    let facts = told.flat_map(|claim| &claim.facts).filter_map(|fact| ground.facts.get(*fact));
    let things: BTreeSet<(&[String], &str)> =
        facts.map(|fact| (&fact.path[..], fact.value.as_str())).collect();
    texts.len().min(things.len())
}
