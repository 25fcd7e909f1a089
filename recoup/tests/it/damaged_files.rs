//! Every fixture, cut short or with bytes changed, is read by the importer that recognizes it and by all
//! others without a panic: what cannot be read is an event or an error.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use recoup::importers::{Event, IMPORTERS, ImportOptions, Source};

/// Files beyond this size only take time here.
const SIZE_MAX: usize = 16 << 10;

#[test]
fn damaged_fixtures_never_panic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let options = Arc::new(ImportOptions { threads: 1, ..ImportOptions::default() });
    let (mut read, mut events) = (0, 0);
    for path in files(&root) {
        let bytes = fs::read(&path).unwrap();
        if bytes.len() > SIZE_MAX {
            continue;
        }
        for damaged in damaged(&bytes) {
            let source = Source::from_bytes(path.to_string_lossy(), damaged, options.clone());
            for importer in IMPORTERS {
                let mut sink: Vec<Event> = Vec::new();
                if importer.import(&source, &mut sink).is_ok() {
                    events += sink.len();
                }
                read += 1;
            }
        }
    }
    assert!(read > 100 && events > 100, "{read} readings gave {events} events");
}

/// A few cuts and changes of a file, the same on every run.
fn damaged(bytes: &[u8]) -> Vec<Vec<u8>> {
    const STRANGE: [u8; 8] = [0, b'"', b'{', b']', b'\\', b'\n', b'9', 0xff];
    let mut state = bytes.len() as u64;
    let mut next = move |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below.max(1)
    };
    let mut all = vec![bytes.to_vec()];
    for _ in 0..3 {
        all.push(bytes[..next(bytes.len())].to_vec());
        let mut changed = bytes.to_vec();
        for _ in 0..3 {
            if let Some(byte) = changed.get_mut(next(bytes.len())) {
                *byte = STRANGE[next(STRANGE.len())];
            }
        }
        all.push(changed);
    }
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect();
    paths.sort();
    paths
}
