//! Templates: goals without a model, from what a run did and what that showed.
//!
//! A template of an environment knows its tools. It sees the run alone, never the state, the task or what
//! the environment checks; what may speak against a goal it says as a doubt, and the gates refuse it. It
//! writes each goal twice: in words, and as a specification in the names that the run showed. For a check,
//! [`resolve`] turns the specification into keys of the task, whose own verifier then decides.

mod desk;
mod generic;
mod quest;
mod repo;
mod shop;
mod toolchain;

use serde_json::{Map, Value};

use super::episode::Episode;
use super::facts::Facts;
use super::proposal::Proposal;

/// Goals of one environment.
pub trait Template: Sync {
    /// Goals that the run may have achieved, the most telling first. Wordings of one goal that say more and
    /// more follow each other and share the specification.
    fn propose(&self, episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal>;

    /// The keys of a task that make its verifier check a specification; `None` where it names what
    /// the task does not have.
    fn resolve(&self, specification: &Value, task: &Value) -> Option<Map<String, Value>>;
}

/// The templates by the name of their environment.
const TEMPLATES: &[(&str, &dyn Template)] = &[
    ("desk", &desk::Desk),
    ("shop", &shop::Shop),
    ("quest", &quest::Quest),
    ("toolchain", &toolchain::Toolchain),
    ("repo", &repo::Repo),
];

/// Goals of a run: those of its environment's template, then those that any tool allows.
pub fn propose(episode: &Episode<'_>, facts: &mut Facts<'_, '_>) -> Vec<Proposal> {
    let name = episode.run.environment.as_ref().map_or("", |environment| environment.name.as_str());
    let own = TEMPLATES.iter().find(|(environment, _)| *environment == name);
    let mut proposals = own.map_or_else(Vec::new, |(_, template)| template.propose(episode, facts));
    proposals.extend(generic::propose(episode, facts));
    proposals
}

/// The keys of a task that make its verifier check a specification.
pub fn resolve(environment: &str, specification: &Value, task: &Value) -> Option<Map<String, Value>> {
    let (_, template) = TEMPLATES.iter().find(|(name, _)| *name == environment)?;
    template.resolve(specification, task)
}
