//! The store: what goes in comes out, once, on one side, and can be taken back.

mod forgetting;
mod formats;
mod importing;
mod listing;
mod replies;
mod splitting;
mod verdicts;

use std::path::Path;

use recoup::importers::{Event, Sink as _};
use recoup::store::{Filter, Import, ImportSummary, Page, Store};
use recoup::task::Task;
use recoup::trajectory::{NativeId, Node, Outcome, Part, Role, Sealed, Trajectory};

pub const NOW: &str = "2026-01-01T00:00:00Z";

/// A run of alternating user and assistant messages.
pub fn draft(task: &str, goal: &str, texts: &[&str]) -> Trajectory {
    let mut run = Trajectory::new("test", Task::named(task, goal));
    run.source.uri.push_str("runs.jsonl");
    for (index, text) in texts.iter().enumerate() {
        let node = if index % 2 == 0 {
            Node::new(Role::User, "user", vec![Part::text(*text)])
        } else {
            Node::new(Role::Assistant, "assistant", vec![Part::text(*text)]).sampled()
        };
        run.push(node);
    }
    run.finish(Outcome::from_score(0.0, 1.0, "reward"));
    run
}

pub fn sealed(native: &str, draft: Trajectory) -> Sealed {
    draft.seal(&NativeId::Named(native.to_owned()), Vec::new()).unwrap()
}

/// A run that is named like its task.
pub fn run(native: &str, texts: &[&str]) -> Sealed {
    sealed(native, draft(&format!("task/{native}"), "", texts))
}

pub fn put(import: &mut Import<'_>, sealed: Sealed) {
    import.event(Event::Trajectory(Box::new(sealed))).unwrap();
}

/// Imports runs in one import.
pub fn import(store: &mut Store, runs: impl IntoIterator<Item = Sealed>) -> ImportSummary {
    let mut import = store.import(NOW).unwrap();
    for run in runs {
        put(&mut import, run);
    }
    import.finish().unwrap()
}

pub fn project() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create_or_open(&dir.path().join("project")).unwrap();
    (dir, store)
}

pub fn rows(store: &Store) -> Vec<recoup::store::Row> {
    store.list(&Filter { continuations: true, ..Filter::default() }, Page::ALL).unwrap()
}

pub fn assert_clean(store: &Store) {
    let report = store.verify(&mut |_, _| {}).unwrap();
    assert!(report.is_clean(), "{:#?}", report.problems);
    assert_eq!(report.unreferenced_nodes, 0);
}

/// Whether any file of a project holds a text as it is.
pub fn holds(dir: &Path, needle: &str) -> bool {
    holds_bytes(dir, needle.as_bytes())
}

/// Whether any file of a project holds some bytes.
pub fn holds_bytes(dir: &Path, needle: &[u8]) -> bool {
    std::fs::read_dir(dir).unwrap().any(|entry| {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        bytes.windows(needle.len()).any(|window| window == needle)
    })
}
