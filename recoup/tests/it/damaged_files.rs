//! Damaged files: every fixture with an end too early, bytes changed, a stretch doubled or left out, read by
//! its own importer many times and by every other one. Nothing panics or goes on forever, what is refused
//! says why, and what is accepted is a sound run.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use recoup::importers::{IMPORTERS, ImportOptions, Source};

use crate::fuzz_properties::import_holds;

/// Ways to damage a file that its own importer reads.
const OWN_ROUNDS: u64 = 96;
/// Ways to damage it that every other importer reads.
const OTHER_ROUNDS: u64 = 4;

#[test]
fn damaged_fixtures_are_read_or_refused_in_words() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let options = Arc::new(ImportOptions { threads: 1, ..ImportOptions::default() });
    let (mut files, mut refused) = (0, 0);
    for entry in walkdir::WalkDir::new(&root).sort_by_file_name() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if !entry.file_type().is_file() || name == "expected.snap" {
            continue;
        }
        let format = entry.path().strip_prefix(&root).unwrap().iter().next().unwrap();
        let whole = fs::read(entry.path()).unwrap();
        for round in 0..OWN_ROUNDS {
            let source = Source::from_bytes(&*name, damaged(&whole, round), options.clone());
            for importer in IMPORTERS {
                if importer.format() == format || round < OTHER_ROUNDS {
                    refused += import_holds(*importer, &source);
                }
            }
        }
        files += 1;
    }
    assert!(
        files > 40 && refused > files,
        "{refused} refusals of {files} files: some damage must be noticed"
    );
}

/// A file with one damage, the same on every run: an end too early, a byte that means something else, a
/// stretch left out, a stretch doubled.
fn damaged(whole: &[u8], round: u64) -> Vec<u8> {
    const STRANGE: &[u8; 12] = b"{}[]\",:0n\\\x00\xff";
    let mut state = (whole.len() as u64 + round).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit.max(1) as u64) as usize
    };
    let mut bytes = whole.to_vec();
    let at = below(whole.len());
    let end = (at + 1 + below(40)).min(whole.len());
    match round % 4 {
        0 => bytes.truncate(at),
        1 => bytes[at] = STRANGE[below(STRANGE.len())],
        2 => drop(bytes.drain(at..end)),
        _ => drop(bytes.splice(at..at, whole[at..end].iter().copied())),
    }
    bytes
}
