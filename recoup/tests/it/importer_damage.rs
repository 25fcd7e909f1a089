//! Damaged files: whatever stands in them, an importer comes to an end and says what it left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::importers::{Event, IMPORTERS, ImportOptions, Source};

/// Files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Bytes with one of: an end too early, a byte changed, a stretch doubled or left out.
fn damage(bytes: &[u8], round: u64) -> Vec<u8> {
    let mut state = round.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    let mut damaged = bytes.to_vec();
    let at = next(bytes.len());
    let end = (at + 1 + next(40)).min(bytes.len());
    match round % 4 {
        0 => damaged.truncate(at),
        1 => damaged[at] = b"{}[]\",:0n\\\x00\xff"[next(12)],
        2 => drop(damaged.drain(at..end)),
        _ => damaged.splice(at..at, bytes[at..end].iter().copied()).for_each(drop),
    }
    damaged
}

#[test]
fn damaged_fixtures_come_to_an_end() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let options = Arc::new(ImportOptions { threads: 1, ..ImportOptions::default() });
    for path in files(&root) {
        let format = path.strip_prefix(&root).unwrap().iter().next().unwrap().to_string_lossy();
        let name = path.file_name().unwrap().to_string_lossy();
        let importer = IMPORTERS.iter().find(|importer| importer.format() == format);
        let Some(importer) = importer.filter(|_| !name.ends_with(".snap")) else { continue };
        let bytes = fs::read(&path).unwrap();
        for round in 0..150 {
            let source = Source::from_bytes(&*name, damage(&bytes, round), options.clone());
            let mut events: Vec<Event> = Vec::new();
            // A file that cannot be read at all is an error, never a panic.
            let _ = importer.import(&source, &mut events);
        }
    }
}

/// A line larger than what a probe sees does not make the file one document.
#[test]
fn lines_may_be_larger_than_the_probe() {
    let long = "word ".repeat(400_000);
    let line = format!("{{\"messages\":[{{\"role\":\"user\",\"content\":\"{long}\"}}]}}\n");
    let source = Source::from_bytes("big.jsonl", line.repeat(2).into_bytes(), Arc::default());
    let importer = recoup::importers::detect(&source).unwrap().expect("a chat file");
    let mut events: Vec<Event> = Vec::new();
    importer.import(&source, &mut events).unwrap();
    assert_eq!(events.iter().filter(|event| matches!(event, Event::Trajectory(_))).count(), 2);
}
