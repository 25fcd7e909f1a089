//! The log of `recoup proxy`: conversations between a harness and its models, as they went over the wire.
//!
//! A conversation is a tree: a history that was edited, a request that was asked again and a context
//! that was compacted are branches. A turn is sampled where the proxy saw it being answered; an answer
//! that a client brings along and nobody gave here is copied context. A request that failed adds no
//! message and stands in `proxy.failed`. What the teacher would have done is a label, never a message.
//!
//! Requests come interleaved, so a file is read to its end before its conversations are handed on, in
//! the order in which they begin.

mod conversation;
mod entry;

use std::collections::BTreeMap;

use self::conversation::Conversation;
pub use self::entry::{Api, Begin, End, Entry, Label, Outcome, Problem, Sharing};
use super::slice::{self, Joined, RecordError};
use super::{ImportError, Importer, Outline, Probe, Shape, Sink, Source};

/// Name of the format.
pub const FORMAT: &str = "recoup-proxy";

/// The proxy's logs.
pub(super) struct RecoupProxy;

impl Importer for RecoupProxy {
    fn format(&self) -> &'static str {
        FORMAT
    }

    fn detect(&self, probe: &Probe) -> bool {
        let is_entry = |value: &Outline| value.get(entry::KIND).and_then(Outline::as_str).is_some();
        matches!(probe.shape, Shape::Lines | Shape::Object) && probe.values.first().is_some_and(is_entry)
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut conversations: Vec<(Conversation, Joined)> = Vec::new();
        slice::each_line(source, sink, |record, _| {
            let entry = Entry::parse(&record.bytes).map_err(RecordError::from)?;
            let name = entry.conversation();
            let number = numbers.get(name).copied().unwrap_or(conversations.len());
            if number == conversations.len() {
                numbers.insert(name.to_owned(), number);
                conversations.push((Conversation::new(name), Joined::new(record)));
            }
            let (conversation, joined) = &mut conversations[number];
            conversation.add(entry)?;
            joined.add(record);
            Ok(())
        })?;
        for (conversation, joined) in conversations {
            let (run, native, losses) = conversation.finish();
            for loss in losses {
                sink.loss(loss)?;
            }
            joined.finish().emit(sink, run, Some(native), Vec::new(), 0)?;
        }
        Ok(())
    }
}
