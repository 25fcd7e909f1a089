//! What must hold for any bytes at all. The fuzzer looks for bytes for which it does not (`fuzz/`); the
//! cases it once found are kept and run again by `fuzz_cases.rs`. Each function panics on a violation.

use std::sync::Arc;

use recoup::canonical::{CanonicalError, canonicalize};
use recoup::importers::slice::{Records, header};
use recoup::importers::{Event, IMPORTERS, ImportOptions, Importer, Layout, Source, detect};
use recoup::trajectory::Trajectory;
use serde_json::Value;

/// First byte of an `importers` case that leaves the choice of importer to detection.
pub const DETECT: u8 = 0xff;

const LAYOUTS: [Layout; 5] = [
    Layout::Lines,
    Layout::Document,
    Layout::Elements(&[]),
    Layout::Elements(&["samples"]),
    Layout::Elements(&["a", "b"]),
];

/// The slicer ends; every record's span lies in the input, holds its bytes and follows the one before; the
/// elements of a valid array are the array's elements.
pub fn slicer(bytes: &[u8]) {
    for record_bytes_max in [ImportOptions::default().record_bytes_max, 16] {
        let source = source(bytes, record_bytes_max);
        for layout in LAYOUTS {
            slice(bytes, &source, layout);
        }
        table(bytes, &source);
        for path in [["samples"].as_slice(), &["a", "b"]] {
            let _ = header(&source, path);
        }
    }
    if let Ok(Value::Array(elements)) = serde_json::from_slice(bytes) {
        let source = source(bytes, ImportOptions::default().record_bytes_max);
        let sliced: Vec<Value> = Records::new(&source, Layout::Elements(&[]))
            .unwrap()
            .map(|item| item.unwrap().expect("an element of a valid array").parse().unwrap())
            .collect();
        assert_eq!(sliced, elements);
    }
}

/// A table ends, and each of its rows is an object.
fn table(bytes: &[u8], source: &Source) {
    let Ok(rows) = Records::new(source, Layout::Table) else { return };
    for (count, item) in rows.enumerate() {
        assert!(count <= bytes.len(), "a table gives more rows than bytes");
        let Ok(Ok(record)) = item else { continue };
        let row: Result<Value, _> = record.parse();
        assert!(row.as_ref().is_ok_and(Value::is_object), "{row:?}");
    }
}

fn slice(bytes: &[u8], source: &Source, layout: Layout) {
    let mut last_end = 0;
    for (count, item) in Records::new(source, layout).unwrap().enumerate() {
        assert!(count <= bytes.len(), "{layout:?} gives more records than bytes");
        match item.unwrap() {
            Ok(record) => {
                assert!(record.span.start >= last_end, "{layout:?}: records overlap");
                last_end = record.span.end;
                let range = record.span.start as usize..record.span.end as usize;
                let there = bytes.get(range).expect("a span within the input");
                if record.losses.is_empty() {
                    assert_eq!(record.bytes, there, "{layout:?}");
                }
            }
            Err(quarantine) => {
                let span = quarantine.span.expect("a span");
                assert!(span.start <= span.end && span.end <= bytes.len() as u64, "{layout:?}: {span:?}");
            }
        }
    }
}

/// A value apart from the order of keys and the spelling of doubles, which `serde_json` keeps where
/// packages are compiled in.
pub fn meaning(mut value: Value) -> Value {
    fn respell(value: &mut Value) {
        match value {
            Value::Number(number) if number.is_f64() => {
                *value = number.as_f64().map_or(Value::Null, Value::from);
            }
            Value::Array(items) => items.iter_mut().for_each(respell),
            Value::Object(members) => members.values_mut().for_each(respell),
            _ => {}
        }
    }
    value.sort_all_objects();
    respell(&mut value);
    value
}

/// Canonical bytes are their own canonical form and mean what the text means.
pub fn canonical(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parsed: Option<Value> = serde_json::from_str(text).ok();
    match canonicalize(text) {
        Ok(once) => {
            assert_eq!(canonicalize(&once).as_ref(), Ok(&once));
            // serde_json reads the integer -0 as a double.
            if let (Some(value), false) = (parsed, text.contains("-0")) {
                let back: Value = serde_json::from_str(&once).expect("canonical JSON is JSON");
                assert_eq!(meaning(back), meaning(value));
            }
        }
        Err(CanonicalError::Syntax { at, .. }) => {
            assert!(at <= text.len());
            assert!(parsed.is_none(), "serde_json reads what is refused as no JSON");
        }
        Err(_) => {}
    }
}

/// An importer ends, and every run that it emits reads back with the id it was given. The first byte chooses
/// the importer, the rest is the file. The order is that of the formats' names, which a script that fills
/// the corpus knows from the names of the fixtures' folders.
pub fn importers(bytes: &[u8]) {
    let Some((&choice, file)) = bytes.split_first() else { return };
    let source = source(file, 1 << 20);
    let importer = match choice {
        // A file that cannot be looked at is an error, which is an answer.
        DETECT => detect(&source).unwrap_or_default(),
        choice => {
            let by_name = by_name();
            by_name.get(usize::from(choice) % by_name.len()).copied()
        }
    };
    if let Some(importer) = importer {
        import_holds(importer, &source);
    }
}

fn by_name() -> Vec<&'static dyn Importer> {
    let mut by_name = IMPORTERS.to_vec();
    by_name.sort_by_key(|importer| importer.format());
    by_name
}

/// The first byte that means a format.
pub fn choice_of(format: &str) -> Option<u8> {
    by_name().iter().position(|importer| importer.format() == format)?.try_into().ok()
}

/// The same for detection and every importer, whatever the first byte: a case is kept for all of them, and
/// its byte means another importer once there is a new one.
pub fn all_importers(bytes: &[u8]) {
    let file = bytes.get(1..).unwrap_or_default();
    let _ = detect(&source(file, 1 << 20));
    for importer in IMPORTERS {
        import_holds(*importer, &source(file, 1 << 20));
    }
}

/// What `importers` says of one importer and one file; how many records it refused.
pub fn import_holds(importer: &dyn Importer, source: &Source) -> usize {
    let mut events: Vec<Event> = Vec::new();
    let mut refused = 0;
    // A file that cannot be read at all is an error, which is an answer.
    if let Err(error) = importer.import(source, &mut events) {
        assert!(!error.to_string().is_empty());
        refused += 1;
    }
    for event in events {
        if let Event::Quarantine(entry) = &event {
            assert!(!entry.code.is_empty() && !entry.reason.is_empty());
            refused += 1;
        }
        let Event::Trajectory(sealed) = event else { continue };
        let bodies: Vec<_> =
            sealed.bodies.iter().map(|body| (body.hash, body.bytes.clone().into_bytes())).collect();
        let back = Trajectory::unseal(&sealed.record, sealed.head.source.clone(), sealed.head.key, &bodies)
            .expect("a sealed run reads back");
        assert_eq!(back.id, sealed.head.id, "{}", importer.format());
        assert_eq!(back.nodes.len(), sealed.bodies.len());
        back.check().expect("the invariants of a trajectory");
    }
    refused
}

fn source(bytes: &[u8], record_bytes_max: u64) -> Source {
    let options = ImportOptions {
        record_bytes_max,
        threads: 1,
        decompressed_bytes_max: 8 << 20,
        members_max: 64,
        ..ImportOptions::default()
    };
    Source::from_bytes("case", bytes, Arc::new(options))
}
