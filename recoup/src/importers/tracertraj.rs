//! TracerTraj, the data set of AgenTracer: failed runs of a team of agents, each with the turn that a
//! person or an injected fault made decisive. Rows are like Who&When's, in Parquet, and every message
//! says its step.
//!
//! A thinking agent leaves two messages, its prompt and its answer, and both bear its name. The prompt is
//! the harness's scaffold, no turn of the agent; many labels stand on one all the same, and such a
//! label is marked, since nothing that an agent did can be found there.

use serde_json::value::RawValue;

use super::object::{Object, missing};
use super::slice::{self, RawRecord, Stop};
use super::value::json_object;
use super::{ImportError, Importer, Outline, Probe, RecordError, Sink, Source};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{Node, Outcome, Part, Role, Status, Trajectory};
use crate::verdict::ReferenceLabel;
use crate::warning::Loss;

const FORMAT: &str = "tracertraj";
/// How the prompt of a thinking agent begins.
const SCAFFOLD: &str = "# Past Experience";

/// Rows of TracerTraj.
pub(super) struct TracerTraj;

impl Importer for TracerTraj {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "rows with `question_ID`, `mistake_agent`, `mistake_step` and a `history` whose messages have a `step`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|record| {
            let first = record.get("history").and_then(Outline::first);
            record.has_all(&["question_ID", "mistake_agent", "mistake_step"])
                && first.is_some_and(|message| message.has_all(&["content", "name", "step"]))
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        slice::each(source, Probe::read(source)?.layout(), sink, read)
    }
}

fn read(record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut row: Object<'_> = record.parse()?;
    let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
    let history: Vec<&RawValue> = row.required("history")?;
    for (index, raw) in history.into_iter().enumerate() {
        let node = message(raw)
            .map_err(|error| RecordError::new(error.code, format!("history[{index}]: {error}")))?;
        run.push(node);
    }
    let native = row.id("question_ID").ok_or_else(|| missing("question_ID"))?;
    run.task = Task::named(format!("{FORMAT}/{native}"), row.text("question").unwrap_or_default());
    run.hidden.gold = row.take("ground_truth").map(Json::from);
    let label = label(&mut row, &run);
    if label.as_ref().is_some_and(|label| is_marked(label)) {
        let reason = "the label stands on a prompt, where no agent acted";
        sink.loss(Loss::new(FORMAT, "mistake_step", reason))?;
    }
    run.extra.extend(row.rest());
    let evidence = "the data set holds failed runs only".to_owned();
    run.finish(Outcome { status: Status::Failure, evidence, ..Outcome::unknown() });
    record.emit(sink, run, Some(native), label.into_iter().collect(), 0)?;
    Ok(())
}

fn message(raw: &RawValue) -> Result<Node, RecordError> {
    let mut message = Object::parse(raw, "message")?;
    let agent = message.text("name").ok_or_else(|| missing("name"))?;
    let content = message.text("content").ok_or_else(|| missing("content"))?;
    message.take("role");
    message.take("step");
    let said = content.strip_prefix(&agent).and_then(|rest| rest.strip_prefix(" thinking:"));
    let is_scaffold = said.is_some_and(|said| said.trim_start().starts_with(SCAFFOLD));
    let role = if is_scaffold { Role::System } else { Role::Assistant };
    let mut node = Node::new(role, agent, vec![Part::text(content)]);
    node.occurrence.sampled = !is_scaffold;
    node.occurrence.extra = json_object(message.rest());
    Ok(node)
}

/// Takes the label out of a row; its step counts messages from 0.
fn label(row: &mut Object<'_>, run: &Trajectory) -> Option<ReferenceLabel> {
    let mut named = row.clone();
    let mut native: Vec<(&str, Json)> = ["mistake_agent", "mistake_step", "mistake_reason"]
        .into_iter()
        .filter_map(|key| Some((key, row.take(key)?.into())))
        .collect();
    let step = named.id("mistake_step").and_then(|step| step.trim().parse::<usize>().ok());
    let node = step.filter(|step| *step < run.nodes.len());
    if node.and_then(|node| run.nodes.get(node)).is_some_and(|node| node.role == Role::System) {
        native.push((MARK, Json::from_foreign("true")));
    }
    Some(ReferenceLabel {
        source: FORMAT.to_owned(),
        index_base: 0,
        native: json_object(native)?,
        node,
        agent: named.text("mistake_agent"),
        reason: named.text("mistake_reason"),
    })
}

/// Member that marks a label on a prompt.
const MARK: &str = "on_prompt_scaffold";

fn is_marked(label: &ReferenceLabel) -> bool {
    label.native.to_value().get(MARK).is_some()
}
