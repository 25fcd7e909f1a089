//! Files of other versions: every past one opens, a newer one can be read.
//!
//! `fixtures/store/v<format>.sqlite` was written by the program of its time and is never written
//! again; a new format adds a file, with `write_fixture`.

use std::path::{Path, PathBuf};

use recoup::id::Hash;
use recoup::store::{Store, StoreError};
use recoup::trajectory::Status;
use recoup::verdict::{Content, Label, Producer, Verdict};

use super::{NOW, assert_clean, import, project, rows, run};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store")
}

/// A project folder with a copy of a file in it.
fn copied(file: &Path) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::copy(file, dir.path().join("store.sqlite")).unwrap();
    dir
}

#[test]
fn every_past_format_opens_and_goes_on() {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let dir = copied(&file);
        let mut store = Store::open(dir.path()).unwrap();
        assert_clean(&store);
        let listed = rows(&store);
        assert_eq!(listed.iter().map(|row| row.outcome.as_str()).collect::<Vec<_>>(), ["success", "failure"]);
        assert_eq!(store.load(listed[1].id).unwrap().nodes.len(), 4);
        assert!(store.replies().unwrap().get(&Hash::of(b"nobody asked"), None).unwrap().is_none());
        let again = import(&mut store, [run("first", &["q", "a"]), run("new", &["q", "a"])]);
        assert_eq!((again.counts.duplicates, again.counts.new), (1, 1), "{}", file.display());
    }
}

#[test]
fn a_newer_file_is_read_and_not_written() {
    let (_dir, mut store) = project();
    import(&mut store, [run("first", &["q", "a"])]);
    let dir = store.dir().to_owned();
    drop(store);
    claim_version(&dir.join("store.sqlite"), 999);
    let mut store = Store::create_or_open(&dir).unwrap();
    let id = rows(&store)[0].id;
    assert_eq!(store.load(id).unwrap().nodes.len(), 2);
    assert_clean(&store);
    assert!(matches!(store.import(NOW).err(), Some(StoreError::Newer { found: 999, .. })));
    assert!(matches!(store.put_verdicts(&[label(id)]), Err(StoreError::Newer { .. })));
    assert!(matches!(store.forget(&[id]), Err(StoreError::Newer { .. })));
    assert!(store.gc().unwrap_err().to_string().contains("update the program"));
}

#[test]
fn a_file_that_is_no_database_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("store.sqlite"),
        "not a database, but long enough to be looked at".repeat(50),
    )
    .unwrap();
    assert!(matches!(Store::open(dir.path()), Err(StoreError::Corrupt(_))));
}

#[test]
fn damage_is_found() {
    let (_dir, mut store) = project();
    import(&mut store, (0..20).map(|i| run(&format!("run-{i}"), &["q", &format!("the answer {i}")])));
    let file = store.dir().join("store.sqlite");
    assert_clean(&store);
    let outside = rusqlite::Connection::open(&file).unwrap();
    for (damage, repair) in [
        (
            "UPDATE blob SET offset = offset + 1 WHERE id = 3",
            "UPDATE blob SET offset = offset - 1 WHERE id = 3",
        ),
        (
            "UPDATE node SET parent = parent + 2 WHERE id = 4",
            "UPDATE node SET parent = parent - 2 WHERE id = 4",
        ),
        ("UPDATE trajectory SET latest = 0 WHERE seq = 1", "UPDATE trajectory SET latest = 1 WHERE seq = 1"),
        ("UPDATE verdict SET subject = 99 WHERE seq = 1", "UPDATE verdict SET subject = 1 WHERE seq = 1"),
    ] {
        outside.execute(damage, []).unwrap();
        assert!(!store.verify(&mut |_, _| {}).unwrap().is_clean(), "{damage}");
        outside.execute(repair, []).unwrap();
    }
    assert_clean(&store);
    outside.execute("UPDATE pack SET data = substr(data, 2)", []).unwrap();
    let store = Store::open(store.dir()).unwrap();
    assert!(!store.verify(&mut |_, _| {}).unwrap().is_clean());
    assert!(matches!(store.load(rows(&store)[0].id), Err(StoreError::Corrupt(_))));
}

/// Sets the format that a file claims.
fn claim_version(file: &Path, version: i64) {
    rusqlite::Connection::open(file).unwrap().pragma_update(None, "user_version", version).unwrap();
}

fn label(id: recoup::id::TrajectoryId) -> Verdict {
    let content = Content::Label(Label { outcome: Some(Status::Success), ..Label::default() });
    Verdict::new(id, Producer::person(), Vec::new(), content, NOW)
}

/// Writes the fixture of the present format, once a format, where `RECOUP_WRITE_FIXTURES` is set.
#[test]
fn write_fixture() {
    if std::env::var_os("RECOUP_WRITE_FIXTURES").is_none() {
        return;
    }
    let (_dir, mut store) = project();
    import(&mut store, [run("first", &["q", "a"]), run("second", &["q", "b", "c", "d"])]);
    let first = rows(&store)[0].id;
    store.put_verdicts(&[label(first)]).unwrap();
    store.replies().unwrap().put(&super::replies::reply(&Hash::of(b"question"), Some(first))).unwrap();
    store.forget(&[]).unwrap();
    let file = store.dir().join("store.sqlite");
    let connection = rusqlite::Connection::open(&file).unwrap();
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    std::fs::create_dir_all(fixtures()).unwrap();
    std::fs::copy(&file, fixtures().join(format!("v{version}.sqlite"))).unwrap();
}
