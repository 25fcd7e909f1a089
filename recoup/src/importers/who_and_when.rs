//! Who&When: failed runs of multi-agent systems with the agent and the message that people blamed.
//!
//! Two shapes: algorithm-generated runs name each author in `name` and keep the agents' system
//! prompts; hand-crafted ones put the author in `role`, with a remark in parentheses
//! ("Orchestrator (thought)"). Calls and code are free text in both.

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::slice::{self, RawRecord, Stop};
use super::value::json_object;
use super::{ImportError, Importer, Outline, Probe, RecordError, Scoring, Sink, Source, row};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Agent, Node, Outcome, Part, Role, Trajectory};
use crate::verdict::ReferenceLabel;

const FORMAT: &str = "who-and-when";

/// Who&When runs.
pub(super) struct WhoAndWhen;

impl Importer for WhoAndWhen {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "runs with `question`, `history` and the labels `mistake_agent` and `mistake_step`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            record.has_all(&["mistake_agent", "mistake_step", "question"])
                && record.get("history").is_some_and(Outline::is_array)
                // A long history may cut the labels off; the authors' names come before it.
                || record.has_all(&["question", "question_ID", "ground_truth"])
                    && record.get("history").and_then(Outline::first).is_some_and(|message| message.has_all(&["content", "role"]))
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let history: Vec<&RawValue> = row.required("history")?;
    for (index, raw) in history.into_iter().enumerate() {
        let node = message(raw, index == 0)
            .map_err(|error| RecordError::new(error.code, format!("history[{index}]: {error}")))?;
        run.push(node);
    }
    set_prompts(row.object("system_prompt"), &mut run);
    let question = row.text("question").unwrap_or_default();
    run.task = match row.id("question_ID") {
        Some(id) => Task::named(format!("{FORMAT}/{id}"), question),
        None => Task::from_goal(question),
    };
    run.hidden.gold = row.take("ground_truth").map(Json::from);
    let label = label(&mut row, run.nodes.len());
    let outcome = outcome(&mut row, scoring);
    run.extra.extend(row.rest());
    run.finish(outcome);
    record.emit(sink, run, None, label.into_iter().collect(), 0)?;
    Ok(())
}

/// Reads a message whose author is its `name`, else its `role`.
pub(super) fn message(raw: &RawValue, first: bool) -> Result<Node, RecordError> {
    let mut message = Object::parse(raw, "message")?;
    let word = message.text("role").ok_or_else(|| missing("role"))?;
    let name = message.text("name").filter(|name| !name.is_empty());
    let author = name.as_deref().unwrap_or(&word);
    let agent = author.split(" (").next().unwrap_or(author).to_owned();
    let role = role(&agent, first);
    let content = message.text("content");
    let mut node = Node::new(role, agent, content.map(Part::text).into_iter().collect());
    node.occurrence.sampled = role == Role::Assistant;
    let mut rest = message.rest();
    if *word != *role.as_str() && *word != *node.agent {
        rest.insert("role".to_owned(), Json::string(&word));
    }
    node.occurrence.extra = json_object(rest);
    Ok(node)
}

/// The first message is the task, whoever's name it bears; a terminal's or an executor's are
/// observations; everybody else is an agent. The source's own `role` says only who listens.
fn role(agent: &str, first: bool) -> Role {
    let folded = agent.to_lowercase().replace(['_', ' '], "");
    match folded.as_str() {
        _ if first => Role::User,
        "human" | "user" => Role::User,
        "computerterminal" | "executor" | "codeexecutor" => Role::Tool,
        _ => Role::Assistant,
    }
}

fn set_prompts(prompts: Object<'_>, run: &mut Trajectory) {
    let mut prompts = prompts.rest();
    let words = |prompt: Json| prompt.to_value().as_str().map(str::to_owned);
    for agent in &mut run.agents {
        agent.system_prompt = prompts.remove(&agent.name).and_then(words);
    }
    // Agents that never came to speak.
    let silent = prompts.into_iter();
    run.agents.extend(silent.map(|(name, prompt)| Agent { name, model: None, system_prompt: words(prompt) }));
}

/// Takes the label out of a row: people's answer, which no judge may see.
fn label(row: &mut Object<'_>, nodes: usize) -> Option<ReferenceLabel> {
    let mut named = row.clone();
    let native: Vec<(&str, Json)> =
        ["mistake_agent", "mistake_step", "mistake_reason", "mistake_type", "labels"]
            .into_iter()
            .filter_map(|key| Some((key, row.take(key)?.into())))
            .collect();
    let step = named.id("mistake_step").and_then(|step| step.trim().parse().ok());
    Some(ReferenceLabel {
        source: FORMAT.to_owned(),
        index_base: 0,
        native: json_object(native)?,
        node: step.filter(|step| *step < nodes),
        agent: named.text("mistake_agent"),
        reason: named.text("mistake_reason"),
    })
}

/// `is_correct`; the hand-crafted files misspell it.
fn outcome(row: &mut Object<'_>, scoring: &Scoring) -> Outcome {
    for key in ["is_correct", "is_corrected"] {
        if let Some(passed) = row.read(key) {
            return Outcome::from_flag(passed, key);
        }
    }
    row::outcome(row, scoring)
}
