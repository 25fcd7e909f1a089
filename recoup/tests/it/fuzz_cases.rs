//! Inputs that a fuzzer found or that a person feared: `fixtures/fuzz/<target>/*`, each run again through
//! the property of its target. A new case is a file, no code.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use crate::fuzz_properties::{all_importers, canonical, choice_of, importers, slicer};

fn replay(target: &str, property: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/fuzz").join(target);
    let mut cases: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    assert!(!cases.is_empty(), "no cases in {}", folder.display());
    let failed: Vec<_> = cases
        .iter()
        .filter(|case| {
            let bytes = fs::read(case).unwrap();
            catch_unwind(AssertUnwindSafe(|| property(&bytes))).is_err()
        })
        .collect();
    assert!(failed.is_empty(), "{target} fails on {failed:?}");
}

#[test]
fn slicer_cases_hold() {
    replay("slicer", slicer);
}

#[test]
fn canonical_cases_hold() {
    replay("canonical", canonical);
}

#[test]
fn importer_cases_hold() {
    replay("importers", |bytes| {
        importers(bytes);
        all_importers(bytes);
    });
}

#[test]
fn a_formats_byte_is_the_place_of_its_fixtures() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    let entries = fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.file_type().unwrap().is_dir());
    let mut names: Vec<_> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "writers");
    names.sort();
    for (place, name) in names.iter().enumerate() {
        assert_eq!(choice_of(name).map(usize::from), Some(place), "{name}");
    }
}
