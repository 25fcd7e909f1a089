//! The tree that the records of one run make.

use std::collections::{BTreeSet, HashMap};

use super::Exchange;
use super::fingerprint::{chain, start};
use crate::id::Hash;
use crate::importers::dialect::Aside;
use crate::importers::{Scoring, row};
use crate::task::Task;
use crate::trajectory::{Call, Node, Outcome, Role, TerminationKind, Trajectory, body_bytes};
use crate::warning::Loss;

/// The tree while its records come.
pub(super) struct Tree {
    run: Trajectory,
    losses: BTreeSet<Loss>,
    /// The message that a thread ends in.
    known: HashMap<Hash, usize>,
    /// What a response ends in, by the provider's id of it.
    responses: HashMap<String, (Hash, usize)>,
    /// Where the last record ends, and why it failed if it did.
    end: Option<usize>,
    failed: Option<String>,
    native_outcome: Option<Outcome>,
}

impl Tree {
    pub(super) fn new(format: &str) -> Self {
        Self {
            run: Trajectory::new(format, Task::from_goal("")),
            losses: BTreeSet::new(),
            known: HashMap::new(),
            responses: HashMap::new(),
            end: None,
            failed: None,
            native_outcome: None,
        }
    }

    /// Takes a record in. What stands around the messages of the last one is said of the run.
    pub(super) fn add(&mut self, exchange: Exchange<'_>, is_last: bool, scoring: &Scoring) {
        let instructions = exchange.instructions();
        let Exchange { mut context, answer, tools, mut aside, id, previous, error, asked, row, .. } =
            exchange;
        for tool in tools {
            if self.run.tool(&tool.name).is_none() {
                self.run.tools.push(tool);
            }
        }
        let before = previous.as_ref().and_then(|id| self.responses.get(id)).copied();
        if previous.is_some() && before.is_none() {
            aside.lose("previous_response_id", "names a response that the file does not hold");
        }
        if before.is_some() {
            let given = self.run.nodes.iter().take(instructions).map(|node| &node.parts);
            if !given.eq(context.drain(..instructions).map(|node| node.parts).collect::<Vec<_>>().iter()) {
                aside.lose("instructions", "a later request gives other instructions; the first are kept");
            }
        }
        let (mut hash, mut end) = before.map_or((start(), None), |(hash, end)| (hash, Some(end)));
        for (node, next) in pairs(hash, context) {
            let name = name(hash, next, &node);
            end = Some(self.repeated(node, name, end, &mut aside));
            hash = next;
        }
        let answered = !answer.is_empty();
        for (node, next) in pairs(hash, answer) {
            let name = name(hash, next, &node);
            end = Some(self.answered(node, name, end));
            hash = next;
        }
        if let Some(error) = &error {
            // The request was answered by an error: an end of its own, which a retry leaves behind.
            let mut node = Node::new(Role::Assistant, Role::Assistant.as_str(), Vec::new());
            node.parent = end;
            node.occurrence.call = Some(Box::new(Call { error: Some(error.clone()), ..asked }));
            end = Some(self.run.push_under(node));
        }
        if let (Some(id), Some(end)) = (id, end) {
            self.responses.insert(id, (hash, end));
        }
        self.failed = error.filter(|_| !answered);
        self.end = end;
        aside.settle(&mut self.run, &mut self.losses);
        if is_last {
            let kept = std::mem::take(&mut self.run.leaves);
            row::settle(&mut self.run, row, scoring);
            self.native_outcome = Some(self.run.outcome().clone());
            self.run.leaves = kept;
        } else {
            for key in row.filled_rest().into_keys() {
                let field = format!("record.{key}");
                let reason = "of the records of one run the last one's is kept";
                self.losses.insert(Loss::new(&self.run.source.format, field, reason));
            }
        }
    }

    /// A message of a request: known already, or a new one under `parent`.
    fn repeated(&mut self, node: Node, hash: Hash, parent: Option<usize>, aside: &mut Aside) -> usize {
        if let Some(known) = self.known.get(&hash).copied() {
            let differs = self.run.nodes.get(known).is_some_and(|first| first.parts != node.parts);
            if differs {
                let reason = "a message sent again in another form; the first is kept";
                aside.lose("messages", reason);
            }
            return known;
        }
        self.push(node, hash, parent)
    }

    /// An answer: a new message, or the original of one that a later request of an unordered log sent
    /// again.
    fn answered(&mut self, node: Node, hash: Hash, parent: Option<usize>) -> usize {
        let sent = self.known.get(&hash).copied();
        let again = sent.filter(|position| {
            self.run.nodes.get(*position).is_some_and(|node| node.occurrence.call.is_none())
        });
        if let Some(position) = again
            && let Some(first) = self.run.nodes.get_mut(position)
        {
            first.parts = node.parts;
            first.occurrence = node.occurrence;
            return position;
        }
        self.push(node, hash, parent)
    }

    fn push(&mut self, mut node: Node, hash: Hash, parent: Option<usize>) -> usize {
        node.parent = parent;
        let position = self.run.push_under(node);
        self.known.insert(hash, position);
        position
    }

    /// The run and what was lost.
    pub(super) fn finish(mut self) -> (Trajectory, BTreeSet<Loss>) {
        for node in &self.run.nodes {
            let model = node.occurrence.call.as_ref().and_then(|call| call.model.as_ref());
            let agent = self.run.agents.iter_mut().find(|agent| agent.name == node.agent);
            if let (Some(model), Some(agent)) = (model, agent) {
                agent.model.get_or_insert_with(|| model.clone());
            }
        }
        let mut outcome = self.native_outcome.unwrap_or_else(Outcome::unknown);
        if let Some(error) = self.failed {
            outcome = outcome.ended(TerminationKind::InfrastructureError, error);
        }
        self.run.finish_tree(self.end, outcome);
        (self.run, self.losses)
    }
}

/// What a message is known by: the thread up to it, and for one that says nothing its own content too.
fn name(before: Hash, hash: Hash, node: &Node) -> Hash {
    if hash == before { Hash::of_all(&[&hash.0, body_bytes(node).as_bytes()]) } else { hash }
}

/// Messages with the hash of the thread up to each.
fn pairs(start: Hash, nodes: Vec<Node>) -> Vec<(Node, Hash)> {
    let hashes = chain(start, &nodes);
    nodes.into_iter().zip(hashes).collect()
}
