//! Verdicts, labels, and what is still to be done.

use recoup::id::TrajectoryId;
use recoup::store::{Filter, Store};
use recoup::trajectory::{Outcome, Status};
use recoup::verdict::{Blame, Class, Content, Diagnosis, FailureClass, Label, Party, Producer, Verdict};

use super::{NOW, assert_clean, draft, import, project, rows, run, sealed};

fn label(subject: TrajectoryId, producer: Producer, outcome: Status) -> Verdict {
    let content = Content::Label(Label { outcome: Some(outcome), ..Label::default() });
    Verdict::new(subject, producer, Vec::new(), content, NOW)
}

fn blame(subject: TrajectoryId, party: Party, version: u32) -> Verdict {
    let content =
        Content::Blame(Blame { party, rule: "r".to_owned(), reason: String::new(), suspected: false });
    Verdict::new(subject, Producer::rules("triage", version), Vec::new(), content, NOW)
}

fn diagnosis(subject: TrajectoryId, decisive_node: usize, rank: u32) -> Verdict {
    let content = Content::Diagnosis(Diagnosis {
        decisive_node,
        responsible_agent: "assistant".to_owned(),
        explanation: String::new(),
        citations: Vec::new(),
        candidate: None,
        rank,
        findings: Vec::new(),
        admitted: true,
        suspected: false,
    });
    Verdict::new(subject, Producer::rules("diagnosis", 1), Vec::new(), content, NOW)
}

fn one(store: &mut Store) -> TrajectoryId {
    import(store, [run("a", &["q", "first", "r", "second"])]);
    rows(store)[0].id
}

#[test]
fn putting_again_adds_nothing_and_the_row_shows_the_current_ones() {
    let (_dir, mut store) = project();
    let id = one(&mut store);
    let class = Content::FailureClass(FailureClass {
        class: Class::WrongResult,
        mode: None,
        recoverable: true,
        severity: 0.25,
        loss_weight: 0.75,
    });
    let class = Verdict::new(id, Producer::rules("triage", 1), Vec::new(), class, NOW);
    let verdicts = [
        blame(id, Party::Agent, 2),
        blame(id, Party::Task, 1),
        class,
        diagnosis(id, 1, 1),
        diagnosis(id, 3, 0),
    ];
    assert_eq!(store.put_verdicts(&verdicts).unwrap(), 5);
    assert_eq!(store.put_verdicts(&verdicts).unwrap(), 0);
    let row = rows(&store).remove(0);
    assert_eq!(row.blame.as_deref(), Some("agent"), "the higher version counts, not the later");
    assert_eq!((row.class.as_deref(), row.severity), (Some("wrong_result"), Some(0.25)));
    assert_eq!((row.decisive_node, row.decisive_step), (Some(3), Some(1)));
    assert_eq!(store.current(id, "blame").unwrap(), Some(verdicts[0].clone()));
    assert_eq!(store.verdicts(id).unwrap().len(), 6, "with the side");
    assert_eq!(store.count(&Filter { blame: Some("agent".to_owned()), ..Filter::default() }).unwrap(), 1);
}

#[test]
fn a_person_overrules_and_can_change_their_mind() {
    let (_dir, mut store) = project();
    let id = one(&mut store);
    store.put_verdicts(&[blame(id, Party::Agent, 1)]).unwrap();
    let outcome = |store: &Store| store.effective(id).unwrap().outcome().status;
    let assumed = Producer { rank: 20, ..Producer::rules("outcomes", 1) };
    store.put_verdicts(&[label(id, assumed, Status::Unknown)]).unwrap();
    assert_eq!(outcome(&store), Status::Unknown);
    for status in [Status::Success, Status::Failure, Status::Success] {
        store.put_verdicts(&[label(id, Producer::person(), status)]).unwrap();
        assert_eq!(outcome(&store), status);
        assert_eq!(rows(&store)[0].outcome, status.as_str());
    }
    assert_eq!(rows(&store)[0].blame, None, "nobody is to blame for a success");
    assert_eq!(store.load(id).unwrap().outcome().status, Status::Failure, "the run itself never changes");
    assert_eq!(store.effective(id).unwrap().outcome().evidence, "label = success");
}

#[test]
fn a_label_moves_a_run_to_another_task() {
    let (_dir, mut store) = project();
    let id = one(&mut store);
    let content = Content::Label(Label {
        task: Some("bench/3".to_owned()),
        environment: Some("shop".to_owned()),
        note: Some("odd".to_owned()),
        ..Label::default()
    });
    store.put_verdicts(&[Verdict::new(id, Producer::person(), Vec::new(), content, NOW)]).unwrap();
    let run = store.effective(id).unwrap();
    assert_eq!(run.task.key.0, "bench/3");
    assert_eq!(run.environment.unwrap().name, "shop");
    let row = rows(&store).remove(0);
    assert_eq!((row.task.0.as_str(), row.note.as_deref()), ("bench/3", Some("odd")));
    assert_eq!(row.outcome, "failure");
}

#[test]
fn a_label_goes_over_to_a_revision_of_the_same_messages() {
    let (_dir, mut store) = project();
    let scored = |score: f64| {
        let mut draft = draft("bench/1", "", &["q", "a"]);
        draft.finish(Outcome::from_score(score, 1.0, "accuracy"));
        sealed("a", draft)
    };
    import(&mut store, [scored(0.0)]);
    let id = rows(&store)[0].id;
    let told = Content::Label(Label {
        outcome: Some(Status::Success),
        task: Some("bench/2".to_owned()),
        note: Some("odd".to_owned()),
        ..Label::default()
    });
    store.put_verdicts(&[Verdict::new(id, Producer::person(), Vec::new(), told, NOW)]).unwrap();
    store.put_verdicts(&[label(id, Producer::assumption(), Status::Failure)]).unwrap();
    // Scored again.
    assert_eq!(import(&mut store, [scored(0.5)]).counts.revisions, 1);
    let row = rows(&store).remove(0);
    assert_ne!(row.id, id);
    assert_eq!(
        (row.outcome.as_str(), row.task.0.as_str(), row.note.as_deref()),
        ("success", "bench/2", Some("odd"))
    );
    assert_eq!(store.of_run(row.id, "label").unwrap().len(), 1, "what was only assumed stays behind");
    assert!(row.split.is_some());
    assert_clean(&store);
}

#[test]
fn a_verdict_about_no_run_is_refused() {
    let (_dir, mut store) = project();
    let absent = run("absent", &["q"]).head.id;
    assert!(store.put_verdicts(&[blame(absent, Party::Agent, 1)]).is_err());
}

#[test]
fn only_what_is_new_is_pending() {
    let (_dir, mut store) = project();
    let trial = |native: &str, text: &str| sealed(native, draft("task/1", "", &["q", text]));
    import(&mut store, [trial("one", "a"), run("alone", &["q", "a"]), trial("two", "b")]);
    let groups = store.pending("diagnose", 1).unwrap();
    assert_eq!(groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>(), [2, 1]);
    store.mark_done("diagnose", 1, &groups).unwrap();
    assert!(store.pending("diagnose", 1).unwrap().is_empty());
    assert_eq!(store.pending("diagnose", 2).unwrap().len(), 2, "another version starts anew");
    assert_eq!(store.pending("triage", 1).unwrap().len(), 2, "another stage, too");

    import(&mut store, [trial("three", "c")]);
    let again = store.pending("diagnose", 1).unwrap();
    assert_eq!(again.len(), 1);
    assert_eq!(again[0].runs.len(), 3, "a new sibling brings the whole task back");
    store.mark_done("diagnose", 1, &again).unwrap();

    let alone = rows(&store).into_iter().find(|row| row.task.0 == "task/alone").unwrap().id;
    store.put_verdicts(&[label(alone, Producer::person(), Status::Success)]).unwrap();
    assert_eq!(store.pending("diagnose", 1).unwrap().len(), 1, "another outcome is news");
    // A revision is news.
    store.mark_done("diagnose", 1, &store.pending("diagnose", 1).unwrap()).unwrap();
    import(&mut store, [run("alone", &["q", "a", "more"])]);
    assert_eq!(store.pending("diagnose", 1).unwrap()[0].runs.len(), 1);
}
