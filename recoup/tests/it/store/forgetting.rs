//! Forgetting leaves no byte; collecting garbage loses none.

use std::path::Path;

use recoup::store::Filter;
use recoup::trajectory::Citation;
use recoup::verdict::{Content, Diagnosis, Producer, Quote, Verdict};

use super::{NOW, assert_clean, holds, holds_bytes, import, project, rows, run};

/// Text that stands as it is in rows; in packs it is compressed.
const SECRET: &str = "zq7-vex9-0kd3-jw81-hh2p-tr5m";

/// The compressed bytes of every pack.
fn packs(dir: &Path) -> Vec<Vec<u8>> {
    let connection = rusqlite::Connection::open(dir.join("store.sqlite")).unwrap();
    let mut statement = connection.prepare("SELECT data FROM pack").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_forgotten_run_leaves_no_byte() {
    let (_dir, mut store) = project();
    let (public, long) = ("a public text of another run", SECRET.repeat(20));
    import(
        &mut store,
        [run("kept", &["shared question", public]), run("gone", &["shared question", SECRET, &long])],
    );
    import(&mut store, [run("gone", &["shared question", SECRET, &long, "and more"])]);
    let gone = rows(&store).into_iter().find(|row| row.native_id.as_deref() == Some("gone")).unwrap().id;
    let at = Citation { node: 1, part_path: vec![0], start: 0, end: SECRET.len() };
    let content = Content::Diagnosis(Diagnosis {
        decisive_node: 1,
        responsible_agent: "assistant".to_owned(),
        explanation: String::new(),
        citations: vec![Quote { at, quote: SECRET.to_owned() }],
        candidate: None,
        rank: 0,
        findings: Vec::new(),
        admitted: true,
        suspected: false,
    });
    store.put_verdicts(&[Verdict::new(gone, Producer::rules("d", 1), Vec::new(), content, NOW)]).unwrap();
    std::fs::write(store.dir().join("store.sqlite.v0.backup"), SECRET).unwrap();
    assert!(holds(store.dir(), SECRET), "the search can find it");
    let packs = packs(store.dir());
    assert!(packs.iter().all(|pack| holds_bytes(store.dir(), pack)));

    let report = store.forget(&[gone]).unwrap();
    assert_eq!(report.trajectories, 2, "with its older revision");
    assert_eq!(report.collected.nodes, 3, "the shared question stays");
    assert!(!holds(store.dir(), SECRET));
    assert!(!packs.iter().any(|pack| holds_bytes(store.dir(), pack)), "each held a part of it");
    assert!(store.search_text(SECRET, 1).unwrap().is_empty());
    let left = rows(&store);
    assert_eq!(left.len(), 1);
    assert_eq!(store.load(left[0].id).unwrap().nodes.len(), 2);
    assert_clean(&store);
    // It may come again.
    assert_eq!(import(&mut store, [run("gone", &["shared question", SECRET])]).counts.new, 1);
    assert_clean(&store);
}

#[test]
fn forgetting_an_unknown_run_forgets_nothing() {
    let (_dir, mut store) = project();
    import(&mut store, [run("a", &["q", "a"])]);
    let known = rows(&store)[0].id;
    let absent = run("absent", &["q"]).head.id;
    assert!(store.forget(&[known, absent]).is_err());
    assert_eq!(store.count(&Filter::default()).unwrap(), 1);
}

#[test]
fn collecting_keeps_all_that_is_referred_to() {
    let (_dir, mut store) = project();
    let page = "page ".repeat(1000);
    import(&mut store, (0..50).map(|i| run(&format!("run-{i}"), &["q", &format!("{i} {page}")])));
    assert_eq!(store.gc().unwrap(), recoup::store::GcReport::default());
    let every_second: Vec<_> = rows(&store).iter().step_by(2).map(|row| row.id).collect();
    store.forget(&every_second).unwrap();
    assert_eq!(rows(&store).len(), 25);
    assert_eq!(store.stats().unwrap().stored_nodes, 26);
    assert_clean(&store);
}
