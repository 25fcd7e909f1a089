//! From a trace's spans to a run.
//!
//! The model calls, in order of time, give the messages ([`Conversation`]); tools' spans give their
//! results times and errors ([`super::tools`]). The run's own end is the last answer of the agent that
//! no other agent called; sub-agents' conversations are branches under their agents' names.

use std::collections::{BTreeSet, HashMap};

use super::conversation::{Answer, Conversation};
use super::forest::{self, Place};
use super::span::{Kind, Score, Span, Trace};
use super::{scores, tools};
use crate::importers::Scoring;
use crate::importers::row::derived_task;
use crate::importers::value::json_object;
use crate::task::Task;
use crate::trajectory::{Agent, Harness, Outcome, Role, TerminationKind, Trajectory};
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
        tools::pair(&mut run, &mut trace, &places);
        let labels = settle(&mut run, &mut trace, &places, &answers, scoring);
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
    let mut offered = BTreeSet::new();
    for (index, place) in places.iter().enumerate() {
        let agent = agent_of(&trace.spans, index, place);
        let Some(span) = trace.spans.get_mut(index).filter(|span| span.kind == Kind::Model) else { continue };
        for tool in std::mem::take(&mut span.tools) {
            if offered.insert(tool.name.clone()) {
                talk.run.tools.push(tool);
            }
        }
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

/// Fills the run's head and ends it.
fn settle(
    run: &mut Trajectory,
    trace: &mut Trace<'_>,
    places: &[Place],
    answers: &[Said],
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
    let node_of: HashMap<&str, usize> = answers
        .iter()
        .filter_map(|said| Some((trace.spans.get(said.span)?.id.as_str(), said.node)))
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
