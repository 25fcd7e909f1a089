//! Views of a project that was replayed: what holds for every example of every view, whatever the threads.

use std::collections::BTreeMap;
use std::fs;
use std::sync::LazyLock;

use serde_json::Value;
use tempfile::TempDir;

use recoup::exporters::{Exporter, Refusal, Training, natural};
use recoup::id::TrajectoryId;
use recoup::importers::ImportOptions;
use recoup::pipeline::{self, ContentSettings, ReplayConfig};
use recoup::redaction::redact;
use recoup::replay::{Proposer, ReplayPlan, SweepPlan};
use recoup::rollout::{self, Plan, policies};
use recoup::store::{Filter, Page, Store};
use recoup::trajectory::{Part, Role, Status};
use recoup::verdict::{Content, Label, Producer, Side, Verdict};
use recoup::views::{Evidence, Example, Objective, PreventionTarget, VIEWS, ViewSettings};

use crate::replay::environment;

const NOW: &str = "2026-01-01T00:00:00Z";

/// Writes examples as they are.
struct Whole;

impl Exporter for Whole {
    fn format(&self) -> &'static str {
        "whole"
    }

    fn row(&self, example: &Example) -> Result<Value, Refusal> {
        Ok(serde_json::to_value(example).expect("an example is JSON"))
    }

    fn carries_everything(&self) -> bool {
        true
    }

    fn mask(&self) -> &'static str {
        "the example's own segments"
    }
}

/// Runs of two weak policies: one whose faults only the environment's expert can mend, one whose faults the
/// rules diagnose and mend. Made once; each test gets a copy.
static PROJECT: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_open(folder.path()).unwrap();
    let mut known = Vec::new();
    for (name, policy, proposer) in [
        ("quest", "weak:premature-stop@0.15", Proposer::Expert),
        ("toolchain", "weak:malformed-call@0.4", Proposer::Rules),
    ] {
        let policy = policies::parse(policy).unwrap();
        rollout::collect(&mut store, &*environment(name), &*policy, &Plan::new(32, 7), 2, NOW, &mut ())
            .unwrap();
        pipeline::diagnose(&mut store, NOW, 2, &mut ()).unwrap();
        let config = ReplayConfig {
            plan: ReplayPlan { proposer, ..ReplayPlan::default() },
            sweep: Some(SweepPlan::default()),
            opener: &recoup::environments::bundled::open,
            policy: None,
            threads: 2,
            now: NOW,
        };
        let mut ids = pipeline::replayable(&store).unwrap();
        ids.retain(|id| !known.contains(id));
        pipeline::replay(&mut store, &ids, &config, &mut ()).unwrap();
        known.extend(ids);
    }
    folder
});

fn project() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(PROJECT.path()).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
    }
    let store = Store::create_or_open(folder.path()).unwrap();
    (folder, store)
}

fn settings(views: ViewSettings) -> ContentSettings {
    ContentSettings::of(&ImportOptions::default(), views)
}

/// The bytes of every view's file, by name.
fn files(store: &Store, threads: usize, views: ViewSettings) -> BTreeMap<String, String> {
    let out = tempfile::tempdir().unwrap();
    let training: Vec<Training<'_>> =
        VIEWS.iter().map(|view| Training { exporter: &Whole, ..natural(*view) }).collect();
    let ids: Vec<TrajectoryId> =
        store.list(&Filter::default(), Page::ALL).unwrap().into_iter().map(|row| row.id).collect();
    let settings = settings(views);
    pipeline::export_rows(store, &ids, &training, out.path(), threads, &settings, &mut ()).unwrap();
    let entries = fs::read_dir(out.path()).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
        .collect()
}

fn examples(store: &Store, views: ViewSettings) -> BTreeMap<&'static str, Vec<Example>> {
    let files = files(store, 2, views);
    let read = |name: &str| {
        let lines = files[&format!("{name}.jsonl")].lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Example>>()
    };
    VIEWS.iter().map(|view| (view.name(), read(view.name()))).collect()
}

/// Every segment is a stretch of a turn that the policy sampled in the lineage's own run; every other message
/// is context.
fn check_mask(store: &Store, example: &Example) {
    let run = redact(&store.effective(example.lineage.trajectory).unwrap()).trajectory;
    for segment in &example.segments {
        let message = &example.context[segment.message];
        assert_eq!(message.role, Role::Assistant);
        let part = &message.parts[segment.part_path[0]];
        assert!(!matches!(part, Part::ToolResult(_) | Part::Media(_) | Part::Opaque { .. }));
        assert_eq!(part.cited_text().map(str::len), Some(segment.end), "a whole part");
        if let Some(node) = message.node {
            let occurrence = &run.nodes[node].occurrence;
            assert!(occurrence.sampled && !occurrence.copied_context, "{:?}", example.lineage);
        }
    }
    for message in &example.context {
        if let Some(node) = message.node {
            assert_eq!((&message.parts, message.role), (&run.nodes[node].parts, run.nodes[node].role));
        }
    }
    let learned = example.segments.iter().map(|segment| segment.message);
    let labelled = example.step_labels.iter().map(|label| label.message);
    let last = learned.chain(labelled).max();
    assert_eq!(last.map(|last| last + 1), Some(example.context.len()), "nothing stands after the decision");
}

/// A run and what it continues stand on the training side and are no success nor failure by guess.
fn check_side(store: &Store, example: &Example) {
    let lineage = &example.lineage;
    assert_eq!(lineage.side, Side::Train);
    for id in [Some(lineage.trajectory), lineage.origin].into_iter().flatten() {
        assert_eq!(store.row(id).unwrap().split.as_deref(), Some("train"));
        assert_ne!(store.effective(id).unwrap().outcome().status, Status::Unknown);
    }
}

/// What only the verifier may know stands nowhere in the row.
fn check_hidden(store: &Store, example: &Example) {
    let text = serde_json::to_string(example).unwrap();
    let run = store.load(example.lineage.trajectory).unwrap();
    for hidden in [run.hidden.gold, run.hidden.verifier_output, run.hidden.reference].into_iter().flatten() {
        let quoted = serde_json::to_string(hidden.as_str()).unwrap();
        assert!(!text.contains(hidden.as_str()) && !text.contains(quoted.trim_matches('"')));
    }
}

#[test]
fn every_example_of_every_view_keeps_its_promises() {
    let (_folder, store) = project();
    let views = examples(&store, ViewSettings::default());
    // Goals that were achieved after all and teachers' labels have tests of their own; there are none here.
    let of_others =
        ["hindsight_sft", "dagger", "goal_contrast", "failure_sft", "shuffled_sft", "success_only_sft"];
    for (view, examples) in &views {
        assert_eq!(examples.is_empty(), of_others.contains(view), "{view}");
        for example in examples {
            assert_eq!(example.lineage.view, *view);
            check_mask(&store, example);
            check_side(&store, example);
            check_hidden(&store, example);
        }
    }
    for view in ["prevention_sft", "recovery_sft"] {
        for example in &views[view] {
            let run = store.effective(example.lineage.trajectory).unwrap();
            assert_eq!(run.outcome().status, Status::Success, "a repair that passed");
            let origin = run.origin.unwrap();
            assert_eq!(origin.arm, "repair");
            let failed = store.effective(origin.trajectory).unwrap();
            assert_eq!(failed.outcome().status, Status::Failure);
            assert!(!example.lineage.verdicts.is_empty());
        }
    }
    let pairs = views["preference"].chunks(2);
    for pair in pairs {
        let [chosen, rejected] = pair else { panic!("halves stand together") };
        let [good, bad] = [chosen, rejected].map(|half| half.pair.as_ref().unwrap());
        assert!(good.chosen && !bad.chosen && good.id == bad.id);
        let before = chosen.context.len() - 1;
        assert_eq!(rejected.context.len() - 1, before);
        let said = |half: &Example| -> Vec<(Role, Vec<Part>)> {
            half.context[..before].iter().map(|message| (message.role, message.parts.clone())).collect()
        };
        assert_eq!(said(chosen), said(rejected));
        assert_eq!(chosen.lineage.evidence, Evidence::Replay);
        let status = |half: &Example| store.load(half.lineage.trajectory).unwrap().outcome().status;
        assert_eq!((status(chosen), status(rejected)), (Status::Success, Status::Failure));
    }
    assert!(views["process_reward"].iter().any(|example| example.lineage.evidence == Evidence::Replay));
    let wanted = |wanted| views["kto"].iter().any(|example| example.desirable == Some(wanted));
    assert!(wanted(true) && wanted(false));
    for view in VIEWS {
        assert!(views[view.name()].iter().all(|example| example.objective == view.objective()));
    }
}

#[test]
fn files_are_the_same_whatever_the_threads() {
    let (_folder, store) = project();
    let one = files(&store, 1, ViewSettings::default());
    assert_eq!(one, files(&store, 2, ViewSettings::default()));
    assert_eq!(one, files(&store, 8, ViewSettings::default()));
    let manifest: Value = serde_json::from_str(&one["preference.manifest.json"]).unwrap();
    let built = &manifest["built"];
    assert_eq!(built["objectives"]["preference"], built["examples"]);
    assert_eq!(built["weights"]["1.00"], built["examples"]);
    let excluded: u64 = manifest["excluded"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
    assert!(excluded > 0 && excluded < manifest["in"].as_u64().unwrap());
}

#[test]
fn a_setting_changes_the_rows_and_the_hash_of_the_configuration() {
    let (_folder, store) = project();
    let target = |prevention_target| ViewSettings { prevention_target, ..ViewSettings::default() };
    let (action, continuation) = (target(PreventionTarget::Action), target(PreventionTarget::Continuation));
    assert_ne!(settings(action.clone()).hash(), settings(continuation.clone()).hash());
    let learned = |views| -> usize {
        let examples = &examples(&store, views)["prevention_sft"];
        examples.iter().map(|example| example.segments.len()).sum()
    };
    assert!(learned(continuation.clone()) > learned(action));
    for example in &examples(&store, continuation)["prevention_sft"] {
        check_mask(&store, example);
    }
    // The expert's reasons are none that the agent could have had.
    let reflected =
        examples(&store, target(PreventionTarget::ReflectionAndAction)).remove("prevention_sft").unwrap();
    assert!(!reflected.is_empty());
    for example in &reflected {
        assert!(example.lineage.task.0.starts_with("toolchain/"), "{:?}", example.lineage.task);
        let said = example.context.last().unwrap();
        assert!(matches!(said.parts.as_slice(), [Part::Text(_), Part::ToolCall(_)]));
    }
}

#[test]
fn a_run_whose_outcome_is_taken_back_teaches_nothing() {
    let (_folder, mut store) = project();
    let before = examples(&store, ViewSettings::default());
    let taken: Vec<TrajectoryId> =
        before["preference"].iter().filter_map(|half| half.lineage.origin).collect();
    let unknown = |id: &TrajectoryId| {
        let label = Label { outcome: Some(Status::Unknown), ..Label::default() };
        Verdict::new(*id, Producer::person(), Vec::new(), Content::Label(label), NOW)
    };
    store.put_verdicts(&taken.iter().map(unknown).collect::<Vec<_>>()).unwrap();
    for (view, examples) in examples(&store, ViewSettings::default()) {
        for example in examples {
            let lineage = &example.lineage;
            let shown = [Some(lineage.trajectory), lineage.origin];
            assert!(shown.into_iter().flatten().all(|id| !taken.contains(&id)), "{view}");
        }
    }
}

#[test]
fn runs_of_a_task_are_paired_only_where_asked() {
    let (_folder, mut store) = project();
    let environment = environment("quest");
    let expert = policies::parse("expert").unwrap();
    rollout::collect(&mut store, &*environment, &*expert, &Plan::new(32, 7), 2, NOW, &mut ()).unwrap();
    let siblings = |views| {
        let examples = examples(&store, views).remove("preference").unwrap();
        examples.into_iter().filter(|half| half.lineage.evidence == Evidence::Sibling).collect::<Vec<_>>()
    };
    assert!(siblings(ViewSettings::default()).is_empty());
    let asked = siblings(ViewSettings { sibling_pairs: true, ..ViewSettings::default() });
    assert!(!asked.is_empty());
    for pair in asked.chunks(2) {
        let at = pair[0].context.len() - 1;
        let [ours, theirs] = [&pair[1], &pair[0]].map(|half| store.load(half.lineage.trajectory).unwrap());
        assert_eq!((theirs.outcome().status, ours.outcome().status), (Status::Success, Status::Failure));
        assert_eq!(ours.task.key, theirs.task.key);
        let said = |run: &recoup::trajectory::Trajectory, node: usize| {
            (run.nodes[node].role, run.nodes[node].parts.clone())
        };
        assert!((0..at).all(|node| said(&ours, node) == said(&theirs, node)));
        assert_ne!(said(&ours, at), said(&theirs, at));
        for half in pair {
            check_mask(&store, half);
        }
        assert!(pair.iter().all(|half| half.objective == Objective::Preference));
    }
}
