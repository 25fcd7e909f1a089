//! Logs of single messages: the records of one `id` are a run, however they interleave.
//!
//! A first pass notes where the records of each run stand, a second reads one run at a time, so memory holds
//! the largest run and a few bytes a record.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::path::Path;
use super::run::Draft;
use super::{Mapping, RawRecord};
use crate::importers::object::missing;
use crate::importers::slice::{self, Again, Joined, Layout, Place};
use crate::importers::value::text_or_source;
use crate::importers::{ImportError, RecordError, Sink, Source};

/// A run: what its records call it, and where they stand.
struct Group {
    id: String,
    places: Vec<Place>,
}

/// Reads the runs of a file in the order in which they begin.
pub(super) fn import(
    mapping: &Mapping,
    source: &Source,
    layout: Layout<'_>,
    inner: Option<&Path>,
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    let groups = stage(mapping, source, layout, inner, sink)?;
    let mut again = Again::open(source)?;
    for group in groups {
        let mut draft = Draft::new(mapping);
        let mut joined: Option<Joined> = None;
        for place in group.places {
            let record = again.record(place)?;
            match add(mapping, &record, inner, &group.id, &mut draft) {
                Ok(()) => joined.get_or_insert_with(|| Joined::new(&record)).add(&record),
                Err(error) => sink.event(record.quarantine(&error))?,
            }
        }
        let Some(joined) = joined else { continue };
        let (run, native) = draft.finish(&source.options().scoring, sink)?;
        joined.finish().emit(sink, run, native, Vec::new(), 0)?;
    }
    Ok(())
}

fn stage(
    mapping: &Mapping,
    source: &Source,
    layout: Layout<'_>,
    inner: Option<&Path>,
    sink: &mut dyn Sink,
) -> Result<Vec<Group>, ImportError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    slice::each_in_order(source, layout, sink, |record, sink| {
        let root: &RawValue = record.parse()?;
        for raw in mapping.within(root, inner, sink)? {
            let id = match id(mapping, raw) {
                Ok(id) => id,
                // The other messages of the record are none the worse.
                Err(error) => {
                    sink.event(record.quarantine(&error))?;
                    continue;
                }
            };
            let number = *by_id.entry(id.clone()).or_insert_with(|| {
                groups.push(Group { id, places: Vec::new() });
                groups.len() - 1
            });
            let place = (record.span, record.line);
            if let Some(group) = groups.get_mut(number).filter(|group| group.places.last() != Some(&place)) {
                group.places.push(place);
            }
        }
        Ok(())
    })?;
    Ok(groups)
}

/// Adds a record's messages of one run.
fn add(
    mapping: &Mapping,
    record: &RawRecord,
    inner: Option<&Path>,
    wanted: &str,
    draft: &mut Draft<'_>,
) -> Result<(), RecordError> {
    let root: &RawValue = record.parse()?;
    for raw in inner.map_or_else(|| vec![root], |path| path.all(root)) {
        if id(mapping, raw).is_ok_and(|id| id == wanted) {
            draft.head(raw);
            draft.message(raw, "message")?;
        }
    }
    Ok(())
}

fn id(mapping: &Mapping, raw: &RawValue) -> Result<String, RecordError> {
    let path = mapping.run.id.as_ref().ok_or_else(|| missing("id"))?;
    path.first(raw).map(text_or_source).ok_or_else(|| missing(&path.to_string()))
}
