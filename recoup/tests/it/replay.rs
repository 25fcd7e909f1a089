//! Replay: strictness, matched arms, curves, and what a project keeps of them.

use recoup::environments::{Action, Environment, Scene, bundled};
use recoup::importers::Sink as _;
use recoup::json::Json;
use recoup::pipeline::{self, ReplayConfig, Replaying};
use recoup::replay::{
    Checkpoints, Matched, Proposer, Recorded, Reopened, ReplayError, ReplayPlan, SweepPlan, Treatments,
};
use recoup::rollout::policies;
use recoup::rollout::{
    self, Conditions, EpisodeLimits, Keep, Plan, Policy, PolicyError, Recording, Situation, Spent, Turn,
};
use recoup::store::{Filter, Page, Store};
use recoup::trajectory::{NativeId, Part, Status, Trajectory};
use recoup::verdict::{Arm, Content, ReplayPair};

const NOW: &str = "2026-01-01T00:00:00Z";

pub fn environment(name: &str) -> Box<dyn Environment> {
    bundled::open(name).unwrap().unwrap()
}

/// One run of a policy, as it would be stored.
pub fn play(environment: &dyn Environment, policy: &dyn Policy, seed: u64) -> (Trajectory, NativeId) {
    within(environment, policy, seed, EpisodeLimits::default())
}

fn within(
    environment: &dyn Environment,
    policy: &dyn Policy,
    seed: u64,
    limits: EpisodeLimits,
) -> (Trajectory, NativeId) {
    let task = environment.generate(seed, 1 + (seed % 3) as u8).unwrap();
    let mut instance = environment.open(&task).unwrap();
    let rules = environment.identity().policy.as_deref();
    let conditions = Conditions { seed, rules, limits, keep: Keep::Hashes, ..Conditions::default() };
    let episode = rollout::run(&mut *instance, &task, policy, conditions);
    let recording = Recording {
        identity: environment.identity(),
        task: &task,
        tools: instance.tools(),
        policy,
        seed,
        trial: 0,
        limits,
        origin: None,
        advice: None,
    };
    rollout::record(&episode, &recording)
}

/// Runs of weak policies in every bundled environment.
pub fn runs(seeds: u64) -> impl Iterator<Item = (Box<dyn Environment>, Trajectory)> {
    let names: Vec<&str> = bundled::names().collect();
    names.into_iter().flat_map(move |name| {
        (0..seeds).map(move |seed| {
            let environment = environment(name);
            let styles = policies::STYLES;
            let style = styles[seed as usize % styles.len()].name();
            let policy = policies::parse(&format!("weak:{style}@0.3")).unwrap();
            let (run, _) = play(&*environment, &*policy, seed);
            (environment, run)
        })
    })
}

/// The text that the environment has shown in a message.
pub fn observation(run: &mut Trajectory, position: usize) -> Option<&mut String> {
    let goal = run.task.goal.clone();
    run.nodes[position].parts.iter_mut().rev().find_map(|part| match part {
        Part::Text(text) if text.text != goal => Some(&mut text.text),
        Part::ToolResult(result) => result.parts.iter_mut().find_map(|part| match part {
            Part::Text(text) => Some(&mut text.text),
            _ => None,
        }),
        _ => None,
    })
}

#[test]
fn a_lost_observation_and_another_state_are_caught_too() {
    let environment = environment("quest");
    let (run, _) = play(&*environment, &policies::Expert, 3);
    let mut reopened = Reopened::open(&run, &*environment).unwrap();
    let volatile = reopened.volatile.clone();
    let turn = reopened.recorded.turns.len() / 2;
    let check = |change: &dyn Fn(&mut Recorded), instance: &mut dyn recoup::environments::Instance| {
        let mut recorded = Recorded::read(&run).unwrap();
        change(&mut recorded);
        match Checkpoints::take(instance, &recorded, &volatile, None) {
            Err(ReplayError::Diverged(divergence)) => divergence.step,
            other => panic!("{:?}", other.map(|_| ())),
        }
    };
    let instance = &mut *reopened.instance;
    assert_eq!(check(&|it| it.turns[turn].seen.clear(), instance), turn);
    assert_eq!(check(&|it| it.turns[turn].seen[0].is_error = Some(true), instance), turn);
    let other = recoup::id::Hash::of(b"another state");
    assert_eq!(check(&|it| it.turns[turn].seen[0].state_hash = Some(other), instance), turn);
    let last = Recorded::read(&run).unwrap().turns.len();
    let again = |it: &mut Recorded| it.turns.push(it.turns[0].clone());
    assert_eq!(check(&again, instance), last);
}

#[test]
fn another_version_is_an_error_on_the_record() {
    let environment = environment("quest");
    let (mut run, _) = play(&*environment, &policies::Expert, 3);
    run.environment.as_mut().unwrap().version = Some("0.9.0+000000000000".to_owned());
    let error = Reopened::open(&run, &*environment).map(|_| ()).unwrap_err();
    assert_eq!(error.code(), "environment-version");
    run.environment.as_mut().unwrap().reset = None;
    run.environment.as_mut().unwrap().version = None;
    assert_eq!(Reopened::open(&run, &*environment).map(|_| ()).unwrap_err().code(), "environment-reset");
    run.environment = None;
    assert_eq!(Reopened::open(&run, &*environment).map(|_| ()).unwrap_err().code(), "no-environment");
}

/// Looks around for ten tokens a turn.
struct Looking;

impl Policy for Looking {
    fn name(&self) -> &'static str {
        "looking"
    }

    fn act(&self, _: &Situation<'_>, _: &mut dyn Scene) -> Result<Turn, PolicyError> {
        let look = Action::call("look", Json::parse("{}").unwrap());
        Ok(Turn { spent: Spent { tokens: 10, answer_tokens: 4, ..Spent::default() }, ..look.into() })
    }
}

#[test]
fn a_continuation_has_the_tokens_that_were_left() {
    let environment = environment("quest");
    let limits = EpisodeLimits { tokens: Some(60), ..EpisodeLimits::default() };
    let (run, _) = within(&*environment, &Looking, 3, limits);
    assert_eq!(run.budget.as_ref().unwrap().tokens, Some(60));
    let mut reopened = Reopened::open(&run, &*environment).unwrap();
    assert_eq!((reopened.limits, reopened.recorded.turns.len()), (limits, 6));
    let checkpoints = reopened.execute(None).unwrap();
    let matched =
        Matched { run: &run, environment: &*environment, policy: &Looking, seed: 5, continuations: 1 };
    let treatments = Treatments { arms: &[Arm::Retry, Arm::Resample], ..Treatments::default() };
    let (_, runs) = matched.fork(&mut reopened, &checkpoints, 4, &treatments).unwrap();
    assert_eq!(runs.iter().map(|run| run.step_count).collect::<Vec<_>>(), [6, 6], "four before, two after");
    // Runs of another budget are not pooled.
    let (free, _) = within(&*environment, &Looking, 3, EpisodeLimits::default());
    let other = Reopened::open(&free, &*environment).unwrap();
    let hash = |reopened: &Reopened, run| reopened.config_hash(run, &*environment, "looking");
    assert_ne!(hash(&reopened, &run), hash(&other, &free));
}

#[test]
fn arms_share_their_luck_and_the_budget_that_is_left() {
    let environment = environment("quest");
    let policy = policies::parse("weak:wrong-variant@0.4").unwrap();
    for seed in 0..8 {
        let (run, _) = play(&*environment, &*policy, seed);
        let mut reopened = Reopened::open(&run, &*environment).unwrap();
        let checkpoints = reopened.execute(None).unwrap();
        let matched =
            Matched { run: &run, environment: &*environment, policy: &*policy, seed: 5, continuations: 2 };
        let turn = checkpoints.turns() / 2;
        // What the policy does there under the seed of continuation 0, taken by hand.
        let resample = Treatments { arms: &[Arm::Resample], ..Treatments::default() };
        let (_, sampled) = matched.fork(&mut reopened, &checkpoints, turn, &resample).unwrap();
        let first = sampled[0].head.clone();
        let bodies: Vec<_> =
            sampled[0].bodies.iter().map(|body| (body.hash, body.bytes.clone().into())).collect();
        let resampled = Trajectory::unseal(&sampled[0].record, first.source, first.key, &bodies).unwrap();
        let action = Recorded::read(&resampled).unwrap().turns[turn].actions[0].clone();
        let by_hand = Treatments { arms: &[Arm::Repair], candidate: Some(action), ..Treatments::default() };
        let (outcomes, repaired) = matched.fork(&mut reopened, &checkpoints, turn, &by_hand).unwrap();
        assert_eq!(repaired[0].bodies, sampled[0].bodies, "the same turn and seed, the same run");
        assert_eq!(outcomes[0].continuations.len(), 2);
        for sealed in sampled.iter().chain(&repaired) {
            assert!(sealed.step_count as u64 <= reopened.limits.turns_of(&reopened.task));
            let origin = sealed.head.origin.as_ref().unwrap();
            assert_eq!((origin.trajectory, origin.node), (run.id, reopened.recorded.turns[turn].node));
            // The prefix is shared with the run forked from.
            let own = run.clone().seal(&NativeId::Named("x".to_owned()), Vec::new()).unwrap();
            assert_eq!(sealed.bodies[..origin.node], own.bodies[..origin.node]);
        }
    }
}

#[test]
fn a_sweep_finds_until_when_a_run_could_be_saved_and_what_decided_it() {
    let environment = environment("quest");
    let mut decisive = 0;
    for seed in 0..20 {
        let policy = policies::parse("weak:premature-stop@0.3").unwrap();
        let (run, _) = play(&*environment, &*policy, seed);
        if run.outcome().status == Status::Success {
            continue;
        }
        let mut reopened = Reopened::open(&run, &*environment).unwrap();
        let checkpoints = reopened.execute(None).unwrap();
        // The expert continues: one continuation says all, and stopping is all that went wrong.
        let matched = Matched {
            run: &run,
            environment: &*environment,
            policy: &policies::Expert,
            seed: 5,
            continuations: 1,
        };
        let sweep =
            recoup::replay::sweep(&matched, &mut reopened, &checkpoints, SweepPlan::default()).unwrap();
        assert!(sweep.is_monotone && sweep.recoverability[0].recovered, "{sweep:?}");
        let last = checkpoints.turns() - 1;
        assert_eq!(sweep.last_recoverable, Some(last), "{sweep:?}");
        assert_eq!(sweep.decisive.map(|decisive| decisive.step), Some(last), "{sweep:?}");
        assert!(sweep.flips.iter().all(|flip| flip.n == 1 && flip.low <= flip.effect));
        decisive += 1;
    }
    assert!(decisive > 5, "{decisive}");
}

/// A project with runs of a weak policy.
fn project(policy: &str, tasks: u64) -> (tempfile::TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_open(folder.path()).unwrap();
    let plan = Plan::new(tasks, 7);
    let policy = policies::parse(policy).unwrap();
    let environment = environment("quest");
    rollout::collect(&mut store, &*environment, &*policy, &plan, 2, NOW, &mut ()).unwrap();
    pipeline::diagnose(&mut store, NOW, 2, &mut ()).unwrap();
    (folder, store)
}

fn config(threads: usize, proposer: Proposer) -> ReplayConfig<'static> {
    ReplayConfig {
        plan: ReplayPlan { continuations: 2, proposer, ..ReplayPlan::default() },
        sweep: Some(SweepPlan { continuations_max: 8 }),
        opener: &bundled::open,
        policy: None,
        threads,
        now: NOW,
    }
}

fn replay(store: &mut Store, config: &ReplayConfig<'_>) -> Replaying {
    let ids = pipeline::replayable(store).unwrap();
    pipeline::replay(store, &ids, config, &mut ()).unwrap()
}

fn pairs(store: &Store) -> Vec<ReplayPair> {
    let verdicts = store.of_kind("replay_pair").unwrap();
    verdicts
        .into_iter()
        .filter_map(|(_, verdict)| match verdict.content {
            Content::ReplayPair(pair) => Some(pair),
            _ => None,
        })
        .collect()
}

#[test]
fn a_project_keeps_the_same_whatever_the_threads_and_does_nothing_twice() {
    let mut kept: Vec<(recoup::id::Hash, Replaying)> = Vec::new();
    for threads in [1, 2, 8] {
        let (_folder, mut store) = project("weak:premature-stop@0.15", 16);
        let done = replay(&mut store, &config(threads, Proposer::Expert));
        assert!(done.runs > 5 && done.new == done.runs, "{done:?}");
        kept.push((store.fingerprint().unwrap(), done));
        if threads == 2 {
            let before = store.fingerprint().unwrap();
            let again = replay(&mut store, &config(threads, Proposer::Expert));
            assert_eq!((again.new, &again.summary), (0, &kept[1].1.summary));
            assert_eq!(store.fingerprint().unwrap(), before);
        }
    }
    assert_eq!(kept[0], kept[1]);
    assert_eq!(kept[0], kept[2]);
}

#[test]
fn an_interrupted_replay_goes_on() {
    let (_folder, mut store) = project("weak:premature-stop@0.15", 16);
    let ids = pipeline::replayable(&store).unwrap();
    let config = config(2, Proposer::Expert);
    let first = pipeline::replay(&mut store, &ids[..3], &config, &mut ()).unwrap();
    let all = pipeline::replay(&mut store, &ids, &config, &mut ()).unwrap();
    assert_eq!((first.new, all.new), (3, ids.len() as u64 - 3));
    let (_other, mut whole) = project("weak:premature-stop@0.15", 16);
    assert_eq!(pipeline::replay(&mut whole, &ids, &config, &mut ()).unwrap().summary, all.summary);
}

#[test]
fn both_outcomes_are_kept_as_runs_and_only_what_passed_is_a_repair() {
    let (_folder, mut store) = project("weak:premature-stop@0.15", 16);
    let before = store.list(&Filter::default(), Page::ALL).unwrap().len();
    let done = replay(&mut store, &config(2, Proposer::Expert));
    assert!(done.decisive.0 > 0 && done.decisive.1 == done.runs, "{done:?}");
    assert_eq!(store.list(&Filter::default(), Page::ALL).unwrap().len(), before, "continuations stand apart");
    let everything = Filter { continuations: true, ..Filter::default() };
    let all = store.list(&everything, Page::ALL).unwrap().len();
    let continued: usize =
        pairs(&store).iter().flat_map(|pair| &pair.arms).map(|arm| arm.continuations.len()).sum();
    assert_eq!(all - before, continued);
    let repairs = store.of_kind("repair").unwrap().len();
    assert_eq!(repairs as u64, done.summary.arms["repair"].passed);
    assert!(repairs > 0 && done.summary.arms["retry"].rate < done.summary.arms["repair"].rate, "{done:?}");
    assert!(store.pending("diagnosis", recoup::diagnosis::RULES_VERSION).unwrap().is_empty());
    assert!(store.verify(&mut |_, _| {}).unwrap().is_clean());
    // Continuations hold the messages of the run, and go with it.
    let id = pipeline::replayable(&store).unwrap()[0];
    store.forget(&[id]).unwrap();
    let left = store.list(&everything, Page::ALL).unwrap();
    for row in left {
        assert_ne!(store.load(row.id).unwrap().origin.map(|origin| origin.trajectory), Some(id));
    }
}

#[test]
fn a_changed_record_is_unsupported_and_counted() {
    let (_folder, mut store) = project("weak:premature-stop@0.15", 16);
    let ids = pipeline::replayable(&store).unwrap();
    let mut run = store.load(ids[0]).unwrap();
    let last = run.nodes.iter().position(|node| node.occurrence.sampled).unwrap() + 1;
    observation(&mut run, last).unwrap().push('!');
    let mut old = store.load(ids[1]).unwrap();
    old.environment.as_mut().unwrap().version = Some("0.9.0+0".to_owned());
    let mut sink = store.import(NOW).unwrap();
    sink.trajectory(run, &NativeId::Named("changed".to_owned()), Vec::new()).unwrap();
    sink.trajectory(old, &NativeId::Named("old".to_owned()), Vec::new()).unwrap();
    sink.finish().unwrap();
    pipeline::diagnose(&mut store, NOW, 2, &mut ()).unwrap();
    let done = replay(&mut store, &config(2, Proposer::Expert));
    assert!(done.summary.reasons["environment-version"] == 1, "{:?}", done.summary.reasons);
    assert!(done.summary.reasons["diverged"] == 1, "{:?}", done.summary.reasons);
    assert_eq!(done.regraded, 1, "its observations cannot be reproduced");
}

#[test]
fn a_score_that_cannot_be_reproduced_is_the_verifiers() {
    let environment = environment("quest");
    let (mut run, _) = play(&*environment, &policies::Expert, 3);
    assert_eq!(recoup::replay::regrade(&run, &*environment).unwrap().blame(), None);
    run.finish(recoup::trajectory::Outcome::from_flag(false, "success"));
    let blame = recoup::replay::regrade(&run, &*environment).unwrap().blame().unwrap();
    assert_eq!((blame.party.as_str(), blame.rule.as_str()), ("verifier", "regrade"));
}

#[test]
fn an_injected_fault_is_where_its_label_says() {
    let (_folder, mut store) = project("expert", 12);
    let policy = policies::parse("weak:skip-step@0.1").unwrap();
    let config = ReplayConfig { policy: Some(&*policy), ..config(2, Proposer::Rules) };
    let done = pipeline::inject(&mut store, 12, &config, &mut ()).unwrap();
    assert!(done.tried == 12 && done.kept > 0, "{done:?}");
    let filter = Filter { continuations: true, ..Filter::default() };
    let mut labels = 0;
    for row in store.list(&filter, Page::ALL).unwrap() {
        let run = store.load(row.id).unwrap();
        if run.origin.is_none() {
            continue;
        }
        assert_eq!(run.outcome().status, Status::Failure);
        assert!(run.extra.contains_key("injected"));
        let verdicts = store.verdicts(row.id).unwrap();
        let label = verdicts.iter().find_map(|verdict| match &verdict.content {
            Content::ReferenceLabel(label) => Some(label),
            _ => None,
        });
        let label = label.expect("a label");
        assert!(run.nodes[label.node.unwrap()].occurrence.sampled);
        labels += 1;
    }
    assert_eq!(labels, done.kept);
}
