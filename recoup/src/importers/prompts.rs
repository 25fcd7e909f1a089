//! Prompts stored again at every step: each message adds a node only where its prefix is new, so the
//! nodes of a run are the distinct (prefix, message) pairs and a file that is quadratic is not.

use std::collections::BTreeMap;

use crate::id::NodeHash;
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Leaf, Node, Outcome, Part, Trajectory, body_bytes, chain};

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
    /// Whether the message stands after `place` already.
    pub(super) fn knows(&self, place: Option<Place>, node: &Node) -> bool {
        self.known.contains_key(&chain(place.map(|place| place.hash), &meaning(node)))
    }

    /// The message after `place`: the node that is there already, or else a new one. `is_turn` says that
    /// it is an agent's own, not a demonstration's.
    pub(super) fn follow(
        &mut self,
        run: &mut Trajectory,
        place: Option<Place>,
        mut node: Node,
        is_turn: bool,
    ) -> Place {
        let hash = chain(place.map(|place| place.hash), &meaning(&node));
        node.parent = place.map(|place| place.position);
        let position = *self.known.entry(hash).or_insert_with(|| run.push_under(node));
        Place { position, hash, acted: is_turn || place.is_some_and(|place| place.acted) }
    }
}

/// The body by which a message is known again. A file indents the arguments of a call by where they stand.
fn meaning(node: &Node) -> String {
    let mut node = std::borrow::Cow::Borrowed(node);
    for index in 0..node.parts.len() {
        if let Part::ToolCall(call) = &node.parts[index]
            && call.arguments_form == ArgumentsForm::Object
        {
            let arguments = Json::from_foreign(&call.arguments_raw).as_str().to_owned();
            if let Some(Part::ToolCall(call)) = node.to_mut().parts.get_mut(index) {
                call.arguments_raw = arguments;
            }
        }
    }
    body_bytes(&node)
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
