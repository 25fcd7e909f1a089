//! An example: the one record of training, which every method here only fills differently.
//!
//! It holds messages and says which bytes of them are learned from, with what weight; everything
//! else is context, with weight 0. A preference is two examples with one pair id; a group of samples
//! that are compared with one another shares `group`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{Hash, TaskKey, TrajectoryId};
use crate::trajectory::{Branch, Node, Part, Role};
use crate::verdict::Side;

/// One thing to learn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The conversation, root first, up to and including the last message that is learned from.
    pub context: Vec<Arc<Message>>,
    /// What is learned from: disjoint, in order; every byte outside them has weight 0.
    pub segments: Vec<Segment>,
    /// The preference it is one half of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Pair>,
    /// The group of samples whose rewards are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What the policy sampled, in tokens, where that was recorded and nothing of it was redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
    /// The teacher's log-probability of each sampled token, natural logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_logprobs: Option<Vec<f64>>,
    /// Where it comes from.
    pub lineage: Lineage,
}

/// A message of an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Position of the node it is; `None` for one that the view wrote itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Chat role.
    pub role: Role,
    /// Author.
    pub agent: String,
    /// Content.
    pub parts: Vec<Part>,
}

/// Bytes that are learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Position of the node in the trajectory.
    pub node: usize,
    /// `[i]`: part of the node.
    pub part_path: Vec<usize>,
    /// First byte in the part's text ([`Part::cited_text`]).
    pub start: usize,
    /// One past the last byte. A segment over all of a call's arguments stands for the whole call,
    /// its name included.
    pub end: usize,
    /// Factor of the loss.
    pub weight: f64,
}

/// Half of a preference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Shared by both halves.
    pub id: String,
    /// Whether this half is the better one.
    pub chosen: bool,
}

/// What a policy sampled, in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Log-probability of each, natural logarithm.
    pub logprobs: Vec<f64>,
}

/// Where an example comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The view that built it.
    pub view: String,
    /// The run.
    pub trajectory: TrajectoryId,
    /// The run's task.
    pub task: TaskKey,
    /// The source's licence.
    pub licence: String,
    /// The side of the split.
    pub side: Side,
}

impl Example {
    /// An example with nothing but its text.
    pub fn new(context: Vec<Arc<Message>>, segments: Vec<Segment>, lineage: Lineage) -> Self {
        Self { context, segments, pair: None, group: None, sampled: None, teacher_logprobs: None, lineage }
    }

    /// The same as one example for each message that is learned from: its context ends there and
    /// earlier targets become context. For formats that cannot weigh each message.
    pub fn steps(&self) -> Vec<Self> {
        let step = |(index, message): (usize, &Arc<Message>)| {
            let segments: Vec<Segment> = self.segments_of(message).cloned().collect();
            (!segments.is_empty()).then(|| Self {
                pair: self.pair.clone(),
                group: self.group.clone(),
                ..Self::new(self.context[..=index].to_vec(), segments, self.lineage.clone())
            })
        };
        self.context.iter().enumerate().filter_map(step).collect()
    }

    /// The segments that lie in a message.
    pub fn segments_of(&self, message: &Message) -> impl Iterator<Item = &Segment> {
        self.segments.iter().filter(move |segment| Some(segment.node) == message.node)
    }

    /// Whether all of a message that can be learned from is, with weight 1.
    pub fn learns_all_of(&self, message: &Message) -> bool {
        let mut segments = self.segments_of(message);
        let expected = message.node.into_iter().flat_map(|node| message.segments(node));
        expected.eq(segments.by_ref().cloned()) && self.segments_of(message).next().is_some()
    }

    /// Hash of what is shown and what is learned, of nothing else: two runs that teach the same
    /// thing have equal ones. Call ids, which are drawn at random, are left out.
    pub fn content_hash(&self) -> Hash {
        let mut hasher = blake3::Hasher::new();
        let mut field = |tag: &str, text: &str| {
            hasher.update(tag.as_bytes());
            hasher.update(&(text.len() as u64).to_le_bytes());
            hasher.update(text.as_bytes());
        };
        for message in &self.context {
            field("role", message.role.as_str());
            for part in &message.parts {
                hash_part(part, &mut field);
            }
            for segment in self.segments_of(message) {
                let Segment { part_path, start, end, weight, .. } = segment;
                field("segment", &format!("{part_path:?} {start} {end} {weight:?}"));
            }
        }
        if let Some(pair) = &self.pair {
            field("chosen", if pair.chosen { "yes" } else { "no" });
        }
        Hash(hasher.finalize().into())
    }
}

impl Message {
    /// The messages of a branch, each as it stands.
    pub fn of_branch(branch: &Branch<'_>) -> Vec<Arc<Self>> {
        let message = |(position, node): (usize, &Node)| {
            Arc::new(Self {
                node: Some(position),
                role: node.role,
                agent: node.agent.clone(),
                parts: node.parts.clone(),
            })
        };
        branch.nodes().map(message).collect()
    }

    /// Segments of weight 1 over all that a policy writes in a message: its text, its reasoning, its
    /// calls. What a tool answered, a picture or a sealed piece is never learned from.
    pub fn segments(&self, node: usize) -> impl Iterator<Item = Segment> + '_ {
        self.parts.iter().enumerate().filter_map(move |(index, part)| {
            let end = match part {
                Part::Text(text) => text.text.len(),
                Part::Reasoning { text, .. } => text.len(),
                Part::ToolCall(call) => call.arguments_raw.len(),
                Part::ToolResult(_) | Part::Media(_) | Part::Opaque { .. } => return None,
            };
            let learnable = end > 0 || matches!(part, Part::ToolCall(_));
            learnable.then(|| Segment { node, part_path: vec![index], start: 0, end, weight: 1.0 })
        })
    }
}

fn hash_part(part: &Part, field: &mut impl FnMut(&str, &str)) {
    match part {
        Part::Text(text) => field("text", &text.text),
        Part::Reasoning { text, .. } => field("reasoning", text),
        Part::ToolCall(call) => {
            field("call", &call.name);
            field("arguments", &call.arguments_raw);
        }
        Part::ToolResult(result) => {
            field("result", "");
            for part in &result.parts {
                hash_part(part, field);
            }
        }
        Part::Media(media) => {
            field("media", &media.mime);
            field("blob", &media.blob.map(|blob| blob.to_string()).unwrap_or_default());
            field("reference", media.reference.as_deref().unwrap_or_default());
        }
        Part::Opaque { kind, raw } => {
            field("opaque", kind);
            field("raw", raw);
        }
    }
}
