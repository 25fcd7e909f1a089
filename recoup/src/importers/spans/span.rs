//! A span: one operation of a run, whatever tracing format recorded it.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use serde_json::value::RawValue;

use super::genai::Events;
use super::time::Time;
use crate::importers::dialect::Dialect;
use crate::json::Json;
use crate::trajectory::{Call, Tool};

/// What a span is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// An agent at work: the model calls and tools beneath are its own.
    Agent,
    /// A call of a model.
    Model,
    /// A tool's run.
    Tool,
    /// Anything else, by the source's word.
    Other(String),
    /// The source does not say.
    #[default]
    Unknown,
}

/// One operation. What a format does not say is absent.
#[derive(Clone, Debug, Default)]
pub(super) struct Span<'a> {
    pub(super) id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) start: Option<Time>,
    pub(super) end: Option<Time>,
    /// What went wrong.
    pub(super) error: Option<String>,
    /// The agent that acts, where the span names it.
    pub(super) agent: Option<String>,
    /// Parameters, usage and cost of a model call.
    pub(super) call: Call,
    /// The provider's id of the response, and of the response that the request goes on from.
    pub(super) response: Option<String>,
    pub(super) continues: Option<String>,
    /// The form of its messages, where the format fixes it.
    pub(super) dialect: Option<Dialect>,
    /// Instructions that stand apart from the messages.
    pub(super) system: Option<Cow<'a, RawValue>>,
    /// Messages, or what else it was given and gave: any JSON value.
    pub(super) input: Option<Cow<'a, RawValue>>,
    pub(super) output: Option<Cow<'a, RawValue>>,
    /// A tool's run: id of the call that it answers, name, arguments, result.
    pub(super) tool: ToolRun,
    /// Tools that were offered.
    pub(super) tools: Vec<Tool>,
    /// What else the source says of it.
    pub(super) rest: BTreeMap<String, Json>,
}

/// What a span says of a tool's run.
#[derive(Clone, Debug, Default)]
pub(super) struct ToolRun {
    pub(super) call_id: Option<String>,
    pub(super) name: Option<String>,
    pub(super) arguments: Option<String>,
    pub(super) result: Option<String>,
}

/// A score or an annotation.
#[derive(Clone, Debug)]
pub(super) struct Score {
    /// Scorer's name.
    pub(super) name: String,
    /// The span it is about; the whole run where absent.
    pub(super) span: Option<String>,
    pub(super) value: Value,
    /// Why, in words.
    pub(super) reason: Option<String>,
    /// The source's own record of it.
    pub(super) native: Json,
}

/// What a scorer says.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Flag(bool),
    Number(f64),
    /// A word, or nothing that counts.
    Other,
}

/// What a model call said, recorded apart from its span.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    /// When.
    pub(super) at: Option<Time>,
    /// Messages, one by one.
    pub(super) messages: Events,
    /// All of it.
    pub(super) detail: Option<Span<'a>>,
}

/// Everything that a run's pieces say.
#[derive(Debug, Default)]
pub(super) struct Trace<'a> {
    /// The format, where it is not that of the importer.
    pub(super) format: Option<&'static str>,
    pub(super) spans: Vec<Span<'a>>,
    pub(super) scores: Vec<Score>,
    /// What the right answer is, by the name of who says it.
    pub(super) gold: BTreeMap<String, Json>,
    /// What stands apart from the spans that said it, by their ids.
    pub(super) apart: BTreeMap<String, Said<'a>>,
    /// The harness and its version, where the source says.
    pub(super) harness: Option<(String, Option<String>)>,
    /// What the source says of the run.
    pub(super) extra: BTreeMap<String, Json>,
    /// Fields that were not carried, with the reason.
    pub(super) lost: Vec<(String, &'static str)>,
}

impl<'a> Trace<'a> {
    /// Notes a field that is not carried.
    pub(super) fn lose(&mut self, field: impl Into<String>, reason: &'static str) {
        self.lost.push((field.into(), reason));
    }

    /// What a span says apart from itself.
    pub(super) fn said(&mut self, span: &str, at: Option<Time>) -> &mut Said<'a> {
        let said = self.apart.entry(span.to_owned()).or_default();
        said.at = said.at.take().or(at);
        said
    }

    /// Gives what was recorded apart to its spans; a call whose span is not recorded becomes one.
    pub(super) fn unite(&mut self) {
        if self.apart.is_empty() {
            return;
        }
        let by_id = self.spans.iter().enumerate().map(|(index, span)| (span.id.clone(), index));
        let by_id: HashMap<String, usize> = by_id.collect();
        for (id, said) in std::mem::take(&mut self.apart) {
            let own = by_id.get(&id).and_then(|index| self.spans.get_mut(*index));
            if let Some(span) = own {
                said.give(span);
            } else {
                let mut span = Span { id, kind: Kind::Model, start: said.at.clone(), ..Span::default() };
                said.give(&mut span);
                self.spans.push(span);
            }
        }
    }
}

impl<'a> Said<'a> {
    fn give(self, span: &mut Span<'a>) {
        if let Some(detail) = self.detail {
            span.system = span.system.take().or(detail.system);
            span.input = span.input.take().or(detail.input);
            span.output = span.output.take().or(detail.output);
            span.call.model = span.call.model.take().or(detail.call.model);
            span.call.usage = span.call.usage.or(detail.call.usage);
            span.call.finish_reason = span.call.finish_reason.take().or(detail.call.finish_reason);
            if span.tools.is_empty() {
                span.tools = detail.tools;
            }
        }
        self.messages.settle(span);
    }
}

/// A JSON text that is made here, as a value.
pub(super) fn made(text: String) -> Option<Cow<'static, RawValue>> {
    RawValue::from_string(text).ok().map(Cow::Owned)
}
