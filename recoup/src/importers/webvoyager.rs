//! WebVoyager's `interact_messages.json`: an array of chat messages, the screenshots beside it.
//!
//! A user message's `image_url` is the literal placeholder `data:image/png;base64,{b64_img}`; the
//! picture of the n-th user message is `screenshotN.png`. Older observations were cut from the
//! context (`(Omitted in context.)`) without their picture, which still lies there and is attached.
//! Actions are text (`Action: Click [12]`), so the policy's turns stay text. The last one answers
//! (`ANSWER; …`); whether rightly, no file says.

use serde_json::value::RawValue;

use super::beside::picture;
use super::object::{Object, wrong_type};
use super::slice::{self, Stop};
use super::value::{elements, json_object, text};
use super::{ImportError, Importer, Outline, Probe, RawRecord, RecordError, Shape, Sink, Source};
use crate::task::{EnvironmentRef, Task};
use crate::trajectory::{Node, Outcome, Part, Role, TerminationKind, Trajectory};

const PLACEHOLDER: &str = "data:image/png;base64,{b64_img}";
const OMITTED: &str = "(Omitted in context.)";
const SYSTEM_PROMPT_START: &str = "Imagine you are a robot browsing the web";
const TASK_START: &str = "Now given a task:";
const TASK_END: &str = "Please interact with";

/// WebVoyager.
pub(super) struct WebVoyager;

impl Importer for WebVoyager {
    fn format(&self) -> &'static str {
        "webvoyager"
    }

    fn recognizes(&self) -> &'static str {
        "an array of messages with `role` and `content` that begin with the prompts of WebVoyager"
    }

    fn detect(&self, probe: &Probe) -> bool {
        let messages = probe.records();
        let starts = |message: &Outline, start| match message.get("content") {
            Some(Outline::String(text)) => text.starts_with(start),
            Some(Outline::Array(parts)) => parts.iter().any(|part| {
                part.get("text").and_then(Outline::as_str).is_some_and(|text| text.starts_with(start))
            }),
            _ => false,
        };
        probe.shape == Shape::Array
            && messages.iter().all(|message| message.has_all(&["role", "content"]))
            && messages.iter().any(|message| starts(message, SYSTEM_PROMPT_START))
            && messages.iter().any(|message| starts(message, TASK_START))
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        if let Some(record) = slice::document(source, sink)? {
            record.attempt(sink, |record, sink| interaction(self.format(), source, record, sink))?;
        }
        Ok(())
    }
}

fn interaction(format: &str, source: &Source, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let messages: Vec<&RawValue> = record.parse()?;
    let mut run = Trajectory::new(format, Task::from_goal(""));
    let mut turns = 0;
    let mut answered = false;
    for message in messages {
        let mut message = Object::parse(message, "message")?;
        let role: String = message.required("role")?;
        let mut parts = contents(message.required("content")?)?;
        let mut node = match role.as_str() {
            "system" => Node::new(Role::System, "system", parts),
            "assistant" => {
                answered = parts.iter().filter_map(Part::as_text).any(|text| text.contains("ANSWER"));
                Node::new(Role::Assistant, "assistant", parts).sampled()
            }
            "user" => {
                turns += 1;
                let screenshot = format!("screenshot{turns}.png");
                let omitted =
                    parts.last().and_then(Part::as_text).is_some_and(|text| text.ends_with(OMITTED));
                if omitted && source.has_sibling(&screenshot) {
                    parts.push(picture(source, &screenshot, &mut run, sink)?);
                }
                for part in &mut parts {
                    if matches!(part, Part::Opaque { raw, .. } if raw.contains(PLACEHOLDER)) {
                        *part = picture(source, &screenshot, &mut run, sink)?;
                    }
                }
                Node::new(Role::User, "user", parts)
            }
            other => {
                let reason = format!("`role` is `{other}`, not system, user or assistant");
                return Err(RecordError::new("wrong-type", reason).into());
            }
        };
        node.occurrence.extra = json_object(message.rest());
        run.push(node);
    }
    run.task = task(&run, source);
    run.environment = Some(EnvironmentRef { name: "web".to_owned(), version: None, reset: None });
    let outcome = Outcome::unknown();
    run.finish(if answered { outcome.ended(TerminationKind::Completed, "ANSWER") } else { outcome });
    Ok(record.emit(sink, run, None, Vec::new(), 0)?)
}

/// The parts of a message; a picture is opaque until its file is known.
fn contents(content: &RawValue) -> Result<Vec<Part>, RecordError> {
    if let Some(text) = text(content) {
        return Ok(vec![Part::text(text)]);
    }
    let parts = elements(content).ok_or_else(|| wrong_type("content", "a text or a list of parts"))?;
    let part = |raw: &RawValue| {
        let mut fields = Object::parse(raw, "content[]")?;
        let kind: String = fields.required("type")?;
        Ok(match fields.optional::<String>("text")? {
            Some(text) if kind == "text" => Part::text(text),
            _ => Part::Opaque { kind, raw: raw.get().to_owned() },
        })
    };
    parts.into_iter().map(part).collect()
}

/// The task's sentence in the first user message; where it is not found, the folder's name, which the
/// harness makes of the task's id (`taskCoursera--16`).
fn task(run: &Trajectory, source: &Source) -> Task {
    let first = run.nodes.iter().find(|node| node.role == Role::User);
    let text = first.and_then(|node| node.parts.first()).and_then(Part::as_text).unwrap_or_default();
    let goal =
        text.split_once(TASK_START).map(|(_, rest)| rest.split(TASK_END).next().unwrap_or(rest).trim());
    match (goal, source.folder_names().first()) {
        (None, Some(folder)) => Task::named(format!("webvoyager/{folder}"), text),
        (goal, _) => Task::from_goal(goal.unwrap_or(text)),
    }
}
