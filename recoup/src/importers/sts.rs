//! The session trace format of Hugging Face's tools: JSON lines, a `session` and then its messages.
//!
//! `{type: "session", harness, id, name?}` begins a run; `{type: "message", message: {role, content,
//! reasoningContent?, toolCalls?, toolCallId?, timestamp?, model?}}` are its messages, in OpenAI's form
//! with names in camel case. Times are milliseconds since 1970 and stay as they are written. A file may
//! hold several sessions, one after the other.

use std::collections::BTreeSet;

use super::dialect::{Aside, Dialect, message};
use super::object::{Object, missing};
use super::slice::{self, Joined, RawRecord, RecordError};
use super::value::write_object;
use super::{ImportError, Importer, Layout, Outline, Probe, Shape, Sink, Source, row};
use crate::task::Task;
use crate::trajectory::{Call, Harness, Role, Trajectory};

const FORMAT: &str = "sts";
/// Names of a message's members and what OpenAI calls them.
const NAMES: [(&str, &str); 4] = [
    ("reasoningContent", "reasoning_content"),
    ("toolCalls", "tool_calls"),
    ("toolCallId", "tool_call_id"),
    ("isError", "is_error"),
];

/// Session traces.
pub(super) struct Sts;

impl Importer for Sts {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "lines that begin with a `type` session, `harness` and `id`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        let is_session = |value: &Outline| {
            value.get("type").and_then(Outline::as_str) == Some("session")
                && value.has_all(&["harness", "id"])
        };
        matches!(probe.shape, Shape::Lines | Shape::Object) && probe.values.iter().any(is_session)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let mut open: Option<(Session, Joined)> = None;
        slice::each_in_order(source, Layout::Lines, sink, |record, sink| {
            let mut fields: Object<'_> = record.parse()?;
            let kind: String = fields.required("type")?;
            if kind == "session" {
                let session = Session::new(fields)?;
                if let Some((session, joined)) = open.replace((session, Joined::new(record))) {
                    session.emit(joined, source, sink)?;
                }
            }
            let (session, joined) = open.as_mut().ok_or_else(|| missing("session"))?;
            match kind.as_str() {
                "session" => {}
                "message" => session.message(record)?,
                _ => session.aside.lose(kind, "a line of a kind that recoup does not know"),
            }
            joined.add(record);
            Ok(())
        })?;
        match open {
            Some((session, joined)) => Ok(session.emit(joined, source, sink)?),
            None => Ok(()),
        }
    }
}

/// A session while its lines come.
struct Session {
    id: String,
    run: Trajectory,
    aside: Aside,
}

impl Session {
    fn new(mut fields: Object<'_>) -> Result<Self, RecordError> {
        let id = fields.id("id").ok_or_else(|| missing("id"))?;
        let mut run = Trajectory::new(FORMAT, Task::from_goal(""));
        run.harness = fields.text("harness").map(|name| Harness { name, version: None });
        run.extra.extend(fields.rest());
        Ok(Self { id, run, aside: Aside::default() })
    }

    fn message(&mut self, record: &RawRecord) -> Result<(), RecordError> {
        let mut fields: Object<'_> = record.parse()?;
        let mut said: Object<'_> = fields.required("message")?;
        let model = said.text("model");
        let at = said.id("timestamp");
        let members = said.members().into_iter().map(|(key, value)| {
            let known = NAMES.iter().find(|(name, _)| *name == key);
            (known.map_or(key, |(_, name)| (*name).to_owned()), value.get())
        });
        let renamed = write_object(members);
        let raw = serde_json::from_str(&renamed)?;
        for mut node in message(raw, Some(Dialect::Chat), Role::User, &mut self.aside)? {
            node.occurrence.at = node.occurrence.at.or_else(|| at.clone());
            if let Some(model) = model.clone().filter(|_| node.role == Role::Assistant) {
                node.occurrence.call = Some(Box::new(Call { model: Some(model), ..Call::default() }));
            }
            self.run.push(node);
        }
        fields.take("type");
        self.aside.left(fields, "line");
        Ok(())
    }

    fn emit(mut self, joined: Joined, source: &Source, sink: &mut dyn Sink) -> Result<(), super::SinkError> {
        let mut losses = BTreeSet::new();
        self.aside.settle(&mut self.run, &mut losses);
        let model = self.run.nodes.iter().find_map(|node| node.occurrence.call.as_ref()?.model.clone());
        for agent in &mut self.run.agents {
            agent.model.clone_from(&model);
        }
        row::settle(&mut self.run, Object::default(), &source.options().scoring);
        losses.into_iter().try_for_each(|loss| sink.loss(loss))?;
        joined.finish().emit(sink, self.run, Some(self.id), Vec::new(), 0)
    }
}
