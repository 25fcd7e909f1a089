//! Import: once each, revisions beside each other, nothing lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use recoup::id::Hash;
use recoup::importers::{Event, LooseLabel, Sink as _, detect, sources_from_paths};
use recoup::json::Json;
use recoup::store::{Filter, Page, Store, StoreError};
use recoup::task::Task;
use recoup::trajectory::{Leaf, Media, NativeId, Node, Outcome, Part, Role, Sealed, Trajectory};
use recoup::verdict::{Content, ReferenceLabel};
use serde_json::json;

use super::{NOW, assert_clean, draft, import, project, put, rows, run, sealed};

fn unsealed(sealed: &Sealed) -> Trajectory {
    let bodies: Vec<_> =
        sealed.bodies.iter().map(|body| (body.hash, body.bytes.clone().into_bytes())).collect();
    Trajectory::unseal(&sealed.record, sealed.head.source.clone(), sealed.head.key, &bodies).unwrap()
}

#[test]
fn a_run_comes_back_as_it_was() {
    let (_dir, mut store) = project();
    let long = "x".repeat(300 << 10);
    let runs = [run("a", &["hi", "ho"]), run("b", &["hi", &long, "end"]), run("empty", &[])];
    let wanted: Vec<Trajectory> = runs.iter().map(unsealed).collect();
    let summary = import(&mut store, runs);
    assert_eq!((summary.counts.new, summary.counts.nodes, summary.new_nodes), (3, 5, 4));
    for run in wanted {
        assert_eq!(store.load(run.id).unwrap(), run);
    }
    assert_clean(&store);
}

#[test]
fn importing_again_changes_nothing() {
    let (_dir, mut store) = project();
    let runs = || (0..30).map(|i| run(&format!("run-{i}"), &["question", &format!("answer {i}")]));
    import(&mut store, runs());
    let before = rows(&store);
    let summary = import(&mut store, runs());
    assert_eq!((summary.counts.new, summary.counts.duplicates, summary.new_nodes), (0, 30, 0));
    assert_eq!(rows(&store), before);
    // The question is one message, whoever answers.
    assert_eq!(store.stats().unwrap().stored_nodes, 31);
    assert_eq!(store.stats().unwrap().nodes, 60);
}

#[test]
fn a_longer_recording_is_a_revision() {
    let (_dir, mut store) = project();
    let short = run("session", &["hi", "ho"]);
    let long = run("session", &["hi", "ho", "more", "done"]);
    let (short_id, long_id) = (short.head.id, long.head.id);
    import(&mut store, [short.clone()]);
    let summary = import(&mut store, [long.clone()]);
    assert_eq!(summary.counts.revisions, 1);
    assert_eq!(summary.new_nodes, 2, "the common start is stored");
    assert_eq!(rows(&store).iter().map(|row| row.id).collect::<Vec<_>>(), [long_id]);
    let all = store.list(&Filter { all_revisions: true, ..Filter::default() }, Page::ALL).unwrap();
    assert_eq!(all.len(), 2);
    assert!(store.is_stale(short_id).unwrap() && !store.is_stale(long_id).unwrap());
    assert_eq!(store.load(short_id).unwrap(), unsealed(&short));

    // The other way round, the long one stays the latest; in one import, too.
    let (_dir, mut store) = project();
    import(&mut store, [long, short]);
    assert_eq!(rows(&store).iter().map(|row| row.id).collect::<Vec<_>>(), [long_id]);
    assert_clean(&store);
}

#[test]
fn an_id_that_many_runs_bear_is_no_run_id() {
    let (_dir, mut store) = project();
    let runs = || (0..60).map(|index| run("a-task-really", &["solve it", &format!("answer {index}")]));
    assert_eq!(import(&mut store, runs().take(40)).counts.new, 40);
    let summary = import(&mut store, runs().chain(runs()));
    assert_eq!((summary.counts.new, summary.counts.duplicates, summary.counts.revisions), (20, 100, 0));
    assert_eq!(rows(&store).len(), 60);
    assert_clean(&store);
}

#[test]
fn other_content_under_one_id_is_another_run() {
    let (_dir, mut store) = project();
    let runs = || [run("same", &["hi", "ho"]), run("same", &["hello", "there"]), run("same", &["yes", "no"])];
    let summary = import(&mut store, runs());
    assert_eq!((summary.counts.new, summary.counts.revisions), (3, 0));
    assert_eq!(summary.losses.values().sum::<u64>(), 2);
    let before = rows(&store);
    assert_eq!(before.iter().map(|row| row.key).collect::<BTreeSet<_>>().len(), 3);
    let again = import(&mut store, runs().into_iter().rev());
    assert_eq!((again.counts.duplicates, again.losses.len()), (3, 0));
    assert_eq!(rows(&store), before);
    // A numbered run grows like any other.
    let grown = import(&mut store, [run("same", &["hello", "there", "and", "more"])]);
    assert_eq!(grown.counts.revisions, 1);
    assert_eq!(rows(&store).len(), 3);
    assert_clean(&store);
}

#[test]
fn long_bodies_are_stored_once_in_any_context() {
    let (_dir, mut store) = project();
    let page = "a long page ".repeat(1000);
    import(&mut store, [run("a", &["first", &page]), run("b", &["second", &page])]);
    let stats = store.stats().unwrap();
    assert_eq!(stats.stored_nodes, 4);
    assert!(stats.raw_bytes < 2 * page.len() as u64, "{} bytes", stats.raw_bytes);
    assert_clean(&store);
}

/// A tree of messages over few texts, so that prefixes and messages recur in every way.
fn tree(native: &str, state: &mut u64, distinct: &mut BTreeSet<Vec<u64>>) -> Sealed {
    let mut next = |below: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    };
    let mut run = Trajectory::new("test", Task::named(native, ""));
    let mut paths: Vec<Vec<u64>> = Vec::new();
    for position in 0..=next(12) as usize {
        let parent = (position > 0 && next(9) > 0).then(|| next(position as u64) as usize);
        let text = next(3);
        let mut node = Node::new(Role::User, "user", vec![Part::text(format!("text {text}"))]);
        node.parent = parent;
        run.push_under(node);
        let mut path = parent.map(|parent| paths[parent].clone()).unwrap_or_default();
        path.push(text);
        distinct.insert(path.clone());
        paths.push(path);
    }
    let parents: BTreeSet<usize> = run.nodes.iter().filter_map(|node| node.parent).collect();
    run.leaves = (0..run.nodes.len())
        .filter(|position| !parents.contains(position))
        .map(|position| Leaf { node: Some(position), outcome: Outcome::unknown() })
        .collect();
    sealed(native, run)
}

#[test]
fn stored_nodes_are_the_distinct_pairs_of_prefix_and_message() {
    let (_dir, mut store) = project();
    let (mut state, mut distinct, mut new_nodes) = (1, BTreeSet::new(), 0);
    for round in 0..20 {
        let runs: Vec<Sealed> =
            (0..30).map(|i| tree(&format!("{round}-{i}"), &mut state, &mut distinct)).collect();
        new_nodes += import(&mut store, runs).new_nodes;
        assert_eq!(new_nodes, distinct.len() as u64, "after round {round}");
    }
    let stats = store.stats().unwrap();
    assert_eq!(stats.stored_nodes, distinct.len() as u64);
    assert!(stats.dedup_ratio > 1.5, "{}", stats.dedup_ratio);
    assert_clean(&store);
}

#[test]
fn a_label_that_comes_with_a_known_run_is_kept() {
    let (_dir, mut store) = project();
    let mut labeled = run("a", &["q", "a"]);
    import(&mut store, [labeled.clone()]);
    labeled.labels.push(ReferenceLabel {
        source: "bench".to_owned(),
        index_base: 0,
        native: Json::string("1"),
        node: Some(1),
        agent: None,
        reason: None,
    });
    for _ in 0..2 {
        assert_eq!(import(&mut store, [labeled.clone()]).counts.duplicates, 1);
        assert!(store.current(labeled.head.id, "reference_label").unwrap().is_some());
        assert_eq!(store.verdicts(labeled.head.id).unwrap().len(), 2);
    }
}

#[test]
fn media_are_kept_by_hash() {
    let (_dir, mut store) = project();
    let picture = b"\x89PNG not really".to_vec();
    let hash = Hash::of(&picture);
    let mut draft = draft("t", "", &["look", "a picture"]);
    draft.nodes[0].parts.push(Part::Media(Media {
        mime: "image/png".to_owned(),
        blob: Some(hash),
        reference: None,
    }));
    draft.media.insert(hash, picture.clone());
    import(&mut store, [sealed("a", draft)]);
    assert_eq!(store.media(hash).unwrap(), Some(picture));
    assert_eq!(store.media(Hash::of(b"other")).unwrap(), None);
    assert_clean(&store);
}

#[test]
fn a_loose_label_finds_its_run_before_or_after() {
    let label = |run: &str, step: &str| {
        Event::Label(LooseLabel {
            run: run.to_owned(),
            label: ReferenceLabel {
                source: "bench".to_owned(),
                index_base: 1,
                native: Json::parse(&format!("{{\"step_number\":{step}}}")).unwrap(),
                node: None,
                agent: None,
                reason: None,
            },
        })
    };
    let (_dir, mut store) = project();
    let mut first = store.import(NOW).unwrap();
    first.event(label("late", "2")).unwrap();
    first.event(label("7", "1")).unwrap();
    first.finish().unwrap();
    let by_task = sealed("other", draft("bench/retail/7", "", &["q", "a"]));
    let (late_id, task_id) = (run("late", &["q", "a"]).head.id, by_task.head.id);
    import(&mut store, [run("late", &["q", "a"]), by_task]);
    for (id, node) in [(late_id, 1), (task_id, 0)] {
        let verdict = store.current(id, "reference_label").unwrap().unwrap();
        assert!(matches!(verdict.content, Content::ReferenceLabel(label) if label.node == Some(node)));
    }
    let again = import(&mut store, []);
    assert_eq!(again.counts.new, 0);
    assert_eq!(store.verdicts(late_id).unwrap().len(), 2, "its label and its side");
}

#[test]
fn what_was_not_finished_is_not_there_and_comes_with_the_next_import() {
    let (_dir, mut store) = project();
    let mut interrupted = store.import(NOW).unwrap();
    put(&mut interrupted, run("a", &["q", "a"]));
    drop(interrupted);
    assert_eq!(store.count(&Filter::default()).unwrap(), 0);
    assert_eq!(import(&mut store, [run("a", &["q", "a"])]).counts.new, 1);
}

#[test]
fn a_project_is_private_and_asked_for_by_name() {
    let (dir, store) = project();
    assert!(matches!(Store::open(&dir.path().join("other")), Err(StoreError::NoProject { .. })));
    let ignored = |dir: &std::path::Path| std::fs::read_to_string(dir.join(".gitignore")).unwrap();
    assert_eq!(ignored(store.dir()), "*\n");
    let shared = tempfile::tempdir().unwrap();
    std::fs::write(shared.path().join("notes.txt"), "mine").unwrap();
    Store::create_or_open(shared.path()).unwrap();
    assert_eq!(ignored(shared.path()), "store.sqlite*\n", "a person's own files stay visible");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(store.dir()), 0o700);
        assert_eq!(mode(&store.dir().join("store.sqlite")), 0o600);
    }
}

#[test]
fn equal_content_under_two_ids_is_two_runs() {
    let (_dir, mut store) = project();
    let first = run("a", &["q", "a"]);
    let mut record = draft("task/a", "", &["q", "a"]);
    record.source.sha256 = "00".repeat(32);
    let second = record.seal(&NativeId::Record { ordinal: 0 }, Vec::new()).unwrap();
    assert_eq!(import(&mut store, [first, second]).counts.new, 2);
    assert_eq!(store.stats().unwrap().stored_nodes, 2);
}

/// A label file of TRAIL names a trace and spans of it; the trace comes with a file of its own.
#[test]
fn a_label_of_a_span_finds_its_message() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/importers/openinference");
    let dir = tempfile::tempdir().unwrap();
    let error = |location: &str| json!({ "category": "Goal Deviation", "location": location, "evidence": "", "description": "d", "impact": "LOW" });
    // The agent's, the second model call's, the failed tool's, and one that the trace does not have.
    let spans = ["b000000000000001", "b000000000000005", "b000000000000004", "ffffffffffffffff"];
    let labels = json!({ "errors": spans.map(error), "scores": [] });
    for run in ["5c21c0de000000000000000000000002", "elsewhere"] {
        std::fs::write(dir.path().join(format!("{run}.json")), labels.to_string()).unwrap();
    }
    let read = |store: &mut Store, path: &Path| {
        let (sources, _) = sources_from_paths(&[path.to_string_lossy().into_owned()], &Arc::default());
        let mut import = store.import(NOW).unwrap();
        for source in &sources {
            detect(source).unwrap().unwrap().import(source, &mut import).unwrap();
        }
        import.finish().unwrap()
    };
    for trace in ["scripted-run/input.jsonl", "span-tree/input.json"] {
        let (_dir, mut store) = project();
        assert_eq!(read(&mut store, dir.path()).labels, 8);
        assert_eq!(store.names_without_run(1).unwrap(), ["5c21c0de000000000000000000000002"]);
        assert_eq!(store.labels_without_run().unwrap(), 2);
        let summary = read(&mut store, &folder.join(trace));
        assert_eq!(store.names_without_run(9).unwrap(), ["elsewhere"]);
        let lost: Vec<&str> = summary.losses.keys().map(|loss| loss.field.as_str()).collect();
        assert!(lost.contains(&"location"), "{lost:?}");
        let id = store.list(&Filter::default(), Page::ALL).unwrap()[0].id;
        let run = store.load(id).unwrap();
        let found = store.verdicts(id).unwrap().into_iter().filter_map(|verdict| match verdict.content {
            Content::ReferenceLabel(label) => Some((
                label.native.to_value()["location"].as_str().unwrap().to_owned(),
                label.node.map(|node| run.nodes[node].agent.clone()),
            )),
            _ => None,
        });
        let mut found: Vec<_> = found.collect();
        found.sort();
        let agents = ["travel-desk", "find_trains", "travel-desk"].map(|agent| Some(agent.to_owned()));
        let wanted = [spans[0], spans[2], spans[1]].map(str::to_owned).into_iter().zip(agents);
        let wanted: Vec<_> = wanted.chain([(spans[3].to_owned(), None)]).collect();
        assert_eq!(found, wanted, "{trace}");
    }
}
