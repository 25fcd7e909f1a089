//! Kills, company and old files: whatever happens to the process, the project stays whole.
//!
//! The tests start this same test binary as a child that imports generated runs in many small
//! imports, and kill it at seeded instants. A child notes each import that returned; after a kill
//! all of those must be there, and after the last child everything, once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use recoup::store::{Filter, Page, Row, Store};
use recoup::trajectory::Sealed;

use crate::store::{assert_clean, draft, import, run, sealed};

const KILLS: u32 = 200;
/// Imports of a child, and runs in each; the last one takes more than a commit holds.
const IMPORTS: usize = 12;
const RUNS: usize = 20;
const LAST: usize = 1100;

/// How many runs an import holds.
fn count(index: usize) -> usize {
    2 + if index == IMPORTS { LAST } else { RUNS }
}

/// The runs of one import: new tasks, trials of old ones, sessions that grow, a body of its own pack.
fn generated(index: usize) -> Vec<Sealed> {
    let page = "a page that many runs see ".repeat(180);
    let mut runs: Vec<Sealed> = (2..count(index))
        .map(|i| {
            let (task, text) = (format!("task/{}", (index * 7 + i) % 60), format!("answer {i} of {index}"));
            let goal = format!("goal {}", (index + i) % 45);
            sealed(
                &format!("{index}-{i}"),
                draft(&task, &goal, &["the same question", &text, if i < RUNS { &page } else { "thanks" }]),
            )
        })
        .collect();
    let turns: Vec<String> = (0..=index).map(|turn| format!("turn {turn}")).collect();
    runs.push(run("session", &turns.iter().map(String::as_str).collect::<Vec<_>>()));
    runs.push(run(&format!("large-{index}"), &["q", &format!("{index}").repeat(270 << 10)]));
    runs
}

/// What a child does: every import from the first, noting those that returned. It is started by the
/// tests below, in a process of its own; without their variable there is nothing to do.
#[test]
fn child() {
    let Some(dir) = std::env::var_os("RECOUP_CRASH_DIR").map(PathBuf::from) else { return };
    let mut store = Store::create_or_open(&dir.join("project")).unwrap();
    for index in 0..=IMPORTS {
        import(&mut store, generated(index));
        std::fs::write(dir.join("returned"), (index + 1).to_string()).unwrap();
    }
}

fn spawn(dir: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash::child", "--test-threads=1"])
        .env("RECOUP_CRASH_DIR", dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Everything that listing shows, with every revision.
fn all(store: &Store) -> Vec<Row> {
    store.list(&Filter { all_revisions: true, ..Filter::default() }, Page::ALL).unwrap()
}

/// The project that an undisturbed process makes.
fn undisturbed() -> Vec<Row> {
    let (_dir, mut store) = crate::store::project();
    (0..=IMPORTS).for_each(|index| drop(import(&mut store, generated(index))));
    all(&store)
}

#[test]
fn killing_it_at_any_instant_loses_and_doubles_nothing() {
    let expected = undisturbed();
    let mut dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    assert!(spawn(dir.path()).wait().unwrap().success());
    let whole = start.elapsed();
    assert_eq!(all(&Store::open(&dir.path().join("project")).unwrap()), expected);

    let (mut state, mut finished, mut killed) = (7_u64, 0, 0);
    dir = tempfile::tempdir().unwrap();
    while killed < KILLS {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut child = spawn(dir.path());
        // Most kills come early in a process, so that many are needed to get through.
        let fraction = (state >> 40) as f64 / f64::from(1 << 24);
        std::thread::sleep(whole.mul_f64(fraction * 0.6).min(Duration::from_millis(400)));
        child.kill().unwrap();
        let done = child.wait().unwrap().success();
        killed += u32::from(!done);
        let Ok(store) = Store::open(&dir.path().join("project")) else {
            assert!(!dir.path().join("returned").exists());
            continue;
        };
        let returned: usize = std::fs::read_to_string(dir.path().join("returned"))
            .map_or(0, |text| text.parse().unwrap_or_default());
        let found = all(&store).len();
        let least: usize = (0..returned).map(count).sum();
        assert!(found >= least, "{found} runs of at least {least} after kill {killed}");
        if killed.is_multiple_of(20) {
            assert_clean(&store);
        }
        if done {
            assert_eq!(all(&store), expected);
            finished += 1;
            dir = tempfile::tempdir().unwrap();
        }
    }
    assert!(spawn(dir.path()).wait().unwrap().success());
    let store = Store::open(&dir.path().join("project")).unwrap();
    assert_clean(&store);
    assert_eq!(all(&store), expected);
    assert!(finished < KILLS, "no process was killed before its end");
}

#[test]
fn two_processes_import_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut children = [spawn(dir.path()), spawn(dir.path())];
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let store = Store::open(&dir.path().join("project")).unwrap();
    assert_clean(&store);
    // Which of the two brought a run first is open; that it is there once is not.
    let ids = |rows: Vec<Row>| {
        let mut counts = BTreeMap::new();
        for row in rows {
            *counts.entry((row.id, row.superseded)).or_insert(0) += 1;
        }
        counts
    };
    assert_eq!(ids(all(&store)), ids(undisturbed()));
}
