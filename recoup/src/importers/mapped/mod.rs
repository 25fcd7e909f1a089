//! A format of one's own: an importer made of a mapping that a person wrote, for simple logs.
//!
//! A record is a run with its messages inside, or a message, and then the records of one `id` are a run
//! (`groups.rs`). What no path takes stays with the run or the message by its own name; what has no place there
//! is a loss.

mod groups;
mod mapping;
mod path;
mod run;

use std::collections::BTreeSet;

use serde_json::value::RawValue;

pub use self::mapping::Mapping;
use self::path::{Path, Taken};
use self::run::Draft;
use super::object::Object;
use super::slice::{self, Layout, RawRecord, Stop};
use super::{ImportError, Importer, Outline, Probe, Scoring, Sink, Source};
use crate::warning::Loss;

/// Why something that stands around the records is a loss.
const BESIDE: &str = "stands beside the records, where the mapping does not look";

impl Importer for Mapping {
    fn format(&self) -> &str {
        &self.name
    }

    fn recognizes(&self) -> &str {
        &self.recognizes
    }

    fn detect(&self, probe: &Probe) -> bool {
        let records: Vec<&Outline> = match &self.records {
            Some(path) => probe.values.iter().flat_map(|value| path.outlines(value)).collect(),
            None => probe.records().iter().collect(),
        };
        let speaks = |message: &Outline| self.message.role.path().is_none_or(|role| role.is_in(message));
        records.into_iter().any(|record| match (&self.run.messages, &self.run.id) {
            (Some(messages), _) => messages.outlines(record).into_iter().any(speaks),
            (None, Some(id)) => id.is_in(record) && speaks(record),
            (None, None) => false,
        })
    }

    fn import(&self, source: &Source, sink: &mut dyn Sink) -> Result<(), ImportError> {
        let probe = Probe::read(source)?;
        let array = self.records.as_ref().and_then(Path::to_array);
        let (layout, inner) = match (&self.records, &array, probe.layout()) {
            (None, _, layout) => (layout, None),
            (Some(path), _, Layout::Lines) => (Layout::Lines, Some(path)),
            (Some(_), Some(names), _) => (Layout::Elements(names), None),
            (Some(path), None, _) => (Layout::Document, Some(path)),
        };
        if let Layout::Elements([first, ..]) = layout {
            self.lose_around(source, array.as_deref().unwrap_or_default(), first, sink)?;
        }
        if self.run.messages.is_none() {
            return groups::import(self, source, layout, inner, sink);
        }
        let scoring = &source.options().scoring;
        slice::each(source, layout, sink, |record, sink| self.read(record, inner, scoring, sink))
    }
}

impl Mapping {
    /// The runs that a record holds.
    fn read(
        &self,
        record: &RawRecord,
        inner: Option<&Path>,
        scoring: &Scoring,
        sink: &mut dyn Sink,
    ) -> Result<(), Stop> {
        let root: &RawValue = record.parse()?;
        for (part, raw) in (0..).zip(self.within(root, inner, sink)?) {
            let mut draft = Draft::new(self);
            draft.head(raw);
            let messages = self.run.messages.as_ref().map(|path| path.all(raw)).unwrap_or_default();
            let read = messages
                .into_iter()
                .enumerate()
                .try_for_each(|(index, message)| draft.message(message, &format!("messages[{index}]")));
            match read {
                Ok(()) => {
                    draft.keep_rest(raw);
                    let (run, native) = draft.finish(scoring, sink)?;
                    record.emit(sink, run, native, Vec::new(), part)?;
                }
                // The other runs of the record are none the worse.
                Err(error) => sink.event(record.quarantine(&error))?,
            }
        }
        Ok(())
    }

    /// The records inside a larger one; what stands around them is lost.
    fn within<'a>(
        &self,
        root: &'a RawValue,
        inner: Option<&Path>,
        sink: &mut dyn Sink,
    ) -> Result<Vec<&'a RawValue>, Stop> {
        let Some(path) = inner else { return Ok(vec![root]) };
        let rest = Taken::by([path]).rest_of(root);
        let left: Option<Object<'_>> = rest.as_deref().and_then(|text| serde_json::from_str(text).ok());
        for key in left.iter().flat_map(Object::keys) {
            sink.loss(Loss::new(&self.name, key, BESIDE))?;
        }
        Ok(path.all(root))
    }

    /// Says what stands around the array of records.
    fn lose_around(
        &self,
        source: &Source,
        names: &[&str],
        first: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), ImportError> {
        // A file that is cut off has no whole header; reading its records says so.
        let Ok(header) = slice::header(source, names) else { return Ok(()) };
        let Ok(around) = header.parse::<Object<'_>>() else { return Ok(()) };
        let keys: BTreeSet<&str> = around.keys().filter(|key| *key != first).collect();
        for key in keys {
            sink.loss(Loss::new(&self.name, key, BESIDE))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use serde_json::json;

    use super::Mapping;
    use crate::importers::{Event, Importer as _, Probe, Source, detect_among};

    fn nested() -> Mapping {
        let mapping = json!({
            "name": "nested",
            "records": "$.days[*].runs[*]",
            "run": { "id": "$.id", "messages": "$.turns[*]", "score": "$.score", "tools": "$.tools" },
            "message": {
                "role": "$.who", "content": "$.say[*]", "calls": "$.calls[*]", "result": "$.got", "error": "$.bad",
            },
            "call": { "name": "$.fn", "arguments": "$.with" },
        });
        serde_json::from_value(mapping).unwrap()
    }

    fn flat() -> Mapping {
        let mapping = json!({
            "name": "flat",
            "run": { "id": "$.id" },
            "message": { "role": "$.who", "content": "$.say" },
            "roles": { "pulse": "skip" },
        });
        serde_json::from_value(mapping).unwrap()
    }

    const NESTED: &str = r#"{"site":"x","days":[{"on":1,"runs":[{"id":"a","score":"0.5","turns":[
        {"who":"user","say":["one","two"]},
        {"who":"assistant","calls":[{"fn":"look","with":{"at":[1,2]}},{"no":"name"}],"got":"seen"},
        {"who":"tool","say":[{"k":null}],"bad":true}]}]},{"runs":[{"id":"b","turns":[]}]}]}"#;
    const FLAT: &str = "{\"id\":1,\"who\":\"user\",\"say\":\"hi\"}\n{\"id\":2,\"who\":\"pulse\"}\n\
                        {\"id\":1,\"who\":\"assistant\",\"say\":null}\n";

    fn import(mapping: &Mapping, bytes: &[u8]) -> Vec<Event> {
        let source = Source::from_bytes("x", bytes, Arc::default());
        let mut events: Vec<Event> = Vec::new();
        mapping.import(&source, &mut events).unwrap();
        events
    }

    fn runs(events: &[Event]) -> Vec<(Option<&str>, usize)> {
        events
            .iter()
            .filter_map(|event| match event {
                Event::Trajectory(run) => Some((run.native_id.as_deref(), run.bodies.len())),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn records_deep_inside_are_runs() {
        let events = import(&nested(), NESTED.as_bytes());
        assert_eq!(runs(&events), [(Some("a"), 4), (Some("b"), 0)]);
        let lost: Vec<&str> = events
            .iter()
            .filter_map(|event| if let Event::Loss(loss) = event { Some(loss.field.as_str()) } else { None })
            .collect();
        assert_eq!(lost, ["days", "site", "$.say[*]"], "what stands beside, and a text that is none");
    }

    #[test]
    fn the_rows_of_a_table_are_messages_in_the_order_that_the_mapping_names() {
        let mapping = json!({
            "name": "rows",
            "run": { "id": "$.talk", "order": "$.n" },
            "message": { "role": "$.who", "content": "$.say" },
        });
        let mapping: Mapping = serde_json::from_value(mapping).unwrap();
        let table = "talk,n,who,say\nb,1,user,\"only, one\"\na,10,assistant,three\na,,system,one\na,9,user,\"tw\no\"\n";
        let source = Source::from_bytes("x.csv", table.as_bytes(), Arc::default());
        let taken = detect_among(&source, &[&mapping]).unwrap().unwrap();
        let mut events: Vec<Event> = Vec::new();
        taken.import(&source, &mut events).unwrap();
        let said = |event: &Event| match event {
            Event::Trajectory(run) => {
                Some(run.bodies.iter().map(|body| body.bytes.clone()).collect::<String>())
            }
            _ => None,
        };
        let said: Vec<String> = events.iter().filter_map(said).collect();
        let places = |text: &str| ["one", "tw\\no", "three"].map(|word| text.find(word));
        assert_eq!(runs(&events), [(Some("b"), 1), (Some("a"), 3)]);
        assert!(places(&said[1]).is_sorted() && places(&said[1])[0].is_some(), "{}", said[1]);
    }

    #[test]
    fn a_message_of_no_run_costs_only_itself() {
        let mapping = json!({
            "name": "batched",
            "records": "$.batch[*]",
            "run": { "id": "$.id" },
            "message": { "role": "$.who", "content": "$.say" },
        });
        let mapping: Mapping = serde_json::from_value(mapping).unwrap();
        let batch =
            r#"{"batch":[{"id":1,"who":"user","say":"a"},{"who":"user"},{"id":1,"who":"user","say":"b"}]}"#;
        let events = import(&mapping, format!("{batch}\n{batch}\n").as_bytes());
        assert_eq!(runs(&events), [(Some("1"), 4)]);
        assert_eq!(events.iter().filter(|event| matches!(event, Event::Quarantine(_))).count(), 2);
    }

    #[test]
    fn a_compressed_log_is_read_like_any_other() {
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(FLAT.as_bytes()).unwrap();
        let source = Source::from_reader("-", &*gz.finish().unwrap(), Arc::default()).unwrap();
        let flat = flat();
        let taken = detect_among(&source, &[&flat]).unwrap().unwrap();
        let mut events: Vec<Event> = Vec::new();
        taken.import(&source, &mut events).unwrap();
        assert_eq!(runs(&events), [(Some("1"), 2), (Some("2"), 0)]);
    }

    /// Cut anywhere, and with any byte another: nothing panics, and every event is one of a file's.
    #[test]
    fn damage_anywhere_is_survived() {
        for (mapping, text) in [(nested(), NESTED), (flat(), FLAT)] {
            for at in 0..text.len() {
                let mut bytes = text.as_bytes().to_vec();
                for byte in [b'"', b'[', b'\n', 0xff] {
                    bytes[at] = byte;
                    let _ = mapping.detect(&Probe::of("x", bytes.clone(), true));
                    import(&mapping, &bytes);
                }
                import(&mapping, &text.as_bytes()[..at]);
            }
        }
    }
}
