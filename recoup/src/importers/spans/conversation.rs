//! The messages of all model calls of a run, laid over each other.
//!
//! Every request repeats the history. Message by message it is followed from the root through what is
//! known already; where it leaves that, a branch begins. So a history that is repeated in every request
//! adds nothing, and one that was cut, summarized or edited is a branch, as is a sub-agent's.
//!
//! Two messages are the same if they say the same: texts, calls (name and arguments, whatever their
//! spelling as JSON), results. Reasoning and ids do not count, for histories drop them, but ids that
//! are there on both sides must agree. Some recorders drop the text beside calls from a history; then
//! the calls' ids tell.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use super::genai::plain;
use super::span::Span;
use super::time::Time;
use crate::id::Hash;
use crate::importers::RecordError;
use crate::importers::dialect::{Aside, Dialect, message, messages};
use crate::importers::object::Object;
use crate::importers::value::{elements, is_array, is_object, json_object, text, value};
use crate::json::Json;
use crate::trajectory::{Call, Node, Part, Role, Trajectory};

/// Why a request or an answer is not read, but kept as its text.
const NO_MESSAGES: &str = "not in a form of messages; its text is kept";
/// Messages alike but for their ids that are compared.
const ALIKE_MAX: usize = 256;

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
        for raw in [span.system.take(), span.input.take()].into_iter().flatten() {
            at = self.follow(&raw, at, &speaker, lost).unwrap_or_else(|error| {
                lost.push((format!("input: {}", error.reason), NO_MESSAGES));
                Some(self.step(Node::new(Role::User, "user", vec![Part::text(plain(&raw))]), at, &speaker))
            });
        }
        let output = span.output.take().map(|raw| mended(&raw, lost).map_or(raw, Cow::Owned));
        let nodes = output.map(|raw| {
            let read = messages(&raw, span.dialect, Role::Assistant, &mut self.aside);
            read.unwrap_or_else(|error| {
                lost.push((format!("output: {}", error.reason), NO_MESSAGES));
                vec![Node::new(Role::Assistant, "assistant", vec![Part::text(plain(&raw))])]
            })
        });
        let nodes = nodes.unwrap_or_default();
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
        mut at: Option<usize>,
        speaker: &Speaker<'_>,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Result<Option<usize>, RecordError> {
        let decoded = text(raw);
        // A list, as nearly every request is, is looked through once.
        let source = decoded.as_deref().unwrap_or(raw.get());
        let mut list: Option<Vec<&RawValue>> = serde_json::from_str(source).ok();
        if list.is_none()
            && let Some(mended) = mended(raw, lost)
        {
            return self.follow(&mended, at, speaker, lost);
        }
        list = list.or_else(|| requested(source));
        if let Some([only]) = list.as_deref()
            && is_array(only)
        {
            // A batch of one prompt.
            list = elements(only);
        }
        let list = list.filter(|list| !list.is_empty() && list.iter().all(|raw| is_object(raw)));
        let Some(list) = list else {
            let inner = decoded.as_deref().and_then(|text| serde_json::from_str::<&RawValue>(text).ok());
            let raw = inner.filter(|inner| is_array(inner) || is_object(inner)).unwrap_or(raw);
            let nodes = messages(raw, speaker.dialect, speaker.role, &mut self.aside)?;
            return Ok(nodes.into_iter().fold(at, |at, node| Some(self.step(node, at, speaker))));
        };
        let mut rest = list.as_slice();
        while let Some((first, later)) = rest.split_first() {
            let key = (at, Hash::of(first.get().as_bytes()));
            if let Some(next) = self.read.get(&key) {
                (at, rest) = (Some(*next), later);
                continue;
            }
            // Items that make one message together have no role of their own.
            let items = rest.iter().take_while(|raw| !has_role(raw)).count();
            let (now, later) = rest.split_at(items.max(1));
            rest = later;
            let nodes = if items > 1 {
                let items: Vec<&str> = now.iter().map(|raw| raw.get()).collect();
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
            }
        }
        Ok(at)
    }

    /// A message of a request: the known one, or a new one.
    fn step(&mut self, mut node: Node, at: Option<usize>, speaker: &Speaker<'_>) -> usize {
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

    /// An output that is a conversation: its messages one after the other, from the start where it repeats
    /// the request. What the call cost is its last answer's.
    fn whole(
        &mut self,
        nodes: Vec<Node>,
        mut at: Option<usize>,
        agent: &str,
        span: &mut Span<'_>,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Answer {
        if nodes.first().is_some_and(|first| self.find(&(None, essence(first)), first).is_some()) {
            at = None;
        }
        let said = |node: &Node| node.role == Role::Assistant && !node.parts.is_empty();
        let last = nodes.iter().rposition(said);
        let (call, rest, error) =
            (std::mem::take(&mut span.call), std::mem::take(&mut span.rest), span.error.take());
        let (start, dialect) = (span.start.clone(), span.dialect);
        let speaker = Speaker { role: Role::Assistant, agent, time: start.as_ref(), dialect };
        let mut own = Some((call, rest, error));
        let mut answer = Answer::None;
        for (index, node) in nodes.into_iter().enumerate() {
            if Some(index) == last {
                (span.call, span.rest, span.error) = own.take().unwrap_or_default();
            }
            let known = self.find(&(at, essence(&node)), &node);
            if said(&node) && (known.is_none() || Some(index) == last) {
                answer = self.answer(vec![node], at, agent, span, lost);
                if let Answer::At(node) | Answer::Again(node) = answer {
                    at = Some(node);
                }
            } else if !node.parts.is_empty() {
                at = Some(self.step(node, at, &speaker));
            }
        }
        match own {
            // Nobody answers in it.
            Some(own) => {
                (span.call, span.rest, span.error) = own;
                self.answer(Vec::new(), at, agent, span, lost)
            }
            None => answer,
        }
    }

    /// The answer of a model call after its request.
    fn answer(
        &mut self,
        nodes: Vec<Node>,
        at: Option<usize>,
        agent: &str,
        span: &mut Span<'_>,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Answer {
        let call = std::mem::take(&mut span.call);
        let call = Call { error: span.error.clone(), ..call };
        let time = span.end.as_ref().or(span.start.as_ref()).map(|time| time.as_str().to_owned());
        let mut said: Vec<Node> = nodes.into_iter().filter(|node| node.role == Role::Assistant).collect();
        if said.iter().all(|node| node.parts.is_empty()) {
            said.clear();
        }
        if said.is_empty() {
            if span.error.is_some() {
                said.push(Node::new(Role::Assistant, agent, Vec::new()));
            } else {
                lost.push(("output".to_owned(), "a model call without a recorded answer"));
                return Answer::None;
            }
        }
        let mut answer = Answer::None;
        for mut node in said {
            if node.agent == Role::Assistant.as_str() {
                agent.clone_into(&mut node.agent);
            }
            let mut call = call.clone();
            if let Some(own) = node.occurrence.call.take() {
                call.finish_reason = own.finish_reason.clone().or(call.finish_reason);
                complete(&mut call, *own);
            }
            node.occurrence.sampled = !node.parts.is_empty();
            node.occurrence.call = Some(Box::new(call));
            node.occurrence.at.clone_from(&time);
            node.occurrence.extra = extra(node.occurrence.extra.take(), &span.rest);
            node.parent = at;
            let key = (at, essence(&node));
            let known = self.find(&key, &node);
            let placed = match known {
                None => Answer::At(self.push(node, key)),
                Some(known) => match self.run.nodes.get_mut(known) {
                    // A history held it before its own call was looked at, perhaps without its reasoning.
                    Some(old) if !old.occurrence.sampled => {
                        *old = node;
                        Answer::At(known)
                    }
                    Some(old) => {
                        lost.push(("output".to_owned(), "the same answer to the same request, kept once"));
                        if let (Some(old), Some(new)) = (&mut old.occurrence.call, node.occurrence.call) {
                            complete(old, *new);
                        }
                        Answer::Again(known)
                    }
                    None => Answer::None,
                },
            };
            // Of several choices the first goes on.
            if answer == Answer::None {
                answer = placed;
            }
        }
        answer
    }

    fn find(&self, key: &(Option<usize>, Hash), node: &Node) -> Option<usize> {
        let agrees = |known: &usize| self.run.nodes.get(*known).is_some_and(|known| ids_agree(known, node));
        let alike = self.known.get(key).into_iter().flatten().copied().take(ALIKE_MAX).find(agrees);
        alike.or_else(|| {
            let known = self.by_calls.get(&(key.0, call_ids(node)?)).copied()?;
            let is_bare = |node: &Node| node.parts.iter().all(|part| part.as_text().is_none());
            (is_bare(node) || is_bare(self.run.nodes.get(known)?)).then_some(known)
        })
    }

    fn push(&mut self, node: Node, key: (Option<usize>, Hash)) -> usize {
        let ids = call_ids(&node);
        let position = self.run.push_under(node);
        if let Some(ids) = ids {
            self.by_calls.entry((key.0, ids)).or_insert(position);
        }
        self.known.entry(key).or_default().push(position);
        position
    }
}

/// What is whole of a list of messages whose text an exporter cut off, or a number or truth value as
/// text; `None` for anything else, which is as it should be.
fn mended(raw: &RawValue, lost: &mut Vec<(String, &'static str)>) -> Option<Box<RawValue>> {
    if !raw.get().starts_with(['"', '[', '{']) {
        return RawValue::from_string(Json::string(raw.get()).as_str().to_owned()).ok();
    }
    // The start of a list of objects within a string.
    if !raw.get().starts_with("\"[{") {
        return None;
    }
    let text = text(raw)?;
    let mut rest = text.strip_prefix('[')?;
    if serde_json::from_str::<&RawValue>(&text).is_ok() {
        return None;
    }
    let mut whole: Vec<&str> = Vec::new();
    loop {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<&RawValue>();
        let Some(Ok(value)) = values.next() else { break };
        whole.push(value.get());
        let after = rest.get(values.byte_offset()..).unwrap_or_default().trim_start();
        let Some(next) = after.strip_prefix(',') else { break };
        rest = next;
    }
    if whole.is_empty() {
        return None;
    }
    lost.push(("messages".to_owned(), "cut off by the exporter; the messages before the cut are kept"));
    RawValue::from_string(format!("[{}]", whole.join(","))).ok()
}

/// The messages of a request that holds nothing else to be said.
fn requested(source: &str) -> Option<Vec<&RawValue>> {
    let request: Object<'_> = serde_json::from_str(source).ok()?;
    let apart = ["role", "lc", "system", "instructions", "systemInstruction", "system_instruction"];
    if apart.iter().any(|key| request.has(key)) {
        return None;
    }
    elements(request.get("messages")?)
}

/// Who speaks in a request where the message does not say.
struct Speaker<'s> {
    role: Role,
    agent: &'s str,
    time: Option<&'s Time>,
    dialect: Option<Dialect>,
}

fn has_role(raw: &RawValue) -> bool {
    Object::of(raw).is_none_or(|message| message.has("role") || message.has("lc") || message.has("parts"))
}

/// What a message says, whatever its spelling.
fn essence(node: &Node) -> Hash {
    let mut out = String::from(node.role.as_str());
    say(&node.parts, &mut out);
    Hash::of(out.as_bytes())
}

fn say(parts: &[Part], out: &mut String) {
    for part in parts {
        match part {
            Part::Text(text) => out.push_str(&text.text),
            Part::Reasoning { .. } => {}
            Part::ToolCall(call) => {
                let arguments = Json::parse(&call.arguments_raw);
                let arguments = arguments.as_ref().map_or(call.arguments_raw.as_str(), Json::as_str);
                out.extend(["\u{1}", &call.name, "\u{2}", arguments]);
            }
            Part::ToolResult(result) => {
                out.push('\u{3}');
                say(&result.parts, out);
            }
            Part::Media(media) => {
                let blob = media.blob.map(|blob| blob.to_string());
                out.extend(["\u{4}", blob.as_deref().or(media.reference.as_deref()).unwrap_or_default()]);
            }
            Part::Opaque { kind, raw } => out.extend(["\u{5}", kind, "\u{6}", raw]),
        }
    }
}

/// The ids of a turn's calls; `None` without a call, or with one that has none.
fn call_ids(node: &Node) -> Option<Vec<String>> {
    let ids: Option<Vec<String>> = node.tool_calls().map(|(_, call)| call.call_id.clone()).collect();
    ids.filter(|ids| !ids.is_empty() && node.role == Role::Assistant)
}

/// False where a call or a result has another id on either side.
fn ids_agree(one: &Node, other: &Node) -> bool {
    let ids = |node: &Node| -> Vec<Option<String>> {
        let id = |part: &Part| match part {
            Part::ToolCall(call) => Some(call.call_id.clone()),
            Part::ToolResult(result) => Some(result.call_id.clone()),
            _ => None,
        };
        node.parts.iter().filter_map(id).collect()
    };
    ids(one).into_iter().zip(ids(other)).all(|(one, other)| one.is_none() || other.is_none() || one == other)
}

/// Adds to a call what a second record of it knows more.
fn complete(old: &mut Call, new: Call) {
    old.model = old.model.take().or(new.model);
    old.parameters = old.parameters.take().or(new.parameters);
    old.finish_reason = old.finish_reason.take().or(new.finish_reason);
    old.usage = old.usage.or(new.usage);
    old.cost = old.cost.or(new.cost);
}

/// What a message and its span say beside each other.
fn extra(own: Option<Json>, rest: &BTreeMap<String, Json>) -> Option<Json> {
    if rest.is_empty() {
        return own;
    }
    let own: Option<Box<RawValue>> = own.and_then(|own| serde_json::from_str(own.as_str()).ok());
    let own = own.as_deref().and_then(value::<BTreeMap<String, Json>>).unwrap_or_default();
    json_object(rest.iter().map(|(key, value)| (key.clone(), value.clone())).chain(own))
}
