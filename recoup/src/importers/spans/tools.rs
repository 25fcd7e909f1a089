//! Tools' runs matched to the calls that asked for them: times, errors, and results that no request
//! repeats.

use std::collections::{BTreeMap, BTreeSet};

use super::forest::Place;
use super::span::{Kind, Span, Trace};
use crate::json::Json;
use crate::trajectory::{ArgumentsForm, Node, Part, Role, ToolCall, ToolResult, Trajectory, same_action};

/// A call in a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CallAt {
    node: usize,
    part: usize,
}

/// Matches the tools' spans of a trace to the calls of its run, in order of time.
pub(super) fn pair(run: &mut Trajectory, trace: &mut Trace<'_>, places: &[Place]) {
    let mut open = Open::of(run);
    let mut lost: Vec<(String, &'static str)> = Vec::new();
    for (span, place) in trace.spans.iter().zip(places) {
        // A tool whose span holds another tool's of the same name was recorded by two instruments.
        if span.kind != Kind::Tool || repeats(span, place, &trace.spans) {
            continue;
        }
        match open.take(run, span) {
            Some(call) => answer(run, call, span, &mut lost),
            None => lost.push(("span.tool".to_owned(), "a tool's run that no recorded call asked for")),
        }
    }
    for _ in 0..unanswered(run) {
        lost.push(("tool_result".to_owned(), "a call without a recorded result"));
    }
    trace.lost.extend(lost);
}

fn repeats(span: &Span<'_>, place: &Place, spans: &[Span<'_>]) -> bool {
    let above = place.parent.and_then(|parent| spans.get(parent));
    above.is_some_and(|above| {
        above.kind == Kind::Tool
            && above.tool.name == span.tool.name
            && above.tool.call_id == span.tool.call_id
    })
}

/// Calls that no span has been matched to yet.
struct Open {
    calls: BTreeSet<CallAt>,
    by_id: BTreeMap<String, Vec<CallAt>>,
}

impl Open {
    fn of(run: &Trajectory) -> Self {
        let mut open = Self { calls: BTreeSet::new(), by_id: BTreeMap::new() };
        for (position, node) in run.nodes.iter().enumerate() {
            for (part, call) in node.tool_calls() {
                let at = CallAt { node: position, part };
                open.calls.insert(at);
                if let Some(id) = &call.call_id {
                    open.by_id.entry(id.clone()).or_default().push(at);
                }
            }
        }
        open
    }

    /// The first open call with the span's id; without an id, of its name and arguments, else of its
    /// name.
    fn take(&mut self, run: &Trajectory, span: &Span<'_>) -> Option<CallAt> {
        let with_id = span.tool.call_id.as_ref().and_then(|id| self.by_id.get(id));
        let found = with_id.and_then(|calls| calls.iter().copied().find(|call| self.calls.contains(call)));
        let found = found.or_else(|| {
            let name = span.tool.name.as_deref()?;
            let call_of = |at: &CallAt| match run.nodes.get(at.node)?.parts.get(at.part)? {
                Part::ToolCall(call) if call.name == name => Some(call),
                _ => None,
            };
            let named: Vec<CallAt> = self.calls.iter().copied().filter(|at| call_of(at).is_some()).collect();
            let ran = span.tool.arguments.as_ref().map(|arguments| ToolCall {
                call_id: None,
                name: name.to_owned(),
                arguments_raw: arguments.clone(),
                arguments_form: ArgumentsForm::String,
            });
            let exact = named.iter().copied().find(
                |at| matches!((call_of(at), &ran), (Some(asked), Some(ran)) if same_action(asked, ran)),
            );
            // An id that no call has is another writer's; a known one was answered already.
            exact.or_else(|| named.first().copied().filter(|_| with_id.is_none()))
        })?;
        self.calls.remove(&found);
        Some(found)
    }
}

/// Gives a call's result what its span says, or adds the result that only the span holds.
fn answer(run: &mut Trajectory, call: CallAt, span: &Span<'_>, lost: &mut Vec<(String, &'static str)>) {
    let Some(Part::ToolCall(asked)) = run.nodes.get(call.node).and_then(|node| node.parts.get(call.part))
    else {
        return;
    };
    let (call_id, name) = (asked.call_id.clone(), asked.name.clone());
    // How many calls before it in its message go without an id, for results that have none.
    let before = run.nodes.get(call.node).map_or(0, |node| {
        node.tool_calls().filter(|(part, other)| *part < call.part && other.call_id.is_none()).count()
    });
    let time = span.end.as_ref().or(span.start.as_ref()).map(|time| time.as_str().to_owned());
    let extra = Json::from_serialize(&span.rest).ok().filter(|_| !span.rest.is_empty());
    let mut found = false;
    for position in results_below(run, call.node) {
        let Some(node) = run.nodes.get_mut(position) else { continue };
        let mut skip = before;
        for part in &mut node.parts {
            let Part::ToolResult(result) = part else { continue };
            let own = match (&result.call_id, &call_id) {
                (Some(one), Some(other)) => one == other,
                (None, None) => {
                    let left = skip;
                    skip = skip.saturating_sub(1);
                    left == 0
                }
                _ => false,
            };
            if !own {
                continue;
            }
            found = true;
            if span.error.is_some() {
                result.is_error = Some(true);
            }
            if node.agent == Role::Tool.as_str() {
                node.agent.clone_from(&name);
            }
            node.occurrence.at = time.clone().or(node.occurrence.at.take());
            node.occurrence.extra = node.occurrence.extra.take().or_else(|| extra.clone());
        }
    }
    if found {
        return;
    }
    let Some(said) = span.tool.result.clone().or_else(|| span.error.clone()) else { return };
    let mut at = call.node;
    while let Some(next) = children(run, at).into_iter().find(|child| is_result(run, *child)) {
        at = next;
    }
    if !children(run, at).is_empty() {
        lost.push(("span.tool.result".to_owned(), "the request that follows does not hold the result"));
        return;
    }
    let mut result = Part::text_result(call_id, said);
    if let Part::ToolResult(ToolResult { is_error, .. }) = &mut result {
        *is_error = span.error.as_ref().map(|_| true);
    }
    let mut node = Node::new(Role::Tool, name, vec![result]);
    node.parent = Some(at);
    node.occurrence.at = time;
    node.occurrence.extra = extra;
    run.push_under(node);
}

fn is_result(run: &Trajectory, position: usize) -> bool {
    run.nodes.get(position).is_some_and(|node| node.tool_results().next().is_some())
}

fn children(run: &Trajectory, position: usize) -> Vec<usize> {
    let later = run.nodes.iter().enumerate().skip(position + 1);
    later.filter(|(_, node)| node.parent == Some(position)).map(|(child, _)| child).collect()
}

/// Messages with results that follow a call's message, on all branches.
fn results_below(run: &Trajectory, call: usize) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    for (position, node) in run.nodes.iter().enumerate().skip(call + 1) {
        let follows =
            node.parent.is_some_and(|parent| parent == call || found.binary_search(&parent).is_ok());
        if follows && is_result(run, position) {
            found.push(position);
        }
    }
    found
}

/// Calls whose message nothing answers that many times.
fn unanswered(run: &Trajectory) -> usize {
    let mut answers: Vec<usize> = vec![0; run.nodes.len()];
    // The call's message that a message with results belongs to.
    let mut origin: Vec<Option<usize>> = vec![None; run.nodes.len()];
    for (position, node) in run.nodes.iter().enumerate() {
        let results = node.tool_results().count();
        if results == 0 {
            origin[position] = Some(position);
            continue;
        }
        let from = node.parent.and_then(|parent| origin.get(parent).copied().flatten());
        origin[position] = from;
        if let Some(count) = from.and_then(|from| answers.get_mut(from)) {
            *count += results;
        }
    }
    let asked = run.nodes.iter().zip(answers);
    asked.map(|(node, answers)| node.tool_calls().count().saturating_sub(answers)).sum()
}
