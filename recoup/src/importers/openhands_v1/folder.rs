//! A conversation as a folder of files, one an event, numbered in their names; the first one stands for
//! all, and the program's state lies above them.

use std::path::{Path, PathBuf};

use super::event::Events;
use super::finish;
use crate::importers::object::Object;
use crate::importers::slice::{self, RawRecord};
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::{ByteSpan, Quarantine};

/// Bytes of all events of one conversation together.
const CONVERSATION_BYTES_MAX: u64 = 1 << 30;
/// The file above the events with the conversation's id, model and state.
const STATE: &str = "base_state.json";

/// The events of the folder that was looked at last: its files come one after the other, and are many.
#[derive(Default)]
pub(super) struct Listing {
    folder: Option<PathBuf>,
    /// By number.
    events: Vec<(u64, String)>,
}

impl Listing {
    /// The events in a file's folder.
    fn beside(&mut self, source: &Source) -> &[(u64, String)] {
        let folder = Path::new(source.uri()).parent();
        if folder.is_none() || folder != self.folder.as_deref() {
            let names = source.names_beside().unwrap_or_default();
            self.events = names.into_iter().filter_map(|name| Some((number(&name)?, name))).collect();
            self.events.sort_unstable();
            self.folder = folder.map(Path::to_path_buf);
        }
        &self.events
    }
}

/// Reads the conversation that an event's file begins. An event that is not the first is read with the
/// first.
pub(super) fn import(source: &Source, listing: &mut Listing, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let events = listing.beside(source);
    let is_numbered = number(source.name()).is_some();
    if is_numbered && events.first().is_some_and(|(_, first)| first != source.name()) {
        return Ok(());
    }
    // A single event that is none of a folder's.
    let alone = if is_numbered && !events.is_empty() { None } else { Some(source.clone()) };
    let listed = events.iter().filter(|_| alone.is_none()).filter_map(|(_, name)| source.sibling(name).ok());
    let mut reader = Events::default();
    let mut joined: Option<(slice::Joined, ByteSpan)> = None;
    let mut left = CONVERSATION_BYTES_MAX;
    for file in alone.clone().into_iter().chain(listed) {
        let limit = source.options().record_bytes_max.min(left);
        let bytes = match file.read_all(limit) {
            Ok(bytes) => bytes,
            Err(error) => {
                sink.event(Event::Quarantine(quarantine(&file, "too-large", error.to_string())))?;
                continue;
            }
        };
        left = left.saturating_sub(bytes.len() as u64);
        let record = RawRecord::whole(&file, bytes);
        let read = record.parse().and_then(|raw| reader.add(raw));
        if let Err(error) = read {
            sink.event(record.quarantine(&error))?;
            continue;
        }
        let (joined, _) = joined.get_or_insert_with(|| (slice::Joined::new(&record), record.span));
        joined.add(&record);
    }
    let Some((joined, first)) = joined else { return Ok(()) };
    let state = source
        .sibling_above(1, STATE)
        .and_then(|file| file.read_all(source.options().record_bytes_max).map_err(|error| error.to_string()));
    let state = state.map(|bytes| RawRecord::whole(source, bytes));
    let mut record = joined.finish();
    // Bytes of several files have no range in one; the first file stands for all.
    record.span = first;
    let conversation = state.as_ref().ok().and_then(|state| state.parse::<Object<'_>>().ok());
    Ok(record.attempt(sink, |record, sink| finish(record, reader, Object::default(), conversation, sink))?)
}

/// The number in a name like `event-00012-….json`.
fn number(name: &str) -> Option<u64> {
    let rest = name.strip_prefix("event-")?.strip_suffix(".json")?;
    rest.split('-').next()?.parse().ok()
}

fn quarantine(file: &Source, code: &str, reason: String) -> Quarantine {
    Quarantine { uri: file.uri().to_owned(), line: None, span: None, code: code.to_owned(), reason }
}
