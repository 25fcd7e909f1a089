//! The log of `recoup proxy`: conversations between a harness and its models, as they went over the wire.
//!
//! A conversation is a tree: a history that was edited, a request that was asked again and a context
//! that was compacted are branches. A turn is sampled where the proxy saw it being answered; an answer
//! that a client brings along and nobody gave here is copied context. A request that failed adds no
//! message and stands in `failed_requests`. What the teacher would have done is a label of the state,
//! never a message; [`read`] gives the labels, an import of the file names them as a loss.
//!
//! Requests come interleaved, so a file is read to its end before its conversations are handed on, in
//! the order in which they begin.

mod conversation;
mod entry;
mod said;
mod visit;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::value::RawValue;

use self::conversation::{Conversation, Finished};
pub use self::entry::{Api, BUDGET, Begin, CONTEXT_FULL, End, Entry, Label, Outcome, Problem, Sharing};
pub use self::visit::{Taught, Visit};
use super::dialect::Aside;
use super::openai_chat;
use super::slice::{self, Joined, RawRecord, RecordError};
use super::{Event, ImportError, Importer, Layout, Outline, Probe, Shape, Sink, Source};
use crate::trajectory::{Node, Sealed, Tool, Trajectory};
use crate::verdict::StateLabel;
use crate::warning::Loss;

/// Name of the format.
pub const FORMAT: &str = "recoup-proxy";

/// The proxy's logs.
pub(super) struct RecoupProxy;

impl Importer for RecoupProxy {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn recognizes(&self) -> &'static str {
        "lines of the log that `recoup proxy` writes, each with `recoup_proxy`"
    }

    fn detect(&self, probe: &Probe) -> bool {
        let is_entry = |value: &Outline| value.get(entry::KIND).and_then(Outline::as_str).is_some();
        matches!(probe.shape, Shape::Lines | Shape::Object) && probe.values.first().is_some_and(is_entry)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        for (finished, record) in conversations(source, sink)? {
            for loss in finished.losses {
                sink.loss(loss)?;
            }
            if !finished.visits.is_empty() {
                sink.loss(Loss::new(
                    FORMAT,
                    "label",
                    "labels are kept where the proxy itself stores its runs",
                ))?;
            }
            record.emit(sink, finished.run, Some(finished.name), Vec::new(), 0)?;
        }
        Ok(())
    }
}

/// Reads a log with its labels: each run sealed, beside what `label` makes of the states that were visited in it.
/// What is lost or cannot be read goes to `sink`.
///
/// # Errors
/// When the log cannot be read or the sink fails.
pub fn read(
    source: &Source,
    sink: &mut dyn Sink,
    label: impl Fn(&Trajectory, &Visit) -> StateLabel,
) -> Result<Vec<(Sealed, Vec<StateLabel>)>, ImportError> {
    let mut runs = Vec::new();
    for (finished, record) in conversations(source, sink)? {
        for loss in finished.losses {
            sink.loss(loss)?;
        }
        let labels = finished.visits.iter().map(|visit| label(&finished.run, visit)).collect();
        let mut events: Vec<Event> = Vec::new();
        record.emit(&mut events, finished.run, Some(finished.name), Vec::new(), 0)?;
        let mut labels = Some(labels);
        for event in events {
            match event {
                Event::Trajectory(sealed) => runs.push((*sealed, labels.take().unwrap_or_default())),
                event => sink.event(event)?,
            }
        }
    }
    Ok(runs)
}

/// Messages of an API as nodes, in order. What cannot be read is a part without a meaning.
pub fn nodes(api: Api, messages: &[&RawValue]) -> Vec<Node> {
    said::nodes(api, messages, &mut Aside::default()).into_iter().flatten().collect()
}

/// The tools that a request of any API offers.
///
/// # Errors
/// Where one of them is known to its provider alone, in words.
pub fn tools(raw: Option<&RawValue>) -> Result<Vec<Tool>, String> {
    let Some(raw) = raw else { return Ok(Vec::new()) };
    let read = openai_chat::tools(raw, FORMAT, &mut BTreeSet::new());
    read.ok_or_else(|| "a tool is known to its provider alone".to_owned())
}

fn conversations(source: &Source, sink: &mut dyn Sink) -> Result<Vec<(Finished, RawRecord)>, ImportError> {
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut found: Vec<(Conversation, Joined)> = Vec::new();
    slice::each_in_order(source, Layout::Lines, sink, |record, _| {
        let entry = Entry::parse(&record.bytes).map_err(RecordError::from)?;
        let name = entry.conversation();
        let number = numbers.get(name).copied().unwrap_or(found.len());
        if number == found.len() {
            numbers.insert(name.to_owned(), number);
            found.push((Conversation::new(name), Joined::new(record)));
        }
        if let Some((conversation, joined)) = found.get_mut(number) {
            conversation.add(entry)?;
            joined.add(record);
        }
        Ok(())
    })?;
    found.retain(|(conversation, _)| conversation.has_begun());
    Ok(found.into_iter().map(|(conversation, joined)| (conversation.finish(), joined.finish())).collect())
}
