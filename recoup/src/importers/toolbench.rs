//! ToolBench answers: the tree of a depth-first search (`tree`), or the linked graph of converted
//! answers (`answer_details`).
//!
//! In a tree, one tree node is one message: the root is the user's query, a `Thought` is text, an
//! `Action` is the call (its arguments are the `Action Input` beneath it), an `Action Input` is the
//! call's result. So every path from root to leaf is one attempt, with an outcome of its own, and a
//! thought and the call it leads to are two turns, as the search branches between them.

mod details;
mod tree;

use serde_json::value::RawValue;

use super::object::Object;
use super::slice::{self, Stop};
use super::value::{elements, json_object, text};
use super::{ImportError, Importer, Outline, Probe, RawRecord, RecordError, Sink, Source};
use crate::json::Json;
use crate::task::{Task, VerifierRef};
use crate::trajectory::{Agent, Harness, Tool, Trajectory};
use crate::warning::Loss;

const FORMAT: &str = "toolbench";
/// The author of the policy's turns.
const AGENT: &str = "assistant";

/// ToolBench answers: search trees and converted answers.
pub(super) struct ToolBench;

impl Importer for ToolBench {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "answers with `win` and a search `tree`, or with `query` and `answer_details`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| is_tree(record) || is_answer(record) || holds_answers(record))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        slice::each(source, layout, sink, read)
    }
}

fn is_tree(record: &Outline) -> bool {
    let root = record.get("tree").and_then(|tree| tree.get("tree"));
    root.is_some_and(|root| root.has_all(&["node_type", "children"])) && record.get("win").is_some()
}

fn is_answer(record: &Outline) -> bool {
    record.get("query").is_some()
        && record.get("answer").and_then(|answer| answer.get("answer_details")).is_some_and(Outline::is_array)
}

/// A file of many answers by query id.
fn holds_answers(record: &Outline) -> bool {
    matches!(record, Outline::Object(members) if members.first().is_some_and(|(_, first)| is_answer(first)))
}

fn read(record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let file: Object<'_> = record.parse()?;
    if file.has("tree") {
        let run = tree_run(file, sink)?;
        record.emit(sink, run, None, Vec::new(), 0)?;
        return Ok(());
    }
    if file.has("answer") {
        record.emit(sink, details_run(file, None)?, None, Vec::new(), 0)?;
        return Ok(());
    }
    for (part, (id, answer)) in file.members().into_iter().enumerate() {
        record.attempt(sink, |record, sink| {
            let run = details_run(Object::parse(answer, &id)?, Some(&id))?;
            record.emit(sink, run, None, Vec::new(), part as u64)?;
            Ok(())
        })?;
    }
    Ok(())
}

fn tree_run(mut file: Object, sink: &mut dyn Sink) -> Result<Trajectory, Stop> {
    let mut answer = file.object("answer_generation");
    let mut search = file.object("tree");
    let missing = || RecordError::new("missing-field", "expected `tree.tree`");
    let root: tree::TreeNode = serde_json::from_str(search.take("tree").ok_or_else(missing)?.get())?;
    let query = answer.text("query").unwrap_or_default();
    let mut run = Trajectory::new(FORMAT, Task::from_goal(query.as_str()));
    let messages = answer.list("train_messages").unwrap_or_default();
    let system_prompt = messages.first().and_then(|messages| system_prompt(messages));
    run.agents.push(Agent { name: AGENT.to_owned(), model: None, system_prompt });
    run.tools = answer.list("function").unwrap_or_default().into_iter().filter_map(tool).collect();
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
    run.verifier = Some(VerifierRef { name: "win".to_owned(), version: None });
    let step_limit = file.get("forward_args").and_then(|raw| Object::of(raw)?.read("single_chain_max_step"));
    tree::read(&mut run, root, &query, file.read("win"), step_limit);
    let candidates = file.list("compare_candidates").unwrap_or_default();
    let repeats = [
        ("answer_generation.train_messages", !messages.is_empty()),
        ("compare_candidates", !candidates.is_empty()),
    ];
    for (field, _) in repeats.into_iter().filter(|(_, present)| *present) {
        sink.loss(Loss::new(FORMAT, field, "renders paths of the tree again"))?;
    }
    run.extra = answer.filled_rest();
    run.extra.extend(json_object(search.filled_rest()).map(|search| ("tree".to_owned(), search)));
    run.extra.extend(file.filled_rest());
    Ok(run)
}

fn details_run(mut file: Object, id: Option<&str>) -> Result<Trajectory, RecordError> {
    let mut answer = file.object("answer");
    let missing = || RecordError::new("missing-field", "expected an array `answer.answer_details`");
    let roots = answer.take("answer_details").ok_or_else(missing)?;
    let roots: Vec<details::Detail> = serde_json::from_str(roots.get())?;
    let query = file.text("query").unwrap_or_default();
    // The query's id counts within one of the benchmark's groups only.
    let mut run = Trajectory::new(FORMAT, Task::from_goal(query));
    run.extra.extend(id.map(|id| ("query_id".to_owned(), Json::string(id))));
    run.tools = file.list("available_tools").unwrap_or_default().into_iter().filter_map(tool).collect();
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
    details::read(&mut run, roots);
    run.extra.extend(answer.filled_rest());
    run.extra.extend(file.filled_rest());
    Ok(run)
}

/// A tool as the file offers it, bare or in OpenAI's form.
fn tool(raw: &RawValue) -> Option<Tool> {
    let mut tool = Object::of(raw)?;
    if tool.get("function").is_some() {
        tool = tool.object("function");
    }
    Some(Tool {
        name: tool.text("name")?,
        description: tool.text("description").unwrap_or_default(),
        parameters: tool.take("parameters").map(Json::from),
        read_only: None,
    })
}

/// The system message that every rendered path starts with.
fn system_prompt(messages: &RawValue) -> Option<String> {
    let mut first = Object::of(elements(messages)?.first()?)?;
    let is_system = first.take("role").and_then(text).as_deref() == Some("system");
    if is_system { first.text("content") } else { None }
}
