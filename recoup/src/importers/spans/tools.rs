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

/// Matches the tools' spans of a trace to the calls of its run, in order of time; returns the spans whose
/// results are messages, with these.
pub(super) fn pair(run: &mut Trajectory, trace: &mut Trace<'_>, places: &[Place]) -> Vec<(usize, usize)> {
    let mut open = Open::of(run);
    let mut below = Below::of(run);
    let mut lost: Vec<(String, &'static str)> = Vec::new();
    let mut results = Vec::new();
    for (index, (span, place)) in trace.spans.iter().zip(places).enumerate() {
        // A tool whose span holds another tool's of the same name was recorded by two instruments.
        if span.kind != Kind::Tool || repeats(span, place, &trace.spans) {
            continue;
        }
        match open.take(run, span) {
            Some(call) => {
                let result = answer(run, &mut below, call, span, &mut lost);
                // Where nothing answers it, the call is what the span is about.
                results.push((index, result.unwrap_or(call.node)));
            }
            None => lost.push(("span.tool".to_owned(), "a tool's run that no recorded call asked for")),
        }
    }
    for _ in 0..unanswered(run) {
        lost.push(("tool_result".to_owned(), "a call without a recorded result"));
    }
    trace.lost.extend(lost);
    results
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
    by_name: BTreeMap<String, BTreeSet<CallAt>>,
}

/// Calls of one name whose arguments are compared.
const COMPARED_MAX: usize = 256;

impl Open {
    fn of(run: &Trajectory) -> Self {
        let mut open = Self { calls: BTreeSet::new(), by_id: BTreeMap::new(), by_name: BTreeMap::new() };
        for (position, node) in run.nodes.iter().enumerate() {
            for (part, call) in node.tool_calls() {
                let at = CallAt { node: position, part };
                open.calls.insert(at);
                open.by_name.entry(call.name.clone()).or_default().insert(at);
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
            let named = self.by_name.get(name)?;
            let ran = span.tool.arguments.as_ref().map(|arguments| ToolCall {
                call_id: None,
                name: name.to_owned(),
                arguments_raw: arguments.clone(),
                arguments_form: ArgumentsForm::String,
            });
            let is_exact = |at: &CallAt| match (run.nodes.get(at.node)?.parts.get(at.part)?, &ran) {
                (Part::ToolCall(asked), Some(ran)) => same_action(asked, ran).then_some(*at),
                _ => None,
            };
            let exact = named.iter().take(COMPARED_MAX).find_map(is_exact);
            // An id that no call has is another writer's; a known one was answered already.
            exact.or_else(|| named.first().copied().filter(|_| with_id.is_none()))
        })?;
        self.calls.remove(&found);
        if let Some(Part::ToolCall(call)) = run.nodes.get(found.node)?.parts.get(found.part)
            && let Some(named) = self.by_name.get_mut(&call.name)
        {
            named.remove(&found);
        }
        Some(found)
    }
}

/// Gives a call's result what its span says, or adds the result that only the span holds; returns its
/// message.
fn answer(
    run: &mut Trajectory,
    below: &mut Below,
    call: CallAt,
    span: &Span<'_>,
    lost: &mut Vec<(String, &'static str)>,
) -> Option<usize> {
    let Some(Part::ToolCall(asked)) = run.nodes.get(call.node).and_then(|node| node.parts.get(call.part))
    else {
        return None;
    };
    let (call_id, name) = (asked.call_id.clone(), asked.name.clone());
    // How many calls before it in its message go without an id, for results that have none.
    let before = run.nodes.get(call.node).map_or(0, |node| {
        node.tool_calls().filter(|(part, other)| *part < call.part && other.call_id.is_none()).count()
    });
    let time = span.end.as_ref().or(span.start.as_ref()).map(|time| time.as_str().to_owned());
    let extra = Json::from_serialize(&span.rest).ok().filter(|_| !span.rest.is_empty());
    let mut found = None;
    for position in below.results(call.node) {
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
            found = found.or(Some(position));
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
    if found.is_some() {
        return found;
    }
    let said = span.tool.result.clone().or_else(|| span.error.clone())?;
    let at = below.results(call.node).last().copied().unwrap_or(call.node);
    if !below.is_end(at) {
        lost.push(("span.tool.result".to_owned(), "the request that follows does not hold the result"));
        return None;
    }
    let mut result = Part::text_result(call_id, said);
    if let Part::ToolResult(ToolResult { is_error, .. }) = &mut result {
        *is_error = span.error.as_ref().map(|_| true);
    }
    let mut node = Node::new(Role::Tool, name, vec![result]);
    node.parent = Some(at);
    node.occurrence.at = time;
    node.occurrence.extra = extra;
    below.add(at);
    Some(run.push_under(node))
}

/// What follows each message.
struct Below(Vec<Vec<(usize, bool)>>);

impl Below {
    fn of(run: &Trajectory) -> Self {
        let mut below: Vec<Vec<(usize, bool)>> = vec![Vec::new(); run.nodes.len()];
        for (position, node) in run.nodes.iter().enumerate() {
            if let Some(children) = node.parent.and_then(|parent| below.get_mut(parent)) {
                children.push((position, node.tool_results().next().is_some()));
            }
        }
        Self(below)
    }

    /// Messages with results that follow a call's message, on all branches, parents first.
    fn results(&self, call: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut next = vec![call];
        while let Some(position) = next.pop() {
            let children = self.0.get(position).map(Vec::as_slice).unwrap_or_default();
            let results = children.iter().filter(|(_, holds)| *holds).map(|(child, _)| *child);
            next.extend(results.clone());
            found.extend(results);
        }
        found
    }

    fn is_end(&self, position: usize) -> bool {
        self.0.get(position).is_none_or(Vec::is_empty)
    }

    /// Notes a result that was put after a message.
    fn add(&mut self, parent: usize) {
        let position = self.0.len();
        self.0.push(Vec::new());
        if let Some(children) = self.0.get_mut(parent) {
            children.push((position, true));
        }
    }
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
