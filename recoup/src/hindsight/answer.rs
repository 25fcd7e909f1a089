//! The final answer under a new goal: the run's own where it satisfies the goal, else one made of facts.

use super::episode::{Act, Episode};
use super::facts::Facts;
use super::gates::mentions::mention;
use super::proposal::Proposal;
use super::tokens::{offered, values};
use crate::verdict::FinalAnswer;

/// How the run ends when it is cut after a goal was completed. The run's own last words are kept where they
/// follow at once, speak of no failure, state nothing that was not shown by then, and say what the
/// answer must say.
pub fn final_answer(proposal: &Proposal, episode: &Episode<'_>, facts: &Facts<'_, '_>) -> FinalAnswer {
    let composed = || FinalAnswer::Composed { text: proposal.answer.clone() };
    let end = end_of_turn(proposal.last, episode);
    let Some(next) = episode.exchanges.get(end + 1) else { return composed() };
    let Act::Say(text) = next.act else { return composed() };
    if end + 2 != episode.exchanges.len() || mention(text).is_some() {
        return composed();
    }
    let said = values(text);
    let mut known = offered(&proposal.goal);
    for fact in facts.all().iter().filter(|fact| fact.exchange.is_none_or(|at| at <= end)) {
        known.extend(offered(&fact.value));
    }
    let needed = values(&proposal.answer);
    if !needed.is_empty() && needed.is_subset(&said) && said.is_subset(&known) {
        FinalAnswer::Kept { node: next.node }
    } else {
        composed()
    }
}

/// The last exchange of the turn that an exchange is part of: a message's calls stay together.
pub fn end_of_turn(exchange: usize, episode: &Episode<'_>) -> usize {
    let node = episode.exchanges.get(exchange).map(|exchange| exchange.node);
    episode.exchanges.iter().rposition(|other| Some(other.node) == node).unwrap_or(exchange)
}
