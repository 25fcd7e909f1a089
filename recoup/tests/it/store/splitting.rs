//! The split: linked runs on one side, for good.

use std::collections::BTreeSet;

use proptest::prelude::{ProptestConfig, Strategy, any, proptest};
use recoup::deduplication::Sketch;
use recoup::store::Store;
use recoup::trajectory::{Origin, Sealed, Trajectory};
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

/// Text of sixty words of its own for each number, but for the last `changed`.
fn text(number: u32, changed: u32) -> String {
    let word = |at: u32| if at < 60 - changed { format!("w{number}x{at}") } else { format!("v{at}") };
    (0..60).map(word).collect::<Vec<_>>().join(" ")
}

/// A run of a task in which nothing but its words tells it from others.
fn worded(native: &str, task: &str, words: &str) -> Sealed {
    sealed(native, draft(task, "", &[words, words]))
}

#[test]
fn a_near_copy_under_another_name_stands_on_the_same_side() {
    let (a, b) = apart();
    let (task_a, task_b) = (format!("t{a}"), format!("t{b}"));
    let (_dir, mut store) = project();
    import(&mut store, [worded("a", &task_a, &text(1, 0)), worded("b", &task_b, &text(2, 0))]);
    assert_ne!(side(&store, "a"), side(&store, "b"));
    assert_eq!(store.stats().unwrap().near_duplicates, 0);
    // In a later import it follows.
    import(&mut store, [worded("copy", "copied", &text(1, 1))]);
    assert_eq!(side(&store, "copy"), side(&store, "a"));
    assert_eq!(store.stats().unwrap().near_duplicates, 1);
    // A copy of one under the name of the other would join them, and takes no later copy with it.
    let crossing = import(&mut store, [worded("crossing", &task_b, &text(1, 2))]);
    assert_eq!((crossing.excluded_by_split, side(&store, "crossing").as_str()), (1, "excluded"));
    import(&mut store, [worded("third", "third", &text(1, 1))]);
    assert_eq!(side(&store, "third"), side(&store, "a"));
    // In one import the copies decide together.
    let (_dir, mut fresh) = project();
    import(&mut fresh, (0..40).map(|i| worded(&i.to_string(), &format!("t{i}"), &text(i / 4, i % 2))));
    for first in (0..40).step_by(4) {
        let sides: BTreeSet<String> = (first..first + 4).map(|i| side(&fresh, &i.to_string())).collect();
        assert_eq!(sides.len(), 1);
    }
}

/// A run of a task that was made from a template.
fn from_template(native: &str, template: &str) -> Sealed {
    let mut run = draft(&format!("t{native}"), "", &["q", native]);
    run.task.template_key = Some(template.to_owned());
    sealed(native, run)
}

#[test]
fn a_strict_split_ties_templates_and_tears_none() {
    let runs = || (0..40).map(|i| from_template(&i.to_string(), &format!("template {}", i / 10)));
    let sides = |store: &Store, template: u32| -> BTreeSet<String> {
        (template * 10..template * 10 + 10).map(|i| side(store, &i.to_string())).collect()
    };
    let (_dir, mut standard) = project();
    import(&mut standard, runs());
    assert!((0..4).any(|template| sides(&standard, template).len() > 1));
    let (_dir, mut strict) = project();
    strict.make_split_strict().unwrap();
    import(&mut strict, runs());
    assert!((0..4).all(|template| sides(&strict, template).len() == 1));
    let largest = strict.largest_component().unwrap().unwrap();
    assert_eq!((largest.tasks, largest.of, largest.is_too_large()), (10, 40, false));
    // A later import follows, and a template that a standard split tore gets no further run.
    import(&mut strict, [from_template("late", "template 2")]);
    assert_eq!(side(&strict, "late"), side(&strict, "20"));
    let torn = (0..4).find(|template| sides(&standard, *template).len() > 1).unwrap();
    standard.make_split_strict().unwrap();
    let late = import(&mut standard, [from_template("late", &format!("template {torn}"))]);
    assert_eq!((late.excluded_by_split, side(&standard, "late").as_str()), (1, "excluded"));
}

#[test]
fn a_component_of_many_tasks_is_too_large() {
    let (_dir, mut store) = project();
    import(&mut store, (0..6).map(|i| of(&format!("same {i}"), &format!("a{i}"), "one goal")));
    import(&mut store, (0..6).map(|i| of(&format!("other {i}"), &format!("b{i}"), &format!("goal {i}"))));
    let largest = store.largest_component().unwrap().unwrap();
    assert_eq!((largest.component.as_str(), largest.tasks, largest.of), ("a0", 6, 12));
    assert!(largest.is_too_large());
}

/// One drawn run: its task, goal, words, change, the earlier run that it continues, and where a new
/// import begins.
type Drawn = (u8, u8, u8, u8, Option<u8>, bool);

fn drawn() -> impl Strategy<Value = Vec<Drawn>> {
    let run = (0..12_u8, 0..14_u8, 0..10_u8, 0..3_u8, any::<Option<u8>>(), proptest::bool::weighted(0.15));
    proptest::collection::vec(run, 2..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever comes in whatever order and in how many imports: a trajectory, its repairs, its
    /// near copies and its task's other runs are never on two sides.
    #[test]
    fn the_split_never_leaks(drawn in drawn(), strict in any::<bool>()) {
        let (_dir, mut store) = project();
        if strict {
            store.make_split_strict().unwrap();
        }
        let mut runs: Vec<(Trajectory, Sealed)> = Vec::new();
        let mut waiting: Vec<Sealed> = Vec::new();
        for (number, (task, goal, words, change, origin, begins)) in drawn.into_iter().enumerate() {
            if begins {
                import(&mut store, std::mem::take(&mut waiting));
            }
            let goal = if goal < 10 { String::new() } else { format!("goal {goal}") };
            let words = text(u32::from(words), u32::from(change));
            let last = format!("{words} {number}");
            let mut run = draft(&format!("task {task}"), &goal, &[words.as_str(), last.as_str()]);
            run.task.template_key = Some(format!("template {}", task % 8));
            let origin = origin.filter(|_| !runs.is_empty() && number % 3 == 0);
            run.origin = origin.map(|at| Origin {
                trajectory: runs[usize::from(at) % runs.len()].1.head.id,
                node: 0,
                arm: "repair".to_owned(),
                continuation: 0,
            });
            let sealed = sealed(&format!("run {number}"), run.clone());
            waiting.push(sealed.clone());
            runs.push((run, sealed));
        }
        import(&mut store, waiting);
        let listed = rows(&store);
        let side_of = |sealed: &Sealed| listed.iter().find(|row| row.id == sealed.head.id).unwrap().split.clone().unwrap();
        for (left_run, left) in &runs {
            for (right_run, right) in &runs {
                let (left_side, right_side) = (side_of(left), side_of(right));
                if left_side == right_side || left_side == "excluded" || right_side == "excluded" {
                    continue;
                }
                assert_ne!(left_run.task.key, right_run.task.key);
                assert!(left_run.task.goal.is_empty() || left_run.task.goal != right_run.task.goal);
                assert_ne!(left_run.origin.as_ref().map(|origin| origin.trajectory), Some(right.head.id));
                assert!(!strict || left_run.task.template_key != right_run.task.template_key);
                let near = Sketch::of(&left_run.nodes).unwrap().is_near(&Sketch::of(&right_run.nodes).unwrap());
                assert!(!near, "{} and {}", left_run.task.key.0, right_run.task.key.0);
            }
        }
    }
}
