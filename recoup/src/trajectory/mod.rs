//! A trajectory: one recorded or generated run of an agent, as a graph of messages.
//!
//! Invariants, each checked where data crosses a boundary ([`Trajectory::check`]) and by properties:
//!
//! * `nodes` is in topological order: a parent stands before its children, so position 0 is a root.
//! * A node's hash covers its parent's hash, its role, its agent and its parts and nothing else. What
//!   differs by occurrence (time, model call, sampled or not) is outside it, so a prompt stored again
//!   at every step adds no node: stored nodes are the distinct (prefix, message) pairs, exactly.
//! * Every leaf (a node without children) has an outcome; the trajectory's own outcome is its main
//!   leaf's. A trajectory without nodes has one leaf, whose node is `None`.
//! * `id` = hash of `key` and `revision`; neither depends on a path or a clock.
//! * `hidden` is never shown to a judge and never written to a view.
//! * `arguments_raw` of a call is byte-exact: the content of the JSON string, or the bytes of the object.
//! * A citation is a half-open byte range on character boundaries of a decoded part's text.
//!
//! An imported trajectory never changes. What people or programs decide about it is a verdict
//! ([`crate::verdict`]), stored beside it.

mod action;
mod body;
mod branch;
mod citation;
mod node;
mod outcome;
mod record;
mod seal;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

pub use self::action::same_action;
pub use self::body::{Body, body_bytes, body_from_bytes, chain};
pub use self::branch::Branch;
pub use self::citation::{Citation, CitationError};
pub use self::node::{
    ArgumentsForm, Call, Media, Node, Occurrence, Part, Role, TextPart, ToolCall, ToolResult, Usage,
};
pub use self::outcome::{Leaf, Outcome, Status, Termination, TerminationKind};
pub use self::record::{Record, RecordNode};
pub use self::seal::{NativeId, Sealed};

use crate::id::{Hash, Revision, TrajectoryId, TrajectoryKey};
use crate::json::Json;
use crate::task::{EnvironmentRef, Task, VerifierRef};
use crate::warning::ByteSpan;

/// Authors that are listed as agents. Each message is looked up among them, and a hostile trace can
/// give each of a million messages an author of its own.
const AGENTS_MAX: usize = 4096;

/// One run. See the module for its invariants.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trajectory {
    /// Hash of `key` and `revision`.
    pub id: TrajectoryId,
    /// The run, however far recorded.
    pub key: TrajectoryKey,
    /// Its content.
    pub revision: Revision,
    /// Where it was read.
    pub source: SourceRef,
    /// The program that drove the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub harness: Option<Harness>,
    /// Which of several attempts at the task, as the source counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<i64>,
    /// Seed of the run, where the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Limits the run was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// What was asked.
    pub task: Task,
    /// Where it happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<EnvironmentRef>,
    /// What scored it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier: Option<VerifierRef>,
    /// Who acted in it, in order of first appearance or as the source lists them.
    pub agents: Vec<Agent>,
    /// Tools offered to the agents.
    pub tools: Vec<Tool>,
    /// Messages, parents before children.
    pub nodes: Vec<Node>,
    /// Ends of branches, in node order.
    pub leaves: Vec<Leaf>,
    /// Index into `leaves` of the run's own end.
    pub main_leaf: usize,
    /// Licence of the source; local files default to `own`.
    pub licence: String,
    /// The run this one continues or repairs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// Gold answers, verifier output and references: never shown to a judge, never in a view.
    #[serde(default, skip_serializing_if = "Hidden::is_empty")]
    pub hidden: Hidden,
    /// What else the source says of the run, by the source's own names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Json>,
    /// Bytes of the media that parts refer to, until the store has them.
    #[serde(skip)]
    pub media: BTreeMap<Hash, Vec<u8>>,
}

/// Where a trajectory was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SourceRef {
    /// Importer's format name (`tau-bench`).
    pub format: String,
    /// Path as the user gave it, `#member` for an archive's.
    pub uri: String,
    /// SHA-256 of the record's bytes, hexadecimal: of the bytes at `span`, or of the whole file.
    pub sha256: String,
    /// The record's bytes in the (decompressed) file; absent where the file is the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<ByteSpan>,
}

/// The program that drove the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Harness {
    /// Name (`swe-agent`).
    pub name: String,
    /// Version, where the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// Limits a run was given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Budget {
    /// Most steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Most tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most wall time, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// A name after NFKC and case folding: two agents' names that mean one are equal so.
pub(crate) fn folded(name: &str) -> String {
    name.nfkc().collect::<String>().to_lowercase()
}

/// Someone who acts in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Agent {
    /// Name that nodes refer to; `assistant` where the source names none.
    pub name: String,
    /// Model behind it, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its own system prompt, where the source keeps it apart from the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
}

/// A tool offered to the agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tool {
    /// Name that calls use.
    pub name: String,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of its arguments, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Json>,
    /// Whether calls change nothing (`true`) or may change something, where who offers it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
}

/// The run that another continues: its node, the arm and the continuation's number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Origin {
    /// The run forked from.
    pub trajectory: TrajectoryId,
    /// Position of the node forked at.
    pub node: usize,
    /// Arm of a matched replay.
    pub arm: String,
    /// Which continuation, 0-based.
    pub continuation: u32,
}

/// What only the verifier may know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Hidden {
    /// The right answer or the reference actions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gold: Option<Json>,
    /// What the verifier reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verifier_output: Option<Json>,
    /// A reference solution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Json>,
}

impl Hidden {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Trajectory {
    /// An empty run of a format, to be filled by an importer and then sealed.
    pub fn new(format: &str, task: Task) -> Self {
        let zero = Hash([0; 32]);
        Self {
            id: TrajectoryId(zero),
            key: TrajectoryKey(zero),
            revision: Revision(zero),
            source: SourceRef {
                format: format.to_owned(),
                uri: String::new(),
                sha256: String::new(),
                span: None,
            },
            harness: None,
            trial: None,
            seed: None,
            budget: None,
            task,
            environment: None,
            verifier: None,
            agents: Vec::new(),
            tools: Vec::new(),
            nodes: Vec::new(),
            leaves: Vec::new(),
            main_leaf: 0,
            licence: "own".to_owned(),
            origin: None,
            hidden: Hidden::default(),
            extra: BTreeMap::new(),
            media: BTreeMap::new(),
        }
    }

    /// Appends a message after the last one (a run that is a line) and returns its position.
    pub fn push(&mut self, mut node: Node) -> usize {
        node.parent = self.nodes.len().checked_sub(1);
        self.push_under(node)
    }

    /// Appends a message whose `parent` is already set and returns its position.
    pub fn push_under(&mut self, node: Node) -> usize {
        let listed = |agents: &[Agent]| agents.iter().any(|agent| agent.name == node.agent);
        if node.role == Role::Assistant && self.agents.len() < AGENTS_MAX && !listed(&self.agents) {
            self.agents.push(Agent { name: node.agent.clone(), model: None, system_prompt: None });
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Ends a run that is a line: one leaf, at the last node.
    pub fn finish(&mut self, outcome: Outcome) {
        self.leaves = vec![Leaf { node: self.nodes.len().checked_sub(1), outcome }];
        self.main_leaf = 0;
    }

    /// Ends a run that is a tree: every node without children is a leaf, of unknown outcome but for the
    /// main one, which is the end that `main` leads to (the last one where it leads to several).
    pub fn finish_tree(&mut self, main: Option<usize>, outcome: Outcome) {
        let mut ends = vec![true; self.nodes.len()];
        let mut leads = vec![false; self.nodes.len()];
        for (position, node) in self.nodes.iter().enumerate() {
            leads[position] = Some(position) == main;
            if let Some(parent) = node.parent.filter(|parent| *parent < position) {
                ends[parent] = false;
                leads[position] |= leads[parent];
            }
        }
        let nodes = (0..ends.len()).filter(|position| ends[*position]);
        self.leaves = nodes.map(|node| Leaf { node: Some(node), outcome: Outcome::unknown() }).collect();
        if self.leaves.is_empty() {
            self.leaves.push(Leaf { node: None, outcome: Outcome::unknown() });
        }
        let led_to = |leaf: &Leaf| leaf.node.is_some_and(|node| leads[node]);
        self.main_leaf = self.leaves.iter().rposition(led_to).unwrap_or(self.leaves.len() - 1);
        self.leaves[self.main_leaf].outcome = outcome;
    }

    /// The run's own outcome: its main leaf's.
    pub fn outcome(&self) -> &Outcome {
        &self.leaves[self.main_leaf].outcome
    }

    /// The branch that ends at the main leaf.
    pub fn main_branch(&self) -> Branch<'_> {
        Branch::to(self, self.leaves[self.main_leaf].node)
    }

    /// The branch that ends at one leaf of `leaves`.
    pub fn branch(&self, leaf_index: usize) -> Branch<'_> {
        Branch::to(self, self.leaves[leaf_index].node)
    }

    /// Number of tool calls in all nodes.
    pub fn tool_call_count(&self) -> usize {
        self.nodes
            .iter()
            .flat_map(|node| &node.parts)
            .filter(|part| matches!(part, Part::ToolCall(_)))
            .count()
    }

    /// Number of tool results in all nodes.
    pub fn tool_result_count(&self) -> usize {
        self.nodes
            .iter()
            .flat_map(|node| &node.parts)
            .filter(|part| matches!(part, Part::ToolResult(_)))
            .count()
    }

    /// The offered tool of that name.
    pub fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// Model of the agent of that name, or of the first agent that has one.
    pub fn model(&self, agent: &str) -> Option<&str> {
        let named =
            self.agents.iter().find(|known| known.name == agent).and_then(|known| known.model.as_deref());
        named.or_else(|| self.agents.iter().find_map(|known| known.model.as_deref()))
    }

    /// Checks the structural invariants.
    ///
    /// # Errors
    /// The first one that does not hold, in words.
    pub fn check(&self) -> Result<(), String> {
        let mut has_child = vec![false; self.nodes.len()];
        for (position, node) in self.nodes.iter().enumerate() {
            match node.parent {
                Some(parent) if parent >= position => {
                    return Err(format!("node {position} stands before its parent {parent}"));
                }
                Some(parent) => has_child[parent] = true,
                None => {}
            }
        }
        let ends: Vec<Option<usize>> = if self.nodes.is_empty() {
            vec![None]
        } else {
            (0..self.nodes.len()).filter(|position| !has_child[*position]).map(Some).collect()
        };
        let mut leaves: Vec<Option<usize>> = self.leaves.iter().map(|leaf| leaf.node).collect();
        leaves.sort_unstable();
        if leaves != ends {
            return Err(format!("leaves are {leaves:?}, ends of branches are {ends:?}"));
        }
        if self.main_leaf >= self.leaves.len() {
            return Err(format!("main leaf {} of {}", self.main_leaf, self.leaves.len()));
        }
        Ok(())
    }
}
