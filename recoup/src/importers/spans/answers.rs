//! Answers of model calls: where they stand in the conversation, and what each cost.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::conversation::{Answer, Conversation, Speaker};
use super::sameness::essence;
use super::span::Span;
use crate::importers::value::{json_object, value};
use crate::json::Json;
use crate::trajectory::{Call, Node, Role};

impl Conversation {
    /// An output that is a conversation: its messages one after the other, from the start where it repeats
    /// the request. What the call cost is its last answer's.
    pub(super) fn whole(
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
    pub(super) fn answer(
        &mut self,
        nodes: Vec<Node>,
        at: Option<usize>,
        agent: &str,
        span: &mut Span<'_>,
        lost: &mut Vec<(String, &'static str)>,
    ) -> Answer {
        let call = std::mem::take(&mut span.call);
        let mut call = Call { error: span.error.clone(), ..call };
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
            let mut made = call.clone();
            if let Some(own) = node.occurrence.call.take() {
                made.finish_reason = own.finish_reason.clone().or(made.finish_reason);
                complete(&mut made, *own);
            }
            node.occurrence.sampled = !node.parts.is_empty();
            node.occurrence.call = Some(Box::new(made));
            node.occurrence.at.clone_from(&time);
            node.occurrence.extra = extra(node.occurrence.extra.take(), span.rest.clone());
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
            // Of several choices the first goes on, and what the call cost is told once.
            if answer == Answer::None {
                answer = placed;
            }
            (call.usage, call.cost) = (None, None);
        }
        answer
    }
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
pub(super) fn extra(own: Option<Json>, more: impl IntoIterator<Item = (String, Json)>) -> Option<Json> {
    let mut more = more.into_iter().peekable();
    if more.peek().is_none() {
        return own;
    }
    let own: Option<Box<RawValue>> = own.and_then(|own| serde_json::from_str(own.as_str()).ok());
    let own = own.as_deref().and_then(value::<BTreeMap<String, Json>>).unwrap_or_default();
    let members: BTreeMap<String, Json> = more.chain(own).collect();
    json_object(members)
}
