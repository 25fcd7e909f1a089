//! An example: the one record of training, which every method here only fills differently.
//!
//! It holds messages and says which bytes of them are learned from, with what weight; everything
//! else is context, with weight 0. A preference is two examples with one pair id; a group of samples
//! that are compared with one another shares `group`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Lineage;
use crate::id::Hash;
use crate::trajectory::{Branch, Node, Part, Role, Tool, Trajectory};

/// One thing to learn from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The conversation, root first, up to and including the last message that is learned from.
    pub context: Vec<Arc<Message>>,
    /// The tools offered in it.
    pub tools: Arc<[Tool]>,
    /// What is learned from: disjoint, in order; every byte outside them has weight 0.
    pub segments: Vec<Segment>,
    /// What a trainer makes of it.
    pub objective: Objective,
    /// The preference it is one half of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<Pair>,
    /// The group of samples whose rewards are compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The teacher's log-probability of each sampled token, natural logarithm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher_logprobs: Option<Vec<f64>>,
    /// Whether what is learned is wanted, under [`Objective::Desirability`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub desirable: Option<bool>,
    /// What each labelled step is worth, under [`Objective::StepRewards`], in order of message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub step_labels: Vec<StepLabel>,
    /// Where it comes from.
    pub lineage: Lineage,
}

/// What a trainer makes of an example, and over what its loss is averaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// Imitation; `Σᵢ wᵢ Σ_{t∈Tᵢ} −log p / Σᵢ|Tᵢ|` over all learned tokens of a step of the optimizer.
    TokenSum,
    /// Imitation; `(1/B) Σᵢ (wᵢ/|Tᵢ|) Σ_{t∈Tᵢ} −log p`: long examples count no more than short ones.
    MeanPerExample,
    /// One half of a preference ([`Pair`]): the same state, two messages.
    Preference,
    /// A message that is wanted or not, without a counterpart (KTO).
    Desirability,
    /// Labels of steps, for a model of process rewards.
    StepRewards,
    /// The same actions under the goal they reached and the one they missed: halves of a [`Pair`] whose
    /// contexts differ, for a loss of its own.
    GoalContrast,
}

impl Objective {
    /// The objective's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TokenSum => "token_sum",
            Self::MeanPerExample => "mean_per_example",
            Self::Preference => "preference",
            Self::Desirability => "desirability",
            Self::StepRewards => "step_rewards",
            Self::GoalContrast => "goal_contrast",
        }
    }
}

/// What one step is worth.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepLabel {
    /// Position of the message in the example's context.
    pub message: usize,
    /// Whether the step is right.
    pub correct: bool,
    /// The share of continuations from after it that succeeded, between 0 and 1, where some were run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
}

/// A message of an example.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Position of the node that it is in the lineage's run; `None` for one that stands there in no node, such as
    /// one that the view wrote itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Chat role.
    pub role: Role,
    /// Author.
    pub agent: String,
    /// Content.
    pub parts: Vec<Part>,
    /// What the policy sampled, in tokens, where that was recorded and nothing of it was redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sampled: Option<Sampled>,
}

/// Bytes that are learned from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Position of the message in the example's context.
    pub message: usize,
    /// `[i]`: part of the message.
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
    /// Shared by both halves: a hash of what they show and learn, so that equal pairs have equal ones.
    pub id: String,
    /// Whether this half is the better one.
    pub chosen: bool,
}

/// What a policy sampled, in tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// Token ids.
    pub ids: Vec<u32>,
    /// Log-probability of each, natural logarithm, where recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logprobs: Option<Vec<f64>>,
}

impl Example {
    /// An example to imitate, with nothing but its text.
    pub fn new(
        context: Vec<Arc<Message>>,
        tools: Arc<[Tool]>,
        segments: Vec<Segment>,
        lineage: Lineage,
    ) -> Self {
        Self {
            context,
            tools,
            segments,
            objective: Objective::TokenSum,
            pair: None,
            group: None,
            teacher_logprobs: None,
            desirable: None,
            step_labels: Vec::new(),
            lineage,
        }
    }

    /// The same as one example for each message that is learned from: its context ends there and
    /// earlier targets become context. For formats that cannot weigh each message.
    pub fn steps(&self) -> Vec<Self> {
        let step = |index: usize| {
            let segments: Vec<Segment> = self.segments_of(index).cloned().collect();
            (!segments.is_empty()).then(|| Self {
                objective: self.objective,
                pair: self.pair.clone(),
                group: self.group.clone(),
                desirable: self.desirable,
                ..Self::new(
                    self.context[..=index].to_vec(),
                    Arc::clone(&self.tools),
                    segments,
                    self.lineage.clone(),
                )
            })
        };
        (0..self.context.len()).filter_map(step).collect()
    }

    /// Makes a preference of two examples: the better one, then the other.
    pub fn paired(chosen: Self, rejected: Self, objective: Objective) -> [Self; 2] {
        let hashes = [chosen.content_hash().0, rejected.content_hash().0];
        let id = Hash::of_all(&[&hashes[0], &hashes[1]]).to_string();
        let half = |example: Self, chosen| Self {
            objective,
            pair: Some(Pair { id: id.clone(), chosen }),
            ..example
        };
        [half(chosen, true), half(rejected, false)]
    }

    /// The segments that lie in a message, by its position in the context.
    pub fn segments_of(&self, message: usize) -> impl Iterator<Item = &Segment> {
        let first = self.segments.partition_point(|segment| segment.message < message);
        self.segments[first..].iter().take_while(move |segment| segment.message == message)
    }

    /// Whether all of a message that can be learned from is, with weight 1.
    pub fn learns_all_of(&self, message: usize) -> bool {
        let whole = self.context.get(message).into_iter().flat_map(|shown| shown.segments(message));
        self.segments_of(message).next().is_some() && whole.eq(self.segments_of(message).cloned())
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
        for (index, message) in self.context.iter().enumerate() {
            field("role", message.role.as_str());
            for part in &message.parts {
                hash_part(part, &mut field);
            }
            for segment in self.segments_of(index) {
                let Segment { part_path, start, end, weight, .. } = segment;
                field("segment", &format!("{part_path:?} {start} {end} {weight:?}"));
            }
        }
        if let Some(desirable) = self.desirable {
            field("desirable", if desirable { "yes" } else { "no" });
        }
        for StepLabel { message, correct, value } in &self.step_labels {
            field("step", &format!("{message} {correct} {value:?}"));
        }
        if let Some(pair) = &self.pair {
            field("pair", &pair.id);
            field("chosen", if pair.chosen { "yes" } else { "no" });
        }
        Hash(hasher.finalize().into())
    }
}

impl Message {
    /// The messages of a branch, each as it stands, behind the system prompt that the source keeps apart
    /// from them, of the first agent to speak.
    pub fn of_branch(run: &Trajectory, branch: &Branch<'_>) -> Vec<Arc<Self>> {
        let own_prompt = match branch.nodes().next() {
            Some((_, first)) if first.role == Role::System => None,
            _ => own_system_prompt(run, branch),
        };
        let message = |(position, node): (usize, &Node)| {
            let call = node.occurrence.call.as_deref();
            let ids = call.and_then(|call| call.completion_ids.clone());
            Self {
                node: Some(position),
                role: node.role,
                agent: node.agent.clone(),
                parts: node.parts.clone(),
                sampled: ids
                    .map(|ids| Sampled { ids, logprobs: call.and_then(|call| call.logprobs.clone()) }),
            }
        };
        own_prompt.into_iter().chain(branch.nodes().map(message)).map(Arc::new).collect()
    }

    /// Whether two messages say the same, whatever is known of how they came about.
    pub fn reads_as(&self, other: &Self) -> bool {
        (self.role, &self.agent, &self.parts) == (other.role, &other.agent, &other.parts)
    }

    /// A message that stands in no run.
    pub fn written(role: Role, agent: &str, parts: Vec<Part>) -> Self {
        Self { node: None, role, agent: agent.to_owned(), parts, sampled: None }
    }

    /// Segments of weight 1 over all that a policy writes in a message: its text, its reasoning, its
    /// calls. What a tool answered, a picture or a sealed piece is never learned from. `message` is its
    /// position in the example's context.
    pub fn segments(&self, message: usize) -> impl Iterator<Item = Segment> + '_ {
        self.parts.iter().enumerate().filter_map(move |(index, part)| {
            let end = match part {
                Part::Text(text) => text.text.len(),
                Part::Reasoning { text, .. } => text.len(),
                Part::ToolCall(call) => call.arguments_raw.len(),
                Part::ToolResult(_) | Part::Media(_) | Part::Opaque { .. } => return None,
            };
            let learnable = end > 0 || matches!(part, Part::ToolCall(_));
            learnable.then(|| Segment { message, part_path: vec![index], start: 0, end, weight: 1.0 })
        })
    }
}

fn own_system_prompt(run: &Trajectory, branch: &Branch<'_>) -> Option<Message> {
    let (_, speaker) = branch.nodes().find(|(_, node)| node.role == Role::Assistant)?;
    let prompt = run.agents.iter().find(|agent| agent.name == speaker.agent)?.system_prompt.as_deref()?;
    Some(Message::written(Role::System, "system", vec![Part::text(prompt)]))
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
