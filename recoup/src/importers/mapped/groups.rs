//! Logs of single messages: the records of one `id` are a run, however they interleave.
//!
//! A first pass notes where the records of each run stand, a second reads one run at a time, so memory holds
//! the largest run and a few bytes a record. Where the mapping names what the messages are ordered by, records that
//! have none of it stand before the others, and equal ones in their order in the file.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::path::Path;
use super::run::Draft;
use super::{Mapping, RawRecord};
use crate::importers::object::missing;
use crate::importers::slice::{Joined, Keeper, Layout, Place, Records};
use crate::importers::value::text_or_source;
use crate::importers::{Event, ImportError, RecordError, Sink, Source};

/// A run: what its records call it, and where they stand.
struct Group {
    id: String,
    places: Vec<(Option<Rank>, Place)>,
}

/// What a record's message is ordered by: a number, or a text such as a time.
#[derive(Clone, Debug, PartialEq)]
enum Rank {
    Number(f64),
    Text(String),
}

impl Rank {
    fn of(raw: &RawValue) -> Self {
        let text = text_or_source(raw);
        text.trim().parse().map_or_else(|_| Self::Text(text), Self::Number)
    }

    fn compare(one: Option<&Self>, other: Option<&Self>) -> Ordering {
        match (one, other) {
            (Some(Self::Number(one)), Some(Self::Number(other))) => one.total_cmp(other),
            (Some(Self::Text(one)), Some(Self::Text(other))) => one.cmp(other),
            (Some(Self::Number(_)), Some(Self::Text(_))) => Ordering::Less,
            (Some(Self::Text(_)), Some(Self::Number(_))) => Ordering::Greater,
            (one, other) => one.is_some().cmp(&other.is_some()),
        }
    }
}

/// Reads the runs of a file in the order in which they begin.
pub(super) fn import(
    mapping: &Mapping,
    source: &Source,
    layout: Layout<'_>,
    inner: Option<&Path>,
    sink: &mut dyn Sink,
) -> Result<(), ImportError> {
    let mut keeper = Keeper::new(source, layout)?;
    let groups = stage(mapping, source, layout, inner, &mut keeper, sink)?;
    let mut again = keeper.finish()?;
    for mut group in groups {
        group.places.sort_by(|(one, _), (other, _)| Rank::compare(one.as_ref(), other.as_ref()));
        let mut draft = Draft::new(mapping);
        let mut joined: Option<Joined> = None;
        for (_, place) in group.places {
            let mut record = again.record(place)?;
            record.rewrite();
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
    keeper: &mut Keeper<'_>,
    sink: &mut dyn Sink,
) -> Result<Vec<Group>, ImportError> {
    let mut groups: Vec<Group> = Vec::new();
    let mut by_id: BTreeMap<String, usize> = BTreeMap::new();
    let mut records = Records::new(source, layout)?;
    while let Some(item) = records.next_raw() {
        let mut record = match item? {
            Ok(record) => record,
            Err(quarantine) => {
                sink.event(Event::Quarantine(quarantine))?;
                continue;
            }
        };
        let place = keeper.keep(&record)?;
        record.rewrite();
        record.attempt(sink, |record, sink| {
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
                let Some(group) = groups.get_mut(number) else { continue };
                if group.places.last().is_none_or(|(_, last)| *last != place) {
                    let rank = mapping.run.order.as_ref().and_then(|path| path.first(raw)).map(Rank::of);
                    group.places.push((rank, place));
                }
            }
            Ok(())
        })?;
    }
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
