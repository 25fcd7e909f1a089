//! The gates: what every proposed goal must pass before any judge is asked, in order.
//!
//! They are deterministic and need no environment. A goal that a model proposes has to show more than one
//! that a template filled: nobody but the gates knows what its words mean.

mod form;
mod grounded;
pub(super) mod mentions;
mod paraphrase;
mod related;
mod specific;
mod unique;

use super::corpus::Corpus;
use super::episode::Episode;
use super::facts::Facts;
use super::proposal::Proposal;

/// Something every goal must have.
pub trait Gate: Sync {
    /// Its name in records (`grounded`).
    fn name(&self) -> &'static str;

    /// Looks at a goal.
    ///
    /// # Errors
    /// Why it does not pass, in words.
    fn check(&self, proposal: &Proposal, ground: &Ground<'_>) -> Result<(), String>;
}

/// What goals are held against.
pub struct Ground<'g> {
    /// The run.
    pub episode: &'g Episode<'g>,
    /// What it established.
    pub facts: &'g Facts<'g, 'g>,
    /// The runs among which it must stand out.
    pub corpus: &'g Corpus,
    /// The run's number there.
    pub document: Option<u32>,
}

/// All gates.
pub const GATES: &[&dyn Gate] = &[
    &form::Form,
    &mentions::Mentions,
    &grounded::Grounded,
    &related::Related,
    &Undoubted,
    &paraphrase::Paraphrase,
    &specific::Specific,
    &unique::Unique,
];

/// The first gate that a goal does not pass, with its reason.
pub fn refused(proposal: &Proposal, ground: &Ground<'_>) -> Option<(&'static str, String)> {
    GATES.iter().find_map(|gate| gate.check(proposal, ground).err().map(|why| (gate.name(), why)))
}

/// Nothing in the run speaks against the goal.
struct Undoubted;

impl Gate for Undoubted {
    fn name(&self) -> &'static str {
        "undoubted"
    }

    fn check(&self, proposal: &Proposal, _: &Ground<'_>) -> Result<(), String> {
        proposal.doubts.first().map_or(Ok(()), |doubt| Err((*doubt).to_owned()))
    }
}

/// A goal's text with its claims taken out: what nothing in the run stands for.
fn outside_claims(proposal: &Proposal) -> String {
    let mut rest = proposal.goal.clone();
    let mut claims: Vec<&str> = proposal.claims.iter().map(|claim| claim.text.as_str()).collect();
    // Longer claims first: a shorter one may be a part of them.
    claims.sort_unstable_by_key(|claim| std::cmp::Reverse(claim.len()));
    for claim in claims.into_iter().filter(|claim| !claim.is_empty()) {
        rest = rest.replace(claim, " ");
    }
    rest
}
