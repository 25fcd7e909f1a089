//! Agent Data Protocol, standardized trajectories: `{id, content[{class_, …}], details}`.
//!
//! Every element of `content` is one node. An action is the policy's turn: its `description` is what
//! the agent said, an `api_action` is a call of `function` with `kwargs` byte for byte (their values
//! may be quoted twice, `"\"reproduce.py\""`; that stays), a `code_action` is a call named by its
//! language whose arguments are the code, a `message_action` is text. An observation answers the
//! action before it if that was a call, whatever its `source` says: data sets call the environment
//! `user`. A `message_action` at the very start has no observation to answer; it is the instruction
//! (AndroidControl writes it so) and the user's.
//!
//! The format has no outcome. Its ids are numbers in some data sets, so a row is identified by its
//! bytes, never by its id.

use serde_json::value::RawValue;

use super::beside::picture;
use super::object::Object;
use super::slice::{self, Stop};
use super::value::{json_object, text_or_source};
use super::{ImportError, Importer, Outline, Probe, RawRecord, RecordError, Sink, Source};
use crate::json::Json;
use crate::task::Task;
use crate::trajectory::{ArgumentsForm, Node, Outcome, Part, Role, ToolCall, ToolResult, Trajectory};

/// Agent Data Protocol, standardized trajectories.
pub(super) struct Adp;

impl Importer for Adp {
    fn format(&self) -> &'static str {
        "adp"
    }

    fn recognizes(&self) -> &'static str {
        "rows with `id` and a `content` whose items name their `class_`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        probe.records().iter().any(|row| {
            let item = row.get("content").and_then(Outline::first);
            let class = item.and_then(|item| item.get("class_")).and_then(Outline::as_str);
            row.get("id").is_some() && class.is_some_and(|class| Class::of(class).is_some())
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let layout = Probe::read(source)?.layout();
        slice::each(source, layout, sink, |record, sink| row(self.format(), source, record, sink))
    }
}

/// What an element of `content` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Api,
    Code,
    Message,
    Text,
    Image,
    Web,
}

impl Class {
    fn of(word: &str) -> Option<Self> {
        Some(match word {
            "api_action" => Self::Api,
            "code_action" => Self::Code,
            "message_action" => Self::Message,
            "text_observation" => Self::Text,
            "image_observation" => Self::Image,
            "web_observation" => Self::Web,
            _ => return None,
        })
    }
}

fn row(format: &str, source: &Source, record: &RawRecord, sink: &mut dyn Sink) -> Result<(), Stop> {
    let mut fields: Object<'_> = record.parse()?;
    let id = text_or_source(fields.required("id")?);
    let content: Vec<&RawValue> = fields.required("content")?;
    let mut run = Trajectory::new(format, Task::from_goal(""));
    let mut goal = None;
    // The call that the next observation answers.
    let mut open: Option<(Option<String>, String)> = None;
    for (index, raw) in content.into_iter().enumerate() {
        let mut item = Object::parse(raw, "content[]")?;
        let word: String = item.required("class_")?;
        let class = Class::of(&word).ok_or_else(|| {
            RecordError::new("wrong-type", format!("`class_` is `{word}`, no class of ADP"))
        })?;
        let mut node = match class {
            Class::Api | Class::Code => {
                let (said, call) = call(class, &mut item)?;
                open = Some((call.call_id.clone(), call.name.clone()));
                let parts = said.into_iter().chain([Part::ToolCall(call)]).collect();
                Node::new(Role::Assistant, "assistant", parts).sampled()
            }
            Class::Message => {
                open = None;
                let text: String = item.required("content")?;
                let parts = said(&mut item)?.into_iter().chain([Part::text(text.clone())]).collect();
                if index == 0 {
                    goal = Some(text);
                    Node::new(Role::User, "user", parts)
                } else {
                    Node::new(Role::Assistant, "assistant", parts).sampled()
                }
            }
            Class::Text | Class::Image | Class::Web => {
                let parts = observation(class, &mut item, source, &mut run, sink)?;
                if let Some((call_id, name)) = open.take() {
                    let result = ToolResult { call_id, parts, is_error: None, exit_code: None };
                    Node::new(Role::Tool, name, vec![Part::ToolResult(result)])
                } else {
                    let node = unasked(class, &mut item, parts)?;
                    if goal.is_none() && node.role == Role::User {
                        goal = node.parts.first().and_then(Part::as_text).map(str::to_owned);
                    }
                    node
                }
            }
        };
        node.occurrence.extra = json_object(item.rest());
        run.push(node);
    }
    run.task = match goal {
        Some(goal) => Task::from_goal(goal),
        None => Task::named(format!("adp/{id}"), ""),
    };
    run.finish(Outcome::unknown());
    run.extra.insert("id".to_owned(), Json::string(&id));
    run.extra.extend(fields.rest());
    Ok(record.emit(sink, run, None, Vec::new(), 0)?)
}

/// What the agent said with an action: its reasoning, then its description.
fn said(item: &mut Object<'_>) -> Result<Vec<Part>, RecordError> {
    let reasoning = item.optional("reasoning_content")?.map(|text| Part::Reasoning { text, signature: None });
    let description = item.optional::<String>("description")?.map(Part::text);
    Ok(reasoning.into_iter().chain(description).collect())
}

fn call(class: Class, item: &mut Object<'_>) -> Result<(Vec<Part>, ToolCall), RecordError> {
    let said = said(item)?;
    let call_id = item.optional("tool_call_id")?;
    let (name, arguments_raw, arguments_form) = if class == Class::Code {
        (item.required("language")?, item.required("content")?, ArgumentsForm::String)
    } else {
        let kwargs: &RawValue = item.required("kwargs")?;
        (item.required("function")?, kwargs.get().to_owned(), ArgumentsForm::Object)
    };
    Ok((said, ToolCall { call_id, name, arguments_raw, arguments_form }))
}

fn observation(
    class: Class,
    item: &mut Object<'_>,
    source: &Source,
    run: &mut Trajectory,
    sink: &mut dyn Sink,
) -> Result<Vec<Part>, Stop> {
    Ok(match class {
        Class::Text => vec![Part::text(item.required::<String>("content")?)],
        Class::Image => vec![picture(source, &item.required::<String>("content")?, run, sink)?],
        _ => {
            // The accessibility tree is what the agent read; the page's source stands in for it.
            let tree = item.optional::<String>("axtree")?;
            let html = item.optional::<String>("html")?;
            let mut parts = match (tree, html) {
                (Some(tree), Some(html)) => {
                    vec![Part::text(tree), Part::Opaque { kind: "html".to_owned(), raw: html }]
                }
                (tree, html) => tree.or(html).map(Part::text).into_iter().collect(),
            };
            if let Some(image) = item.take("image_observation") {
                let mut image = Object::parse(image, "image_observation")?;
                parts.push(picture(source, &image.required::<String>("content")?, run, sink)?);
            }
            parts
        }
    })
}

/// An observation that answers no call: somebody speaks, or the environment shows itself.
fn unasked(class: Class, item: &mut Object<'_>, parts: Vec<Part>) -> Result<Node, RecordError> {
    let name = item.optional::<String>("name")?;
    let (role, word) = match item.optional::<String>("source")?.as_deref() {
        Some("environment") => (Role::Tool, "environment"),
        _ if class != Class::Text => (Role::Tool, "environment"),
        // Another agent's words: they are not this policy's turn.
        Some("agent") => (Role::Assistant, "agent"),
        _ => (Role::User, "user"),
    };
    Ok(Node::new(role, name.unwrap_or_else(|| word.to_owned()), parts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Adp;
    use crate::importers::{Event, ImportOptions, Importer as _, Source};

    #[test]
    fn doubly_quoted_arguments_stay_byte_for_byte() {
        let text = r#"[{"id": "1", "content": [
            {"class_": "text_observation", "content": "fix it", "source": "user"},
            {"class_": "api_action", "function": "create", "kwargs": {"filename":  "\"reproduce.py\""}},
            {"class_": "text_observation", "content": "ok", "source": "user"}]}]"#;
        let source = Source::from_bytes("x.json", text.as_bytes(), Arc::new(ImportOptions::default()));
        let mut events: Vec<Event> = Vec::new();
        Adp.import(&source, &mut events).unwrap();
        let [Event::Trajectory(run)] = events.as_slice() else { panic!("one run: {events:?}") };
        assert!(run.bodies[1].bytes.contains(r#""arguments_raw":"{\"filename\":  \"\\\"reproduce.py"#));
        assert_eq!((run.tool_call_count, run.tool_result_count, run.step_count), (1, 1, 1));
    }
}
