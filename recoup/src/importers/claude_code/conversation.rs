//! From a session's lines to the tree of its messages.

use std::collections::{BTreeMap, BTreeSet};

use super::goal::goal;
use super::line::{Line, Message};
use super::order::{Parent, in_order};
use crate::id::Hash;
use crate::importers::{Sink, SinkError};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Call, Harness, Node, Outcome, Part, Role, TerminationKind, Trajectory, body_bytes};
use crate::warning::Loss;

/// The run that a session's lines tell; `None` where none of them is a message.
pub(super) fn build(
    format: &str,
    native: &str,
    lines: &mut [Line],
    sink: &mut dyn Sink,
) -> Result<Option<Trajectory>, SinkError> {
    if lines.iter().all(|line| line.message.is_none()) {
        return Ok(None);
    }
    let task = match goal(lines) {
        Some(goal) => Task::from_goal(goal),
        None => Task::named(format!("claude-code/{native}"), ""),
    };
    let mut tree = Tree::new(Trajectory::new(format, task));
    for line in &mut *lines {
        tree.run.media.append(&mut line.aside.media);
    }
    for (line, parent) in in_order(lines, &mut tree.losses) {
        tree.place(lines, line, parent);
    }
    for loss in std::mem::take(&mut tree.losses) {
        sink.loss(loss)?;
    }
    Ok(Some(tree.finish(lines)))
}

/// Tells a response's blocks apart.
fn block_hash(part: &Part) -> Hash {
    let (kind, id) = match part {
        Part::Text(_) => ("text", None),
        Part::Reasoning { signature, .. } => ("reasoning", signature.as_deref()),
        Part::ToolCall(call) => (call.name.as_str(), call.call_id.as_deref()),
        Part::Opaque { kind, .. } => (kind.as_str(), None),
        Part::ToolResult(_) | Part::Media(_) => {
            let node = Node::new(Role::Assistant, "", vec![part.clone()]);
            return Hash::of(body_bytes(&node).as_bytes());
        }
    };
    let text = part.cited_text().unwrap_or_default();
    Hash::of_all(&[kind.as_bytes(), id.unwrap_or_default().as_bytes(), text.as_bytes()])
}

/// Stands for the call that a result answers; `None` for any other part.
fn answer_hash(part: &Part) -> Option<Hash> {
    match part {
        Part::ToolResult(result) => Some(Hash::of(result.call_id.as_deref().unwrap_or_default().as_bytes())),
        _ => None,
    }
}

/// The tree while it grows.
struct Tree {
    run: Trajectory,
    losses: Vec<Loss>,
    /// The message that a line is or passes on, by line.
    node_of: BTreeMap<usize, Option<usize>>,
    /// The line that a uuid stands for.
    line_of: BTreeMap<String, usize>,
    /// The last node of the main chain and of the sidechain, for sessions without parents.
    last: [Option<usize>; 2],
    /// API responses by their id.
    responses: BTreeMap<String, usize>,
    /// User messages by parent and content: the same message in the same place is one node.
    said: BTreeMap<(Option<usize>, Hash), usize>,
    /// What a node holds already, so that nothing is added twice: blocks, and the calls it answers.
    held: BTreeSet<(usize, Hash)>,
    last_child: Vec<Option<usize>>,
    /// What else the lines of a node say, by name.
    extras: Vec<BTreeMap<String, Vec<Json>>>,
    /// The last message of the file that is no sidechain's, else the last message.
    main: Option<(bool, usize, usize)>,
}

impl Tree {
    fn new(run: Trajectory) -> Self {
        Self {
            run,
            losses: Vec::new(),
            node_of: BTreeMap::new(),
            line_of: BTreeMap::new(),
            last: [None; 2],
            responses: BTreeMap::new(),
            said: BTreeMap::new(),
            held: BTreeSet::new(),
            last_child: Vec::new(),
            extras: Vec::new(),
            main: None,
        }
    }

    fn lose(&mut self, field: &str, reason: &str) {
        self.losses.push(Loss::new("claude-code", field, reason));
    }

    fn place(&mut self, lines: &[Line], index: usize, parent: Parent) {
        let line = &lines[index];
        let chain = usize::from(line.sidechain);
        let parent = match parent {
            Parent::Root => None,
            Parent::Previous => self.last[chain],
            Parent::Line(parent) => self.node_of.get(&parent).copied().flatten(),
        };
        if let Some(uuid) = &line.uuid {
            let first = *self.line_of.entry(uuid.clone()).or_insert(index);
            if first != index && lines[first].message == line.message {
                self.lose("uuid", "a line stored twice");
                let node = self.node_of.get(&first).copied().flatten();
                self.node_of.insert(index, node);
                return;
            }
            if first != index {
                self.lose("uuid", "two lines with one uuid, both kept");
            }
        }
        let node = match &line.message {
            Some(message) if line.kind == "assistant" => Some(self.response(line, message, parent)),
            Some(message) => Some(self.user(line, message, parent)),
            None => {
                if line.title.is_none() {
                    self.lose(&line.kind, "an event of the harness, not a message");
                }
                parent
            }
        };
        for (field, reason) in &line.aside.lost {
            self.lose(field, reason);
        }
        self.node_of.insert(index, node);
        self.last[chain] = node;
        if let (Some(node), true) = (node, line.message.is_some()) {
            self.main = self.main.max(Some((!line.sidechain, index, node)));
        }
    }

    /// A block of an API response, added to the blocks that came before it.
    fn response(&mut self, line: &Line, message: &Message, parent: Option<usize>) -> usize {
        let known = message.id.as_ref().and_then(|id| self.responses.get(id)).copied();
        let position = known.unwrap_or_else(|| {
            let agent = if line.sidechain { "sidechain" } else { "assistant" };
            let mut node = Node::new(Role::Assistant, agent, Vec::new());
            node.occurrence.sampled = !message.error && !line.copied;
            node.occurrence.call = Some(Box::default());
            self.push(line, node, parent)
        });
        if let Some(id) = &message.id {
            self.responses.insert(id.clone(), position);
        }
        if known.is_some() {
            self.note(line, position);
        }
        for part in &message.parts {
            if self.held.insert((position, block_hash(part))) {
                self.run.nodes[position].parts.push(part.clone());
            } else {
                self.lose("message.content", "a block stored twice");
            }
        }
        let node = &mut self.run.nodes[position];
        let call = node.occurrence.call.get_or_insert_with(Box::<Call>::default);
        if message.error {
            let text = message.parts.iter().find_map(Part::as_text);
            call.error = text.map(str::to_owned);
        } else {
            call.model = message.model.clone().or(call.model.take());
        }
        call.finish_reason = message.stop_reason.clone().or(call.finish_reason.take());
        // Every line of a response repeats its usage, the last one the whole.
        call.usage = message.usage.or(call.usage);
        let agent = node.agent.clone();
        if let Some(agent) = self.run.agents.iter_mut().find(|known| known.name == agent && !message.error) {
            agent.model = agent.model.take().or_else(|| message.model.clone());
        }
        position
    }

    /// A user's message, or results of the calls of the response before it.
    fn user(&mut self, line: &Line, message: &Message, parent: Option<usize>) -> usize {
        let answers: Vec<Hash> = message.parts.iter().filter_map(answer_hash).collect();
        if let Some(position) = self.open_results(&answers, parent) {
            self.run.nodes[position].parts.extend(message.parts.iter().cloned());
            self.held.extend(answers.into_iter().map(|answer| (position, answer)));
            self.note(line, position);
            return position;
        }
        let (role, agent) = if answers.is_empty() { (Role::User, "user") } else { (Role::Tool, "tool") };
        let node = Node::new(role, agent, message.parts.clone());
        let place = (parent, Hash::of(body_bytes(&node).as_bytes()));
        if let Some(position) = self.said.get(&place).copied() {
            self.note(line, position);
            return position;
        }
        let position = self.push(line, node, parent);
        self.held.extend(answers.into_iter().map(|answer| (position, answer)));
        self.said.insert(place, position);
        position
    }

    /// The node that holds the first results of the same response, while nothing follows it and it
    /// answers none of these calls yet.
    fn open_results(&self, answers: &[Hash], parent: Option<usize>) -> Option<usize> {
        let parent = parent.filter(|_| !answers.is_empty())?;
        let is_results = |position: usize| self.run.nodes[position].role == Role::Tool;
        let last = if is_results(parent) { parent } else { self.last_child[parent]? };
        let open = is_results(last)
            && self.last_child[last].is_none()
            && answers.iter().all(|answer| !self.held.contains(&(last, *answer)));
        open.then_some(last)
    }

    fn push(&mut self, line: &Line, mut node: Node, parent: Option<usize>) -> usize {
        node.parent = parent;
        node.occurrence.at.clone_from(&line.at);
        node.occurrence.copied_context = line.copied;
        if let Some(parent) = parent {
            self.last_child[parent] = Some(self.run.nodes.len());
        }
        self.last_child.push(None);
        self.extras.push(BTreeMap::new());
        let position = self.run.push_under(node);
        self.note(line, position);
        position
    }

    /// Keeps what else the line says beside the message.
    fn note(&mut self, line: &Line, position: usize) {
        let result = line.tool_use_result.iter().map(|result| ("toolUseResult", result));
        let rest = line.rest.iter().map(|(key, value)| (key.as_str(), value)).chain(result);
        let mut extra: Vec<(&str, &Json)> = rest.collect();
        for (key, value) in &line.place {
            let first = self.run.extra.entry((*key).to_owned()).or_insert_with(|| value.clone());
            if first != value {
                extra.push((key, value));
            }
        }
        for (key, value) in extra {
            let values = self.extras[position].entry(key.to_owned()).or_default();
            if values.last() != Some(value) {
                values.push(value.clone());
            }
        }
    }

    fn finish(mut self, lines: &[Line]) -> Trajectory {
        for (node, extra) in self.run.nodes.iter_mut().zip(std::mem::take(&mut self.extras)) {
            // One value stands for itself; the several lines of one message make a list.
            let extra: BTreeMap<String, Json> = extra
                .into_iter()
                .filter_map(|(key, values)| match values.as_slice() {
                    [value] => Some((key, value.clone())),
                    values => Some((key, Json::from_serialize(values).ok()?)),
                })
                .collect();
            node.occurrence.extra = if extra.is_empty() { None } else { Json::from_serialize(&extra).ok() };
        }
        let titles: Vec<&Json> = lines.iter().filter_map(|line| line.title.as_ref()).collect();
        if let (false, Ok(titles)) = (titles.is_empty(), Json::from_serialize(&titles)) {
            self.run.extra.insert("titles".to_owned(), titles);
        }
        let version = self.run.extra.remove("version").and_then(|version| match version.to_value() {
            serde_json::Value::String(version) => Some(version),
            _ => None,
        });
        self.run.harness = Some(Harness { name: "claude-code".to_owned(), version });
        self.run.finish_tree(self.main.map(|(_, _, node)| node), Outcome::unknown());
        let end = self.run.leaves[self.run.main_leaf].node;
        let said = end.and_then(|end| self.run.nodes[end].parts.last()).and_then(Part::as_text);
        if said.is_some_and(|text| text.starts_with("[Request interrupted by user")) {
            let leaf = &mut self.run.leaves[self.run.main_leaf];
            leaf.outcome = Outcome::unknown().ended(TerminationKind::Cancelled, "interrupted by user");
        }
        self.run
    }
}
