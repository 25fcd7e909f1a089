//! Tables: rows of Parquet and CSV, damaged and whole.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::importers::{Event, ImportError, ImportOptions, Source, detect};

fn fixture(name: &str) -> Vec<u8> {
    let root: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    std::fs::read(root.join(name)).unwrap()
}

fn source(bytes: Vec<u8>, options: ImportOptions) -> Source {
    Source::from_bytes("runs.parquet", bytes, Arc::new(options))
}

/// Runs read, and the reasons of what was quarantined.
fn read(bytes: Vec<u8>, options: ImportOptions) -> (usize, Vec<String>) {
    let source = source(bytes, options);
    let importer = detect(&source).unwrap().expect("rows of runs");
    let mut events: Vec<Event> = Vec::new();
    importer.import(&source, &mut events).unwrap();
    let runs = events.iter().filter(|event| matches!(event, Event::Trajectory(_))).count();
    let reasons = events.into_iter().filter_map(|event| match event {
        Event::Quarantine(quarantine) => Some(quarantine.reason),
        _ => None,
    });
    (runs, reasons.collect())
}

#[test]
#[cfg(not(feature = "parquet"))]
fn a_build_without_parquet_says_so() {
    let source = source(fixture("openai-chat/parquet/input.parquet"), ImportOptions::default());
    let Err(ImportError::Unreadable { code, reason, .. }) = detect(&source) else { panic!("detected") };
    assert_eq!(code, "unsupported");
    assert!(reason.contains("hint: build recoup with the feature `parquet`"), "{reason}");
}

#[test]
#[cfg(feature = "parquet")]
fn what_is_no_whole_file_is_refused_in_words() {
    let whole = fixture("openai-chat/parquet/input.parquet");
    let refused = |bytes: Vec<u8>| match detect(&source(bytes, ImportOptions::default())) {
        Err(ImportError::Unreadable { code: "bad-parquet", reason, .. }) => reason,
        other => panic!("{:?}", other.map(|found| found.map(recoup::importers::Importer::format))),
    };
    assert!(refused(whole[..whole.len() - 1].to_vec()).contains("its end is missing"));
    assert!(refused(b"PAR1".to_vec()).contains("too short"));
    let mut encrypted = whole.clone();
    let end = encrypted.len();
    encrypted[end - 1] = b'E';
    assert!(refused(encrypted).contains("encrypted"));
    let mut long = whole;
    let end = long.len();
    long[end - 5] = 0x7f;
    assert!(refused(long).contains("longer than itself"));
}

#[test]
#[cfg(feature = "parquet")]
fn a_damaged_row_group_costs_its_own_rows_only() {
    let mut bytes = fixture("openai-chat/parquet/input.parquet");
    // The third run's id, in the second row group: its length becomes more than there is.
    let id = b"\x05\0\0\0run-2";
    let at = bytes.windows(id.len()).position(|window| window == id).expect("plain ids");
    bytes[at..at + 4].copy_from_slice(&[0xff; 4]);
    let (runs, reasons) = read(bytes, ImportOptions::default());
    assert_eq!(runs, 2);
    let [reason] = reasons.as_slice() else { panic!("{reasons:?}") };
    assert!(reason.starts_with("row 3: the columns cannot be read: "), "{reason}");
}

#[test]
#[cfg(feature = "parquet")]
fn a_row_larger_than_allowed_is_passed_over() {
    let options = ImportOptions { record_bytes_max: 300, ..ImportOptions::default() };
    let source = source(fixture("openai-chat/parquet/input.parquet"), options);
    let mut events: Vec<Event> = Vec::new();
    let chat = recoup::importers::IMPORTERS.iter().find(|importer| importer.format() == "openai-chat");
    chat.unwrap().import(&source, &mut events).unwrap();
    let large = events.iter().filter(|event| match event {
        Event::Quarantine(quarantine) => quarantine.reason.contains("larger than 300 bytes"),
        _ => false,
    });
    assert_eq!(large.count(), 3);
}

#[test]
fn rows_with_an_opened_quote_end_the_file_and_nothing_before_it() {
    let text = "id,messages\n1,\"[{\"\"role\"\":\"\"user\"\",\"\"content\"\":\"\"hi\"\"}]\"\n2,\"[{never closed\n3,x\n";
    let (runs, reasons) = read(text.as_bytes().to_vec(), ImportOptions::default());
    assert_eq!(runs, 1);
    assert_eq!(reasons.len(), 1, "{reasons:?}");
}
