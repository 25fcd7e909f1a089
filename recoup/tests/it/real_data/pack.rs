//! The whole pack of shared traces at once: every file is read by its own format's importer or by none, and
//! no run is taken for a newer recording of another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use recoup::importers::{IMPORTERS, ImportOptions, Importer, Source, detect, sources_from_paths};
use recoup::store::{Filter, Page};

use crate::harness::shared_data;
use crate::store::{NOW, project};

/// Formats by folder and, where a folder holds two, by the file's path.
const FORMATS: [(&str, &str, &str); 17] = [
    ("adp", "sample_raw.json", "nebius"),
    ("adp", "", "adp"),
    ("claude-code-log", "", "claude-code"),
    ("codex", "", "codex"),
    ("derived_atif", "", "atif"),
    ("inspect_ai", "", "inspect"),
    ("mini-swe-agent", "", "mini-swe-agent"),
    ("openhands", "", "openhands"),
    ("reflexion", ".txt", "react-text"),
    ("reflexion", "", "reflexion"),
    ("swe-agent", "", "swe-agent"),
    ("swe-smith", "", "swe-agent"),
    ("tau-bench", "", "tau-bench"),
    ("tau2", "", "tau2"),
    ("toolbench", "", "toolbench"),
    ("webvoyager", "", "webvoyager"),
    ("who_and_when", "", "who-and-when"),
];

/// What lies beside traces and is none: texts, pictures, settings, predictions, reports, databases.
const BESIDE: [&str; 17] = [
    "LICENSE",
    "LICENSE.md",
    "README.md",
    "SCHEMA.md",
    "SHA256SUMS",
    "SOURCES.md",
    "all_preds.jsonl",
    "args.yaml",
    ".png",
    "expected_counts.json",
    "flights.json",
    "report.json",
    "reservations.json",
    "test_data/results.json",
    "trajectories.md",
    "users.json",
    "wiki.md",
];

fn sources(root: &Path) -> Vec<Source> {
    let paths = [root.to_string_lossy().into_owned()];
    let (sources, problems) = sources_from_paths(&paths, &Arc::new(ImportOptions::default()));
    assert_eq!(problems, []);
    assert!(!sources.is_empty());
    sources
}

#[test]
fn every_file_is_read_by_its_own_importer_or_none() {
    let Some(root) = shared_data("") else { return };
    for source in sources(&root) {
        let folder = source.folder_names().pop().unwrap_or_default();
        let is_beside = BESIDE.iter().any(|name| source.uri().ends_with(name));
        let format = FORMATS.iter().find(|(name, part, _)| *name == folder && source.uri().contains(part));
        let expected = format.filter(|_| !is_beside).map(|(_, _, format)| *format);
        assert_eq!(detect(&source).unwrap().map(Importer::format), expected, "{}", source.uri());
    }
}

/// A bare array of messages is a chat, unless a format that says more of it comes first.
#[test]
fn the_particular_formats_are_asked_before_the_general_one() {
    let place = |format| IMPORTERS.iter().position(|importer| importer.format() == format).unwrap();
    for particular in ["mini-swe-agent", "webvoyager", "tau-bench", "inspect"] {
        assert!(place(particular) < place("openai-chat"), "{particular}");
    }
}

#[test]
fn a_first_import_has_no_revisions() {
    let Some(root) = shared_data("") else { return };
    let (_dir, mut store) = project();
    let mut import = store.import(NOW).unwrap();
    let mut files: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources(&root) {
        if let Some(importer) = detect(&source).unwrap() {
            importer.import(&source, &mut import).unwrap();
            *files.entry(importer.format()).or_default() += 1;
        }
    }
    let summary = import.finish().unwrap();
    let counts = &summary.counts;
    assert_eq!((counts.revisions, counts.duplicates), (0, 0));
    let all = store.list(&Filter { all_revisions: true, ..Filter::default() }, Page::ALL).unwrap();
    assert_eq!((counts.new as usize, all.len()), (all.len(), counts.trajectories as usize));
    // Seven trials of ALFWorld, two of them equal byte for byte, four of WebShop, and the programs.
    let reflexion = all.iter().filter(|row| row.format == "reflexion").count();
    assert_eq!((reflexion, files["reflexion"]), (1692, 12));
}
