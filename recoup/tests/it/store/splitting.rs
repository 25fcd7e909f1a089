//! The split: linked runs on one side, for good.

use std::collections::BTreeSet;

use recoup::store::Store;
use recoup::trajectory::{Origin, Sealed};
use recoup::verdict::{Content, Label, Producer, Verdict};

use super::{NOW, draft, import, project, rows, sealed};

/// A run of a task with a goal.
fn of(native: &str, task: &str, goal: &str) -> Sealed {
    sealed(native, draft(task, goal, &["q", native]))
}

fn side(store: &Store, native: &str) -> String {
    let row = rows(store).into_iter().find(|row| row.native_id.as_deref() == Some(native)).unwrap();
    row.split.unwrap()
}

/// Goals whose tasks stand on different sides when each comes alone.
fn apart() -> (String, String) {
    let (_dir, mut store) = project();
    import(&mut store, (0..60).map(|i| of(&format!("{i}"), &format!("t{i}"), &format!("goal {i}"))));
    let first = side(&store, "0");
    let other = (1..60).find(|i| side(&store, &i.to_string()) != first).unwrap();
    ("0".to_owned(), other.to_string())
}

#[test]
fn sides_do_not_depend_on_order() {
    let runs: Vec<Sealed> =
        (0..200).map(|i| of(&i.to_string(), &format!("t{i}"), &format!("goal {}", i % 40))).collect();
    let (_a, mut forward) = project();
    let (_b, mut backward) = project();
    import(&mut forward, runs.clone());
    import(&mut backward, runs.into_iter().rev());
    for goal in 0..40 {
        let sides: BTreeSet<String> = (0..5)
            .map(|k| (goal + 40 * k).to_string())
            .flat_map(|native| [side(&forward, &native), side(&backward, &native)])
            .collect();
        assert_eq!(sides.len(), 1, "goal {goal}");
    }
    assert_eq!(forward.stats().unwrap().splits.len(), 3);
}

#[test]
fn a_later_run_follows_and_one_between_two_sides_is_excluded() {
    let (a, b) = apart();
    let (_dir, mut store) = project();
    import(
        &mut store,
        [of("a", &format!("t{a}"), &format!("goal {a}")), of("b", &format!("t{b}"), &format!("goal {b}"))],
    );
    let (side_a, side_b) = (side(&store, "a"), side(&store, "b"));
    assert_ne!(side_a, side_b);
    // A smaller task key with the goal of `b` would have another side alone; it follows.
    let follows = import(&mut store, [of("c", "a-small-key", &format!("GOAL  {b}"))]);
    assert_eq!(side(&store, "c"), side_b);
    assert_eq!(follows.excluded_by_split, 0);
    let between = import(&mut store, [of("d", &format!("t{a}"), &format!("goal {b}"))]);
    assert_eq!(side(&store, "d"), "excluded");
    assert_eq!(between.excluded_by_split, 1);
    assert_eq!((side(&store, "a"), side(&store, "b")), (side_a, side_b));
}

#[test]
fn a_continuation_stays_with_its_run() {
    let (a, b) = apart();
    let (_dir, mut store) = project();
    let first = of("a", &format!("t{a}"), "");
    let mut repair = draft("unrelated", "", &["q", "better"]);
    repair.origin =
        Some(Origin { trajectory: first.head.id, node: 0, arm: "repair".to_owned(), continuation: 0 });
    let mut crossing = draft(&format!("t{b}"), "", &["q", "crossing"]);
    crossing.origin.clone_from(&repair.origin);
    import(&mut store, [sealed("repair", repair), first, of("b", &format!("t{b}"), "")]);
    assert_eq!(side(&store, "repair"), side(&store, "a"));
    import(&mut store, [sealed("crossing", crossing)]);
    assert_eq!(side(&store, "crossing"), "excluded");
}

/// Labels a run onto a task, as the `version`th word of one person.
fn label(store: &mut Store, native: &str, task: &str, version: u32) {
    let row = rows(store).into_iter().find(|row| row.native_id.as_deref() == Some(native)).unwrap();
    let content = Content::Label(Label { task: Some(task.to_owned()), ..Label::default() });
    let producer = Producer { version, ..Producer::person() };
    store.put_verdicts(&[Verdict::new(row.id, producer, Vec::new(), content, NOW)]).unwrap();
}

fn sides_of_task(store: &Store, task: &str) -> BTreeSet<String> {
    let of_task = rows(store).into_iter().filter(|row| row.task.0 == task);
    of_task.filter_map(|row| row.split).filter(|side| side != "excluded").collect()
}

#[test]
fn a_label_onto_a_task_of_another_side_excludes_the_run() {
    let (a, b) = apart();
    let (task_a, task_b) = (format!("t{a}"), format!("t{b}"));
    for (native, to) in [("a", &task_b), ("b", &task_a)] {
        let (_dir, mut store) = project();
        let goals = (format!("goal {a}"), format!("goal {b}"));
        import(&mut store, [of("a", &task_a, &goals.0), of("b", &task_b, &goals.1)]);
        let before = side(&store, native);
        label(&mut store, native, to, 1);
        assert_eq!(side(&store, native), "excluded");
        assert_eq!(sides_of_task(&store, to).len(), 1);
        assert_eq!(store.stats().unwrap().splits["excluded"], 1);
        let id = rows(&store).into_iter().find(|row| row.native_id.as_deref() == Some(native)).unwrap().id;
        let split = store.current(id, "split").unwrap().unwrap();
        assert!(matches!(split.content, Content::Split(split) if split.side.as_str() == "excluded"));
        // Taken back, the run is again where it was.
        label(&mut store, native, if native == "a" { &task_a } else { &task_b }, 2);
        assert_eq!(side(&store, native), before);
    }
}

#[test]
fn a_label_onto_a_new_task_gives_it_the_side_of_the_run() {
    let (a, b) = apart();
    for (native, number) in [("a", a), ("b", b)] {
        let (_dir, mut store) = project();
        import(&mut store, [of(native, &format!("t{number}"), &format!("goal {number}"))]);
        let before = side(&store, native);
        label(&mut store, native, "new", 1);
        assert_eq!(side(&store, native), before);
        import(&mut store, [of("later", "new", ""), of("small", "a", &format!("goal {number}"))]);
        assert_eq!(side(&store, "later"), before, "the task is linked");
        assert_eq!(sides_of_task(&store, "new"), BTreeSet::from([before]));
    }
}
