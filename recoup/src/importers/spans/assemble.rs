//! From a trace's spans to a run.
//!
//! The model calls, in order of time, give the messages ([`Conversation`]); tools' spans give their
//! results times and errors ([`super::tools`]). The run's own end is the last answer of the agent that
//! no other agent called; sub-agents' conversations are branches under their agents' names.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::answers::extra;
use super::conversation::{Answer, Conversation};
use super::forest::{self, Place};
use super::span::{Kind, Score, Span, Trace};
use super::{scores, tools};
use crate::importers::Scoring;
use crate::importers::object::Object;
use crate::importers::row::derived_task;
use crate::importers::value::json_object;
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Agent, Harness, Occurrence, Outcome, Role, TerminationKind, Trajectory};
use crate::verdict::ReferenceLabel;
use crate::warning::Loss;

/// The run that a trace tells, with the labels of its messages; `None` where it holds no message.
pub(super) fn assemble(
    format: &str,
    mut trace: Trace<'_>,
    scoring: &Scoring,
    losses: &mut BTreeSet<Loss>,
) -> Option<(Trajectory, Vec<ReferenceLabel>)> {
    trace.unite();
    let places = forest::plant(&mut trace);
    let mut talk = Conversation::new(Trajectory::new(format, Task::named("", "")));
    let mut answers = follow(&mut talk, &mut trace, &places);
    if talk.run.nodes.is_empty() {
        answers = outermost(&mut talk, &mut trace, &places);
    }
    let Conversation { mut run, aside, .. } = talk;
    aside.settle(&mut run, losses);
    let assembled = (!run.nodes.is_empty()).then(|| {
        let results = tools::pair(&mut run, &mut trace, &places);
        let answered = answers.iter().map(|said| (said.span, said.node));
        let messages = messages(&places, answered.chain(results).collect());
        name_spans(&mut run, &trace.spans, &messages);
        let labels = settle(&mut run, &mut trace, &places, &answers, &messages, scoring);
        (run, labels)
    });
    if assembled.is_none() {
        trace.lose("trace", "a trace without a recorded message of a model or an agent");
    }
    for span in &trace.spans {
        let field = match &span.kind {
            Kind::Other(kind) => format!("span.{kind}"),
            Kind::Unknown => "span".to_owned(),
            Kind::Agent | Kind::Model | Kind::Tool => continue,
        };
        trace.lost.push((field, "no call of a model, a tool or an agent"));
    }
    losses.extend(trace.lost.into_iter().map(|(field, reason)| Loss::new(format, field, reason)));
    assembled
}

/// An answer: its span, its node, and how deep its agent stands.
struct Said {
    span: usize,
    node: usize,
    depth: usize,
    again: bool,
}

/// Follows every model call.
fn follow(talk: &mut Conversation, trace: &mut Trace<'_>, places: &[Place]) -> Vec<Said> {
    let mut answers = Vec::new();
    for (index, place) in places.iter().enumerate() {
        let agent = agent_of(&trace.spans, index, place);
        let Some(span) = trace.spans.get_mut(index).filter(|span| span.kind == Kind::Model) else { continue };
        let answer = talk.call(span, &agent, &mut trace.lost);
        if let Answer::At(node) | Answer::Again(node) = answer {
            let again = matches!(answer, Answer::Again(_));
            answers.push(Said { span: index, node, depth: place.depth, again });
        }
    }
    answers
}

/// What the outermost span with messages was given and gave, for traces that record no model call.
fn outermost(talk: &mut Conversation, trace: &mut Trace<'_>, places: &[Place]) -> Vec<Said> {
    let talks = |span: &Span<'_>| span.kind != Kind::Tool && span.input.is_some() && span.output.is_some();
    let roots = places.iter().enumerate().filter(|(_, place)| place.parent.is_none()).map(|(index, _)| index);
    let root = roots.chain(0..places.len()).find(|index| trace.spans.get(*index).is_some_and(talks));
    let Some((index, span)) = root.and_then(|index| Some((index, trace.spans.get_mut(index)?))) else {
        return Vec::new();
    };
    let agent = span.agent.clone().unwrap_or_else(|| Role::Assistant.as_str().to_owned());
    let answer = talk.call(span, &agent, &mut trace.lost);
    trace.lose("trace", "no model call is recorded, only what the outermost span was given and gave");
    match answer {
        Answer::At(node) | Answer::Again(node) => vec![Said { span: index, node, depth: 0, again: false }],
        Answer::None => Vec::new(),
    }
}

/// Name of the agent that makes a call.
fn agent_of(spans: &[Span<'_>], index: usize, place: &Place) -> String {
    let own = spans.get(index).and_then(|span| span.agent.as_ref());
    let above = place.agent.and_then(|agent| spans.get(agent));
    let above = above.and_then(|span| span.agent.as_ref());
    own.or(above).map_or_else(|| Role::Assistant.as_str().to_owned(), Clone::clone)
}

/// The message of each span: what it gave, or the first that a span beneath it gave. `given` are the spans
/// that gave one.
fn messages(places: &[Place], given: BTreeMap<usize, usize>) -> BTreeMap<usize, usize> {
    let mut messages = given.clone();
    // Spans are in order of time.
    for (span, node) in given {
        let mut above = places.get(span).and_then(|place| place.parent);
        while let Some(index) = above.filter(|index| !messages.contains_key(index)) {
            messages.insert(index, node);
            above = places.get(index).and_then(|place| place.parent);
        }
    }
    messages
}

/// The member of a message's `extra` that names the spans it stands for: what labels of spans go by.
const SPAN_IDS: &str = "span_ids";

/// The position of the message that a span gave, of messages that come with what is particular to each.
pub(crate) fn message_of_span<'a>(
    messages: impl IntoIterator<Item = &'a Occurrence>,
    span: &str,
) -> Option<usize> {
    messages.into_iter().position(|occurrence| {
        let extra = occurrence.extra.as_ref().filter(|extra| extra.as_str().contains(span));
        let extra = extra.and_then(|extra| serde_json::from_str::<Object<'_>>(extra.as_str()).ok());
        let ids = extra.and_then(|mut extra| extra.read::<Vec<String>>(SPAN_IDS));
        ids.is_some_and(|ids| ids.iter().any(|id| id == span))
    })
}

/// Says on each message which spans it stands for.
fn name_spans(run: &mut Trajectory, spans: &[Span<'_>], messages: &BTreeMap<usize, usize>) {
    let mut ids: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (span, node) in messages {
        ids.entry(*node).or_default().extend(spans.get(*span).map(|span| span.id.as_str()));
    }
    for (node, ids) in ids {
        let (Some(node), Ok(ids)) = (run.nodes.get_mut(node), Json::from_serialize(&ids)) else { continue };
        node.occurrence.extra = extra(node.occurrence.extra.take(), [(SPAN_IDS.to_owned(), ids)]);
    }
}

/// Fills the run's head and ends it.
fn settle(
    run: &mut Trajectory,
    trace: &mut Trace<'_>,
    places: &[Place],
    answers: &[Said],
    messages: &BTreeMap<usize, usize>,
    scoring: &Scoring,
) -> Vec<ReferenceLabel> {
    let format = run.source.format.clone();
    for node in &mut run.nodes {
        // The policy's turns of an earlier trace, which this one only repeats.
        node.occurrence.copied_context = node.role == Role::Assistant && node.occurrence.call.is_none();
    }
    run.task = derived_task(run);
    name_models(run);
    if let Some((name, version)) = trace.harness.take() {
        run.harness = Some(Harness { name, version });
    }
    run.extra.append(&mut trace.extra);
    let roots: Vec<&Span<'_>> = trace
        .spans
        .iter()
        .zip(places)
        .filter(|(_, place)| place.parent.is_none())
        .map(|(span, _)| span)
        .collect();
    for root in roots.iter().filter(|root| !matches!(root.kind, Kind::Model | Kind::Tool)) {
        for (key, value) in &root.rest {
            run.extra.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    let is_root = |score: &Score| {
        score.span.as_ref().is_none_or(|span| roots.len() == 1 && roots.iter().any(|root| root.id == *span))
    };
    let (whole, single): (Vec<Score>, Vec<Score>) =
        std::mem::take(&mut trace.scores).into_iter().partition(is_root);
    let node_of: HashMap<&str, usize> = messages
        .iter()
        .filter_map(|(span, node)| Some((trace.spans.get(*span)?.id.as_str(), *node)))
        .collect();
    let labels = scores::labels(&format, &single, &node_of);
    if labels.len() < single.len() {
        trace.lost.push(("score".to_owned(), "a score of a span that gave no message"));
    }
    scores::hide(run, &whole);
    run.hidden.gold = json_object(std::mem::take(&mut trace.gold));
    let mut outcome = scores::outcome(&whole, scoring);
    outcome = ended(outcome, &roots);
    let least = answers.iter().map(|said| said.depth).min();
    let last = answers.iter().rfind(|said| Some(said.depth) == least && !said.again);
    run.finish_tree(last.map(|said| said.node), outcome);
    labels
}

/// Gives every agent the model of its first call.
fn name_models(run: &mut Trajectory) {
    let Trajectory { nodes, agents, .. } = run;
    for node in nodes.iter().filter(|node| node.occurrence.sampled) {
        let model = node.occurrence.call.as_ref().and_then(|call| call.model.as_ref());
        let named = |agent: &&mut Agent| agent.name == node.agent && agent.model.is_none();
        if let (Some(model), Some(agent)) = (model, agents.iter_mut().find(named)) {
            agent.model = Some(model.clone());
        }
    }
}

/// How the run ended, as its root says.
fn ended(outcome: Outcome, roots: &[&Span<'_>]) -> Outcome {
    match roots {
        [root] => match &root.error {
            Some(error) => outcome.ended(TerminationKind::Other, error.clone()),
            None => outcome,
        },
        _ => outcome,
    }
}
