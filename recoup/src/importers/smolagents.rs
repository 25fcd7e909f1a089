//! The memory of a smolagents agent: `agent.memory.get_full_steps()`, or a run's result with its
//! `steps`.
//!
//! Steps are `{task}`, `{plan, …}` and actions (`{step_number, model_output, tool_calls, observations,
//! error, …}`). Traps that its own library sets: an action that failed in one of several calls keeps none
//! of them but in the model's message; the answers of several calls are one text; each step repeats the
//! messages it was shown, of which only the system prompt says anything new; pictures are objects that
//! JSON does not hold.

use std::collections::BTreeSet;

use serde_json::value::RawValue;

use super::dialect::{Aside, Dialect, message, usage};
use super::function_call::tool_call;
use super::harness_message::opaque;
use super::object::{Object, missing};
use super::openai_chat::emit_losses;
use super::slice::{self, RawRecord, RecordError, Stop};
use super::value::{elements, is_array, is_object, json_object, text, text_or_source};
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source, row};
use crate::task::Task;
use crate::trajectory::{Call, Harness, Node, Part, Role, TerminationKind, ToolCall, ToolResult, Trajectory};

const FORMAT: &str = "smolagents";
/// What the agent is called; the memory names none.
const SPEAKER: &str = "assistant";

/// Memories of smolagents agents.
pub(super) struct SmolAgents;

impl Importer for SmolAgents {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "`steps` of a smolagents memory, with `step_number`, `model_output` or `task`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.is_one_list(is_steps)
            || probe.records().iter().any(|record| record.get("steps").is_some_and(is_steps))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let layout = probe.layout_or_list(is_steps);
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| read(record, scoring, sink))
    }
}

fn is_steps(list: &Outline) -> bool {
    let is_action = |step: &Outline| step.has_all(&["step_number", "model_output", "observations", "timing"]);
    list.elements().iter().any(is_action)
}

fn read(record: &RawRecord, scoring: &Scoring, sink: &mut dyn Sink) -> Result<(), Stop> {
    let raw: &RawValue = record.parse()?;
    let (steps, mut row) = if is_array(raw) {
        (elements(raw).unwrap_or_default(), Object::default())
    } else {
        let mut row = Object::parse(raw, "record")?;
        (row.required("steps")?, row)
    };
    let mut memory = Memory::default();
    for (index, raw) in steps.into_iter().enumerate() {
        let step = Object::parse(raw, "step").and_then(|step| memory.step(step));
        step.map_err(|error| RecordError::new(error.code, format!("steps[{index}]: {error}")))?;
    }
    let Memory { mut run, aside, end, .. } = memory;
    let mut losses = BTreeSet::new();
    aside.settle(&mut run, &mut losses);
    run.harness = Some(Harness { name: FORMAT.to_owned(), version: None });
    let state = row.text("state");
    let native = row::settle(&mut run, row, scoring);
    let outcome = run.outcome().clone();
    run.finish(match (end, state) {
        (Some((kind, word)), _) => outcome.ended(kind, word),
        (None, Some(word)) if word == "success" => outcome.ended(TerminationKind::Completed, word),
        (None, Some(word)) => outcome.ended(TerminationKind::Other, word),
        (None, None) => outcome,
    });
    emit_losses(losses, sink)?;
    record.emit(sink, run, native, Vec::new(), 0)?;
    Ok(())
}

/// A memory while its steps come.
struct Memory {
    run: Trajectory,
    aside: Aside,
    /// How the run ended, as far as its steps tell.
    end: Option<(TerminationKind, String)>,
    prompted: bool,
}

impl Default for Memory {
    fn default() -> Self {
        let run = Trajectory::new(FORMAT, Task::from_goal(""));
        Self { run, aside: Aside::default(), end: None, prompted: false }
    }
}

impl Memory {
    fn step(&mut self, mut step: Object<'_>) -> Result<(), RecordError> {
        self.prompt(&mut step);
        if let Some(prompt) = step.text("system_prompt") {
            self.system(vec![Part::text(prompt)]);
        } else if let Some(task) = step.text("task") {
            if step.list("task_images").is_some_and(|images| !images.is_empty()) {
                self.aside.lose("task_images", "pictures are objects that the memory does not write out");
            }
            let mut node = Node::new(Role::User, "user", vec![Part::text(task)]);
            node.occurrence.extra = json_object(step.filled_rest());
            self.run.push(node);
        } else if let Some(plan) = step.text("plan") {
            let parts = vec![Part::text(plan)];
            step.take("model_output_message");
            self.answer(parts, &mut step, None);
        } else if step.has("step_number") {
            self.action(step);
        } else if step.has("output") {
            // The run's answer, which its last action gave.
            self.aside.lose("output", "the final answer once more");
        } else {
            return Err(missing("step_number"));
        }
        Ok(())
    }

    /// The system prompt stands in what the first step was shown, before the task.
    fn prompt(&mut self, step: &mut Object<'_>) {
        let Some(shown) = step.list("model_input_messages") else { return };
        if self.prompted {
            return;
        }
        self.prompted = true;
        let first = shown.first().copied();
        let nodes = first.map(|raw| message(raw, Some(Dialect::Chat), Role::System, &mut self.aside));
        if let Some(Ok(nodes)) = nodes
            && let [node] = nodes.as_slice()
            && node.role == Role::System
        {
            self.system(node.parts.clone());
        }
    }

    fn system(&mut self, parts: Vec<Part>) {
        if self.run.nodes.iter().any(|node| node.role == Role::System) {
            return;
        }
        // Before the task, which the memory keeps first.
        for node in &mut self.run.nodes {
            node.parent = Some(node.parent.map_or(0, |parent| parent + 1));
        }
        self.run.nodes.insert(0, Node::new(Role::System, "system", parts));
    }

    fn action(&mut self, mut step: Object<'_>) {
        let mut said = step.object("model_output_message");
        let mut parts = output(&mut step, &mut said);
        let kept = [said.list("tool_calls"), step.list("tool_calls")];
        let calls: Vec<ToolCall> = kept
            .into_iter()
            .flatten()
            .find(|calls| !calls.is_empty())
            .unwrap_or_default()
            .into_iter()
            .filter_map(|raw| tool_call(&mut Object::of(raw)?))
            .collect();
        if !calls.is_empty() {
            parts.retain(|part| part.as_text() != Some(""));
        }
        parts.extend(calls.iter().cloned().map(Part::ToolCall));
        // The call of an agent that writes code.
        step.take("code_action");
        let error = step.take("error");
        let observations = step.take("observations").map(text_or_source).filter(|text| !text.is_empty());
        if step.list("observations_images").is_some_and(|images| !images.is_empty()) {
            self.aside.lose("observations_images", "pictures are objects that the memory does not write out");
        }
        if said.take("raw").is_some() {
            self.aside.lose("model_output_message.raw", "the provider's own response");
        }
        if step.read::<bool>("is_final_answer") == Some(true) {
            self.end = Some((TerminationKind::Completed, "final_answer".to_owned()));
        }
        let failure = error.map(|raw| match Object::of(raw) {
            Some(mut error) => {
                (error.text("type").unwrap_or_default(), error.text("message").unwrap_or_default())
            }
            None => (String::new(), text_or_source(raw)),
        });
        let generation = failure.as_ref().filter(|(kind, _)| kind == "AgentGenerationError");
        self.answer(parts, &mut step, generation.map(|(_, message)| message.clone()));
        if let Some(text) = observations {
            self.observe(&calls, text, None);
        }
        match failure {
            Some((kind, message)) if kind == "AgentMaxStepsError" => {
                self.end = Some((TerminationKind::StepLimit, message));
            }
            Some((kind, _)) if kind == "AgentGenerationError" => {}
            Some((_, message)) => self.observe(&calls, message, Some(true)),
            None => {}
        }
    }

    /// What the agent was shown of its calls.
    fn observe(&mut self, calls: &[ToolCall], text: String, is_error: Option<bool>) {
        let meant = match calls {
            [only] => Some(only),
            // The error names the tool; which of two calls of one tool failed it does not say.
            _ if is_error.is_some() => {
                let name = text.split('\'').nth(1).unwrap_or_default();
                let mut named = calls.iter().filter(|call| call.name == name);
                named.next().filter(|_| named.next().is_none())
            }
            _ => None,
        };
        if calls.len() > 1 && is_error.is_none() {
            self.aside.lose("observations", "the answers of several calls are one text");
        } else if calls.len() > 1 {
            self.aside.lose("observations", "where one call fails the answers of the others are not kept");
        }
        let call_id = meant.and_then(|call| call.call_id.clone());
        let agent = meant.map_or_else(|| "tool".to_owned(), |call| call.name.clone());
        let parts = vec![Part::text(text)];
        let result = Part::ToolResult(ToolResult { call_id, parts, is_error, exit_code: None });
        self.run.push(Node::new(Role::Tool, agent, vec![result]));
    }

    /// A turn of the model.
    fn answer(&mut self, parts: Vec<Part>, step: &mut Object<'_>, error: Option<String>) {
        let mut node = Node::new(Role::Assistant, SPEAKER, parts);
        node.occurrence.sampled = error.is_none();
        let usage = usage(&mut step.object("token_usage"));
        if usage.is_some() || error.is_some() {
            node.occurrence.call = Some(Box::new(Call { usage, error, ..Call::default() }));
        }
        let mut timing = step.object("timing");
        node.occurrence.at = timing.id("start_time");
        for key in ["end_time", "duration"] {
            if let Some(raw) = timing.take(key) {
                step.push(key.into(), raw);
            }
        }
        node.occurrence.extra = json_object(std::mem::take(step).filled_rest());
        self.run.push(node);
    }
}

/// What the model wrote: its message's content, or the output of models that write calls as text.
fn output(step: &mut Object<'_>, said: &mut Object<'_>) -> Vec<Part> {
    let written = [step.take("model_output"), said.take("content")];
    let Some(raw) = written.into_iter().flatten().next() else { return Vec::new() };
    if let Some(text) = text(raw) {
        return vec![Part::text(text)];
    }
    let pieces = elements(raw).unwrap_or_else(|| vec![raw]);
    let piece = |raw: &RawValue| {
        let text = Object::of(raw).filter(|_| is_object(raw)).and_then(|mut piece| piece.text("text"));
        text.map_or_else(|| opaque("model_output", raw), Part::text)
    };
    pieces.into_iter().map(piece).collect()
}
