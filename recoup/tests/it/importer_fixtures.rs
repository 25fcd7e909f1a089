//! Every `fixtures/importers/<format>/<case>/` holds `input.*` (a file or a folder) and the snapshot
//! `expected.snap` of what it normalizes to. A new case is a folder, no code.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use recoup::importers::IMPORTERS;

use crate::harness::{Imported, import};

#[test]
fn every_fixture_normalizes_to_its_snapshot() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers");
    // The fuzzer counts importers by the names of these folders.
    let mut formats: Vec<&str> = IMPORTERS.iter().map(|importer| importer.format()).collect();
    formats.sort_unstable();
    let named: Vec<PathBuf> = formats.iter().map(|format| root.join(format)).collect();
    assert_eq!(formats_of(&root), named, "every importer has a folder of fixtures");
    let mut cases = 0;
    for format in formats_of(&root) {
        for case in folders(&format) {
            let input = fs::read_dir(&case)
                .unwrap()
                .map(|entry| entry.unwrap().path())
                .find(|path| path.file_name().unwrap().to_string_lossy().starts_with("input"))
                .unwrap_or_else(|| panic!("no input.* in {}", case.display()));
            if cfg!(not(feature = "parquet")) && input.extension().is_some_and(|kind| kind == "parquet") {
                continue;
            }
            let imported = import(&[&input]);
            let format_name = format.file_name().unwrap().to_string_lossy();
            for run in imported.trajectories() {
                assert_eq!(run.source.format, format_name, "{}", input.display());
            }
            insta::with_settings!({
                snapshot_path => &case,
                prepend_module_to_snapshot => false,
                omit_expression => true,
            }, {
                insta::assert_snapshot!("expected", render(&imported, &root));
            });
            cases += 1;
        }
    }
    assert!(cases > 0, "no fixtures under {}", root.display());
}

/// The formats' folders; `writers` holds the scripts that made some of the inputs.
fn formats_of(root: &Path) -> Vec<PathBuf> {
    folders(root).into_iter().filter(|folder| !folder.ends_with("writers")).collect()
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    // The scripts that made the `scripted-run` cases.
    paths.retain(|path| path.file_name().is_some_and(|name| name != "writers"));
    paths.sort();
    paths
}

/// Runs as pretty JSON, then labels, losses and quarantined records, one a line.
fn render(imported: &Imported, root: &Path) -> String {
    let mut out = String::new();
    for (run, labels) in &imported.runs {
        let _ = writeln!(out, "{}", serde_json::to_string_pretty(run).unwrap());
        for label in labels {
            let _ = writeln!(out, "label: {}", serde_json::to_string(label).unwrap());
        }
    }
    for label in &imported.labels {
        let _ = writeln!(out, "loose label: {} {}", label.run, serde_json::to_string(&label.label).unwrap());
    }
    for (loss, count) in &imported.losses {
        let _ = writeln!(out, "loss: {} × {} ({})", count, loss.field, loss.reason);
    }
    for entry in &imported.quarantined {
        let _ = writeln!(out, "quarantined: {}", serde_json::to_string(entry).unwrap());
    }
    for uri in &imported.unrecognized {
        let _ = writeln!(out, "unrecognized: {uri}");
    }
    out.replace(&*root.to_string_lossy(), "[fixtures]")
}
