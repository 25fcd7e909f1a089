//! The messages of all model calls of a run, laid over each other.
//!
//! Every request repeats the history. Message by message it is followed from the root through what is
//! known already; where it leaves that, a branch begins. So a history that is repeated in every request
//! adds nothing, and one that was cut, summarized or edited is a branch, as is a sub-agent's.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use serde_json::value::RawValue;

use super::cut_off::mended;
use super::genai::plain;
use super::repeated::Repeated;
use super::request::Request;
use super::sameness::{call_ids, essence, ids_agree};
use super::span::Span;
use super::time::Time;
use crate::id::Hash;
use crate::importers::RecordError;
use crate::importers::dialect::{Aside, Dialect, message, messages, offered};
use crate::importers::object::Object;
use crate::importers::value::{is_array, is_object, text};
use crate::trajectory::{Node, Part, Role, Tool, Trajectory};

/// Why a request or an answer is not read, but kept as its text.
const NO_MESSAGES: &str = "not in a form of messages; its text is kept";
/// Messages alike but for their ids that are compared.
const ALIKE_MAX: usize = 256;
/// Requests that later ones are compared with.
const REQUESTS_MAX: usize = 16;

/// What is known so far. A position is that of a node of the run; `None` is before the first message.
pub(super) struct Conversation {
    pub(super) run: Trajectory,
    pub(super) aside: Aside,
    /// Messages by what they follow and what they say.
    known: HashMap<(Option<usize>, Hash), Vec<usize>>,
    /// Turns by what they follow and the ids of their calls.
    by_calls: HashMap<(Option<usize>, Vec<String>), usize>,
    /// Where a message's source text, after a position, led.
    read: HashMap<(Option<usize>, Hash), usize>,
    /// Answers by the provider's id.
    responses: HashMap<String, usize>,
    /// The last request of each agent, by where it went on from.
    requests: HashMap<(String, Option<usize>), Repeated>,
    /// Names of the tools that were offered.
    offered: BTreeSet<String>,
}

/// A model call's answer in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    At(usize),
    /// Another span's answer is the same.
    Again(usize),
    None,
}

impl Conversation {
    pub(super) fn new(run: Trajectory) -> Self {
        Self {
            run,
            aside: Aside::default(),
            known: HashMap::new(),
            by_calls: HashMap::new(),
            read: HashMap::new(),
            responses: HashMap::new(),
            requests: HashMap::new(),
            offered: BTreeSet::new(),
        }
    }

    /// Adds tools that a model call was offered.
    fn offer(&mut self, tools: Vec<Tool>) {
        for tool in tools {
            if self.offered.insert(tool.name.clone()) {
                self.run.tools.push(tool);
            }
        }
    }

    /// Follows a model call: its request through what is known, then its answer.
    pub(super) fn call(
        &mut self,
        span: &mut Span<'_>,
        agent: &str,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Answer {
        let mut at = None;
        if let Some(response) = &span.continues {
            at = self.responses.get(response).copied();
            if at.is_none() {
                lost.push((
                    "previous_response_id".to_owned(),
                    "the response it goes on from is not recorded",
                ));
            }
        }
        let speaker = Speaker { role: Role::User, agent, time: span.start.as_ref(), dialect: span.dialect };
        let mut before = at;
        for raw in [span.system.take(), span.input.take()].into_iter().flatten() {
            before = at;
            at = self.follow(&raw, at, &speaker, lost).unwrap_or_else(|error| {
                lost.push((format!("input: {}", error.reason), NO_MESSAGES));
                Some(self.step(Node::new(Role::User, "user", vec![Part::text(plain(&raw))]), at, &speaker))
            });
        }
        if !self.requests.get(&(agent.to_owned(), before)).is_some_and(|last| last.offers) {
            self.offer(std::mem::take(&mut span.tools));
        }
        let output = span.output.take().map(|raw| mended(&raw, lost).map_or(raw, Cow::Owned));
        self.aside.alternatives = Some(Vec::new());
        let nodes = output.map(|raw| {
            let read = messages(&raw, span.dialect, Role::Assistant, &mut self.aside);
            read.unwrap_or_else(|error| {
                lost.push((format!("output: {}", error.reason), NO_MESSAGES));
                vec![Node::new(Role::Assistant, "assistant", vec![Part::text(plain(&raw))])]
            })
        });
        let mut nodes = nodes.unwrap_or_default();
        nodes.extend(self.aside.alternatives.take().unwrap_or_default());
        let is_whole = nodes.iter().any(|node| node.role != Role::Assistant);
        let answer = if is_whole {
            self.whole(nodes, at, agent, span, lost)
        } else {
            self.answer(nodes, at, agent, span, lost)
        };
        if let (Some(response), Answer::At(node) | Answer::Again(node)) = (&span.response, answer) {
            self.responses.insert(response.clone(), node);
        }
        answer
    }

    /// Follows messages from a position, adding what is not known; returns where they end.
    fn follow(
        &mut self,
        raw: &RawValue,
        at: Option<usize>,
        speaker: &Speaker<'_>,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Result<Option<usize>, RecordError> {
        let key = (speaker.agent.to_owned(), at);
        let mut last = self.requests.remove(&key).unwrap_or_default();
        let mut ends = Vec::new();
        let rest = last.rest(raw.get());
        let more = rest.as_ref().and_then(|rest| Request::read_on(&rest.text, last.in_object));
        let (from, to) = if let (Some(rest), Some(more)) = (&rest, more) {
            last.offers |= self.offer_in(&more);
            (rest.from, self.walk(&more.messages, Some(rest.at), speaker, &mut ends)?)
        } else {
            let decoded = text(raw);
            let source = decoded.as_deref().unwrap_or(raw.get());
            let Some(request) = Request::read(source) else {
                return self.follow_other(raw, at, speaker, lost);
            };
            last.in_object = request.in_object;
            last.offers = self.offer_in(&request);
            (0, self.walk(&request.messages, at, speaker, &mut ends)?)
        };
        last.keep(raw.get(), from, &ends);
        if self.requests.len() >= REQUESTS_MAX {
            self.requests.clear();
        }
        self.requests.insert(key, last);
        Ok(to)
    }

    /// Follows the messages of a list. `ends` gets the places behind those that are one by themselves, with
    /// the positions that these led to.
    fn walk(
        &mut self,
        list: &[(&RawValue, usize)],
        mut at: Option<usize>,
        speaker: &Speaker<'_>,
        ends: &mut Vec<(usize, usize)>,
    ) -> Result<Option<usize>, RecordError> {
        let mut rest = list;
        while let Some(((first, end), later)) = rest.split_first() {
            let key = (at, Hash::of(first.get().as_bytes()));
            if let Some(next) = self.read.get(&key) {
                ends.push((*end, *next));
                (at, rest) = (Some(*next), later);
                continue;
            }
            // Items that make one message together have no role of their own.
            let items = rest.iter().take_while(|(raw, _)| !has_role(raw)).count();
            let (now, later) = rest.split_at(items.max(1));
            rest = later;
            let nodes = if items > 1 {
                let items: Vec<&str> = now.iter().map(|(raw, _)| raw.get()).collect();
                let joined = format!("[{}]", items.join(","));
                let joined: &RawValue = serde_json::from_str(&joined)?;
                messages(joined, speaker.dialect, speaker.role, &mut self.aside)?
            } else {
                message(first, speaker.dialect, speaker.role, &mut self.aside)?
            };
            for node in nodes {
                at = Some(self.step(node, at, speaker));
            }
            if let (Some(at), 0) = (at, items) {
                self.read.insert(key, at);
                ends.push((*end, at));
            }
        }
        Ok(at)
    }

    /// Follows what is no list of messages: one cut off, one in another, a single message, a text.
    fn follow_other(
        &mut self,
        raw: &RawValue,
        at: Option<usize>,
        speaker: &Speaker<'_>,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Result<Option<usize>, RecordError> {
        if let Some(mended) = mended(raw, lost) {
            return self.follow(&mended, at, speaker, lost);
        }
        let decoded = text(raw);
        let inner = decoded.as_deref().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
        let raw = inner.filter(|inner| is_array(inner) || is_object(inner)).unwrap_or(raw);
        if let Some(request) = Request::of_batch(raw) {
            return self.walk(&request.messages, at, speaker, &mut Vec::new());
        }
        let nodes = messages(raw, speaker.dialect, speaker.role, &mut self.aside)?;
        Ok(nodes.into_iter().fold(at, |at, node| Some(self.step(node, at, speaker))))
    }

    /// Adds the tools that a request offers; false where it offers none.
    fn offer_in(&mut self, request: &Request<'_>) -> bool {
        let Some(raw) = request.tools else { return false };
        let tools = offered(raw, &mut self.aside);
        self.offer(tools);
        true
    }

    /// A message of a request: the known one, or a new one.
    pub(super) fn step(&mut self, mut node: Node, at: Option<usize>, speaker: &Speaker<'_>) -> usize {
        let key = (at, essence(&node));
        if let Some(known) = self.find(&key, &node) {
            return known;
        }
        node.parent = at;
        node.occurrence.sampled = false;
        if node.role == Role::Assistant {
            if node.agent == Role::Assistant.as_str() {
                speaker.agent.clone_into(&mut node.agent);
            }
        } else if node.occurrence.at.is_none() {
            node.occurrence.at = speaker.time.map(|time| time.as_str().to_owned());
        }
        self.push(node, key)
    }

    /// The message with this place and meaning that is known already.
    pub(super) fn find(&self, key: &(Option<usize>, Hash), node: &Node) -> Option<usize> {
        let agrees = |known: &usize| self.run.nodes.get(*known).is_some_and(|known| ids_agree(known, node));
        let alike = self.known.get(key).into_iter().flatten().copied().take(ALIKE_MAX).find(agrees);
        alike.or_else(|| {
            let known = self.by_calls.get(&(key.0, call_ids(node)?)).copied()?;
            let is_bare = |node: &Node| node.parts.iter().all(|part| part.as_text().is_none());
            (is_bare(node) || is_bare(self.run.nodes.get(known)?)).then_some(known)
        })
    }

    /// Adds a message, to be found by its place and meaning.
    pub(super) fn push(&mut self, node: Node, key: (Option<usize>, Hash)) -> usize {
        let ids = call_ids(&node);
        let position = self.run.push_under(node);
        if let Some(ids) = ids {
            self.by_calls.entry((key.0, ids)).or_insert(position);
        }
        self.known.entry(key).or_default().push(position);
        position
    }
}

/// Who speaks in a request where the message does not say.
pub(super) struct Speaker<'s> {
    pub(super) role: Role,
    pub(super) agent: &'s str,
    pub(super) time: Option<&'s Time>,
    pub(super) dialect: Option<Dialect>,
}

fn has_role(raw: &RawValue) -> bool {
    Object::of(raw).is_none_or(|message| message.has("role") || message.has("lc") || message.has("parts"))
}
