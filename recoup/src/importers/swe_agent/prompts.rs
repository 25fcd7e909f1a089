//! Prompts stored again at every step: each message adds a node only where its prefix is new, so the
//! nodes of a run are the distinct (prefix, message) pairs and a file that is quadratic is not.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::id::NodeHash;
use crate::importers::RecordError;
use crate::importers::harness_message::message;
use crate::trajectory::{Leaf, Node, Outcome, Role, Trajectory, body_bytes, chain};

/// A place in the graph of a run's messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub position: usize,
    hash: NodeHash,
    /// Whether an agent's turn stands at or before it.
    pub acted: bool,
}

/// The messages of a run by their place in the chain.
#[derive(Default)]
pub(super) struct Prompts {
    known: BTreeMap<NodeHash, usize>,
}

impl Prompts {
    /// The message after `place`: the node that is there already, or else a new one. `is_turn` says that
    /// it is an agent's own, not a demonstration's.
    pub(super) fn follow(
        &mut self,
        run: &mut Trajectory,
        place: Option<Place>,
        mut node: Node,
        is_turn: bool,
    ) -> Place {
        let hash = chain(place.map(|place| place.hash), &body_bytes(&node));
        node.parent = place.map(|place| place.position);
        let position = *self.known.entry(hash).or_insert_with(|| run.push_under(node));
        Place { position, hash, acted: is_turn || place.is_some_and(|place| place.acted) }
    }

    /// Walks the prompt that one step stored. Where a history processor changed what the model saw,
    /// the rest of the prompt is a branch of its own: context, sampled by nobody.
    pub(super) fn walk(&mut self, run: &mut Trajectory, prompt: &[&RawValue]) -> Result<(), RecordError> {
        let mut place: Option<Place> = None;
        for raw in prompt {
            let acted = place.is_some_and(|place| place.acted);
            let mut node = message(raw, acted, &mut run.media)?.node;
            let is_turn = node.role == Role::Assistant && !node.occurrence.copied_context;
            // Prompts of some versions leave the agent's name out.
            if let (true, Some(agent)) = (node.agent == "assistant", run.agents.first()) {
                node.agent.clone_from(&agent.name);
            }
            node.occurrence.copied_context = true;
            place = Some(self.follow(run, place, node, is_turn));
        }
        Ok(())
    }
}

/// Gives every end of a branch an outcome: `outcome` to the one that holds `last`, the history's last
/// message, and none to a prompt's.
pub(super) fn finish(run: &mut Trajectory, last: Option<usize>, outcome: Outcome) {
    let mut has_child = vec![false; run.nodes.len()];
    for node in &run.nodes {
        if let Some(parent) = node.parent {
            has_child[parent] = true;
        }
    }
    run.leaves = (0..run.nodes.len())
        .filter(|position| !has_child[*position])
        .map(|position| Leaf { node: Some(position), outcome: Outcome::unknown() })
        .collect();
    if run.leaves.is_empty() {
        return run.finish(outcome);
    }
    let holds = |index: &usize| last.is_some_and(|last| run.branch(*index).node_index(last).is_some());
    run.main_leaf = (0..run.leaves.len()).find(holds).unwrap_or(0);
    run.leaves[run.main_leaf].outcome = outcome;
}
