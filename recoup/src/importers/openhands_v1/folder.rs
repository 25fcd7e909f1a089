//! A conversation as a folder of files, one an event, numbered in their names; the first one stands for
//! all, and the program's state lies above them.

use super::event::Events;
use super::finish;
use crate::importers::object::Object;
use crate::importers::slice::{self, RawRecord};
use crate::importers::{Event, ImportError, Sink, Source};
use crate::warning::Quarantine;

/// Bytes of all events of one conversation together.
const CONVERSATION_BYTES_MAX: u64 = 1 << 30;
/// The file above the events with the conversation's id, model and state.
const STATE: &str = "base_state.json";

/// Reads the conversation that an event's file begins. An event that is not the first is read with the
/// first.
pub(super) fn import(source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
    let files = source.folder_files().unwrap_or_default();
    let mut events: Vec<(u64, &Source)> =
        files.iter().filter_map(|file| Some((number(file.name())?, file))).collect();
    events.sort_by(|(a, left), (b, right)| (a, left.name()).cmp(&(b, right.name())));
    let is_first = events.first().is_none_or(|(_, first)| first.name() == source.name());
    if number(source.name()).is_some() && !is_first {
        return Ok(());
    }
    if number(source.name()).is_none() || events.is_empty() {
        events = vec![(0, source)];
    }
    let mut reader = Events::default();
    let mut joined: Option<slice::Joined> = None;
    let mut left = CONVERSATION_BYTES_MAX;
    for (_, file) in events {
        let limit = source.options().record_bytes_max.min(left);
        let bytes = match file.read_all(limit) {
            Ok(bytes) => bytes,
            Err(error) => {
                sink.event(Event::Quarantine(quarantine(file, "too-large", error.to_string())))?;
                continue;
            }
        };
        left = left.saturating_sub(bytes.len() as u64);
        let record = RawRecord::whole(file, bytes);
        let read = record.parse().and_then(|raw| reader.add(raw));
        if let Err(error) = read {
            sink.event(record.quarantine(&error))?;
            continue;
        }
        joined.get_or_insert_with(|| slice::Joined::new(&record)).add(&record);
    }
    let Some(joined) = joined else { return Ok(()) };
    let state = source
        .sibling_above(1, STATE)
        .and_then(|file| file.read_all(source.options().record_bytes_max).map_err(|error| error.to_string()));
    let state = state.map(|bytes| RawRecord::whole(source, bytes));
    let mut record = joined.finish();
    source.uri().clone_into(&mut record.uri);
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
