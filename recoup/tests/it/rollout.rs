//! Rollouts: policies act in the bundled environments, and leave ordinary runs.

use std::sync::Arc;

use recoup::environments::{
    Action, Driver, Environment, EnvironmentError, Exchange, Fault, Goal, Identity, Instance, Score, State,
    Step, TaskSpec, ToolSpec, bundled, run_by_value,
};
use recoup::id::Hash;
use recoup::json::Json;
use recoup::rollout::policies::{self, STYLES, Scripted};
use recoup::rollout::{
    Advice, Collected, Conditions, End, Episode, EpisodeLimits, Keep, Plan, Policy, PolicyError, Situation,
    Spent, TakesAdvice, Turn, collect, run,
};
use recoup::store::{Filter, Page, Row, Store};
use recoup::trajectory::{Status, TerminationKind};

use crate::store::{assert_clean, project};

const NOW: &str = "2026-01-01T00:00:00Z";

fn open(name: &str) -> Box<dyn Environment> {
    bundled::open(name).unwrap().unwrap()
}

/// Names of a policy of every kind, and of every style.
fn every_policy() -> Vec<String> {
    let styles = STYLES.iter().map(|style| format!("weak:{}@0.4", style.name()));
    let others = ["expert", "random", "mixture:expert+random@0.5"];
    styles.chain(others.map(str::to_owned)).collect()
}

fn plan(tasks: u64) -> Plan {
    Plan::new(tasks, 7)
}

fn gather(store: &mut Store, policy: &str, plan: &Plan, threads: usize) -> Collected {
    let policy = policies::parse(policy).unwrap();
    collect(store, &*open("quest"), &*policy, plan, threads, NOW, &mut ()).unwrap()
}

fn rows(store: &Store) -> Vec<Row> {
    store.list(&Filter::default(), Page::ALL).unwrap()
}

/// An instance whose every step goes through bytes.
struct ByValue(Box<dyn Instance>);

impl Instance for ByValue {
    fn tools(&self) -> &Arc<[ToolSpec]> {
        self.0.tools()
    }

    fn start(&mut self) -> Result<(State, String), EnvironmentError> {
        self.0.start()
    }

    fn step(&mut self, state: &State, action: &Action) -> Result<(State, Step), EnvironmentError> {
        self.0.step(state, action)
    }

    fn verify(&mut self, state: &State, transcript: &[Exchange]) -> Result<Score, EnvironmentError> {
        self.0.verify(state, transcript)
    }

    fn expert(&mut self, state: &State) -> Result<Option<Action>, EnvironmentError> {
        self.0.expert(state)
    }

    fn achieved(&mut self, state: &State) -> Result<Vec<Goal>, EnvironmentError> {
        self.0.achieved(state)
    }

    fn run(&mut self, from: Option<&State>, driver: &mut dyn Driver) -> Result<State, EnvironmentError> {
        run_by_value(&mut *self.0, from, driver)
    }
}

/// An episode with every state kept.
fn play(name: &str, seed: u64, difficulty: u8, policy: &dyn Policy, by_value: bool) -> Episode {
    let environment = open(name);
    let task = environment.generate(seed, difficulty).unwrap();
    let mut instance = environment.open(&task).unwrap();
    if by_value {
        instance = Box::new(ByValue(instance));
    }
    let conditions = Conditions { seed: seed + 100, keep: Keep::States, ..Conditions::default() };
    run(&mut *instance, &task, policy, conditions)
}

fn shown(episode: &Episode) -> String {
    format!(
        "{} {:?} {:?} {:?} {:?}",
        episode.end.as_str(),
        episode.transcript,
        episode.hashes,
        episode.state,
        episode.score
    )
}

#[test]
fn memory_and_bytes_give_the_same_episode() {
    for name in bundled::names() {
        for (seed, policy) in every_policy().iter().enumerate() {
            let policy = policies::parse(policy).unwrap();
            let (seed, difficulty) = (seed as u64, 1 + (seed % 2) as u8);
            let kept = play(name, seed, difficulty, &*policy, false);
            let through_bytes = play(name, seed, difficulty, &*policy, true);
            assert_eq!(shown(&kept), shown(&through_bytes), "{name} {}", policy.name());
            assert_eq!(kept.hashes.len(), kept.executed().len() + 1);
        }
    }
}

#[test]
fn the_expert_passes_and_every_habit_costs_runs() {
    let passed = |name: &str, policy: &str| {
        let policy = policies::parse(policy).unwrap();
        (0..4).filter(|seed| play(name, *seed, 1, &*policy, false).succeeded()).count()
    };
    for name in bundled::names() {
        assert_eq!(passed(name, "expert"), 4, "{name}");
    }
    for style in STYLES {
        let often = format!("weak:{}@0.9", style.name());
        let harmed = bundled::names().filter(|name| passed(name, &often) < 4).count();
        // An environment where everything can be made good, and in time, forgives some of them.
        assert!(harmed >= 3, "{often} fails in {harmed} packages");
    }
}

#[test]
fn a_project_is_the_same_whatever_the_number_of_threads() {
    let all = |threads| {
        let (_dir, mut store) = project();
        gather(&mut store, "weak:wrong-variant@0.3", &plan(80), threads);
        assert_clean(&store);
        rows(&store)
    };
    let one = all(1);
    assert_eq!(one.len(), 80);
    assert!(one.iter().any(|row| row.outcome == "failure") && one.iter().any(|row| row.outcome == "success"));
    assert_eq!(one, all(2));
    assert_eq!(one, all(8));
}

#[test]
fn what_is_stored_is_not_run_again() {
    let (_dir, mut store) = project();
    let first = gather(&mut store, "weak:loop@0.3", &plan(10), 2);
    assert_eq!((first.episodes, first.new), (10, 10));
    let more = gather(&mut store, "weak:loop@0.3", &plan(16), 2);
    assert_eq!((more.episodes, more.new), (16, 6));
    let again = gather(&mut store, "weak:loop@0.3", &plan(16), 1);
    assert_eq!(again, Collected { new: 0, ..more });
    let twice = gather(&mut store, "weak:loop@0.3", &Plan { trials: 2, ..plan(16) }, 2);
    assert_eq!((twice.episodes, twice.new), (32, 16));
    assert_eq!(rows(&store).len(), 32);
}

#[test]
fn a_run_says_where_it_happened_and_what_decided_it() {
    let (_dir, mut store) = project();
    gather(&mut store, "weak:premature-stop@0.5", &Plan { keep: Keep::States, ..plan(12) }, 2);
    let identity = open("quest").identity().version();
    let mut failed = 0;
    for row in rows(&store) {
        let run = store.load(row.id).unwrap();
        let environment = run.environment.as_ref().unwrap();
        assert_eq!(environment.version.as_deref(), Some(identity.as_str()));
        assert!(run.task.key.0.starts_with("quest/") && !run.task.derived);
        assert_eq!(run.task.template_key.as_deref().map(|key| key.starts_with("quest/")), Some(true));
        assert!(run.hidden.verifier_output.is_some());
        assert_eq!(run.model("assistant"), Some("weak:premature-stop@0.5"));
        assert_eq!(run.extra["takes_advice"].as_str(), "\"synthetic\"");
        for node in &run.nodes {
            let occurrence = &node.occurrence;
            assert_eq!(occurrence.state_hash.is_none(), occurrence.sampled);
            let Some(state) = occurrence.checkpoint else { continue };
            assert_eq!(Some(state), occurrence.state_hash);
            let bytes = store.media(state).unwrap().unwrap();
            assert_eq!(Hash::of(&bytes), state);
        }
        failed += u32::from(run.outcome().status == Status::Failure);
    }
    assert!(failed > 0);
    store.gc().unwrap();
    assert_clean(&store);
}

#[test]
fn an_episode_continues_from_any_turn_as_it_went() {
    let environment = open("quest");
    let policy = policies::parse("weak:wrong-variant@0.3").unwrap();
    for seed in 0..6 {
        let task = environment.generate(seed, 2).unwrap();
        let mut instance = environment.open(&task).unwrap();
        let kept = || Conditions { seed, keep: Keep::States, ..Conditions::default() };
        let whole = run(&mut *instance, &task, &*policy, kept());
        // What an action has ended cannot be continued.
        for turn in 0..whole.turns.len() {
            let prefix = whole.prefix_before(turn).unwrap();
            let rest = run(&mut *instance, &task, &*policy, Conditions { from: Some(&prefix), ..kept() });
            assert_eq!((&rest.transcript, &rest.turns), (&whole.transcript, &whole.turns), "turn {turn}");
            assert_eq!((rest.state, rest.score), (whole.state.clone(), whole.score.clone()));
            assert_eq!(rest.hashes, whole.hashes[turn..]);
        }
    }
}

#[test]
fn advice_is_given_once_and_a_forced_turn_is_taken_unasked() {
    struct Listener(std::sync::Mutex<Vec<bool>>);
    impl Policy for Listener {
        fn name(&self) -> &'static str {
            "listener"
        }

        fn act(
            &self,
            situation: &Situation<'_>,
            scene: &mut dyn recoup::environments::Scene,
        ) -> Result<Turn, PolicyError> {
            self.0.lock().unwrap().push(situation.advice.is_some());
            Ok(scene.expert()?.map(Turn::from).unwrap_or_default())
        }

        fn advice(&self) -> TakesAdvice {
            TakesAdvice::Read
        }
    }
    let environment = open("quest");
    let task = environment.generate(1, 1).unwrap();
    let mut instance = environment.open(&task).unwrap();
    let listener = Listener(std::sync::Mutex::default());
    let advice = Some(&Advice::Reconsider);
    run(&mut *instance, &task, &listener, Conditions { advice, ..Conditions::default() });
    let heard = std::mem::take(&mut *listener.0.lock().unwrap());
    assert!(heard[0] && heard.len() > 1 && heard[1..].iter().all(|heard| !heard));

    let first = Some(Turn::from(Action::call("look", Json::parse("{}").unwrap())));
    let forced = run(&mut *instance, &task, &listener, Conditions { first, ..Conditions::default() });
    assert!(matches!(&forced.transcript[0].action, Action::Call { tool, .. } if &**tool == "look"));
    assert_eq!(listener.0.lock().unwrap().len(), forced.turns.len() - 1);
}

/// Takes the same turn again and again.
struct Always(Turn);

impl Policy for Always {
    fn name(&self) -> &'static str {
        "always"
    }

    fn act(&self, _: &Situation<'_>, _: &mut dyn recoup::environments::Scene) -> Result<Turn, PolicyError> {
        Ok(self.0.clone())
    }
}

#[test]
fn calls_behind_the_end_of_the_episode_come_too_late() {
    let look = Action::call("look", Json::parse("{}").unwrap());
    let actions = vec![look.clone(), Action::say("I stop."), look.clone(), look];
    let hasty = Always(Turn { actions, ..Turn::default() });
    let episode = play("quest", 0, 1, &hasty, false);
    assert!(matches!(episode.end, End::Stopped));
    assert_eq!((episode.transcript.len(), episode.executed().len(), episode.turns.len()), (4, 2, 1));
    assert!(episode.transcript[2..].iter().all(|exchange| exchange.step.is_error));
    assert!(episode.score.is_some_and(|score| !score.success));
}

#[test]
fn budgets_end_an_episode() {
    let look = Action::call("look", Json::parse("{}").unwrap());
    let spent = Spent { tokens: 10, milliseconds: 100, ..Spent::default() };
    let costly = Always(Turn { actions: vec![look], spent, ..Turn::default() });
    let environment = open("quest");
    let task = environment.generate(0, 1).unwrap();
    let mut instance = environment.open(&task).unwrap();
    let mut ended = |limits| {
        let conditions = Conditions { limits, ..Conditions::default() };
        let episode = run(&mut *instance, &task, &costly, conditions);
        (episode.end.as_str(), episode.turns.len())
    };
    let none = EpisodeLimits::default();
    assert_eq!(ended(EpisodeLimits { turns: Some(3), ..none }), ("max_steps", 3));
    assert_eq!(ended(EpisodeLimits { tokens: Some(20), ..none }), ("max_tokens", 2));
    assert_eq!(ended(EpisodeLimits { milliseconds: Some(350), ..none }), ("max_time", 4));
    let script = Scripted::new(vec![Action::call("look", Json::parse("{}").unwrap())]);
    assert_eq!(play("quest", 0, 1, &script, false).end.as_str(), "stopped");
}

/// An environment that breaks, in one of several places.
struct Broken {
    inner: Box<dyn Environment>,
    at: &'static str,
}

struct BrokenInstance {
    inner: Box<dyn Instance>,
    at: &'static str,
    steps: u32,
}

fn broken() -> EnvironmentError {
    EnvironmentError::new("quest", Fault::Crash, "it broke")
}

impl Environment for Broken {
    fn identity(&self) -> &Identity {
        self.inner.identity()
    }

    fn generate(&self, seed: u64, difficulty: u8) -> Result<TaskSpec, EnvironmentError> {
        if self.at == "generate" { Err(broken()) } else { self.inner.generate(seed, difficulty) }
    }

    fn open(&self, task: &TaskSpec) -> Result<Box<dyn Instance>, EnvironmentError> {
        if self.at == "open" {
            return Err(broken());
        }
        Ok(Box::new(BrokenInstance { inner: self.inner.open(task)?, at: self.at, steps: 0 }))
    }
}

impl Instance for BrokenInstance {
    fn tools(&self) -> &Arc<[ToolSpec]> {
        self.inner.tools()
    }

    fn start(&mut self) -> Result<(State, String), EnvironmentError> {
        self.inner.start()
    }

    fn step(&mut self, state: &State, action: &Action) -> Result<(State, Step), EnvironmentError> {
        self.steps += 1;
        if self.at == "step" && self.steps == 3 { Err(broken()) } else { self.inner.step(state, action) }
    }

    fn verify(&mut self, state: &State, transcript: &[Exchange]) -> Result<Score, EnvironmentError> {
        if self.at == "verify" { Err(broken()) } else { self.inner.verify(state, transcript) }
    }

    fn expert(&mut self, state: &State) -> Result<Option<Action>, EnvironmentError> {
        match self.at {
            "expert" => Err(broken()),
            "no expert" => Ok(None),
            _ => self.inner.expert(state),
        }
    }

    fn achieved(&mut self, state: &State) -> Result<Vec<Goal>, EnvironmentError> {
        self.inner.achieved(state)
    }

    fn run(&mut self, from: Option<&State>, driver: &mut dyn Driver) -> Result<State, EnvironmentError> {
        run_by_value(self, from, driver)
    }
}

#[test]
fn an_error_is_on_the_record_and_never_a_failed_run() {
    for (at, mode, code) in [
        ("generate", "environment_error", "environment-crash"),
        ("open", "environment_error", "environment-crash"),
        ("step", "environment_error", "environment-crash"),
        ("verify", "environment_error", "environment-crash"),
        ("expert", "environment_error", "environment-crash"),
        ("no expert", "policy_error", "policy"),
    ] {
        let (_dir, mut store) = project();
        let environment = Broken { inner: open("quest"), at };
        let policy = policies::parse("expert").unwrap();
        let collected = collect(&mut store, &environment, &*policy, &plan(5), 2, NOW, &mut ()).unwrap();
        assert_eq!((collected.episodes, collected.new, collected.scored), (5, 5, 0), "{at}");
        assert_eq!(collected.end_modes.get(mode), Some(&5), "{at}");
        assert_eq!(collected.errors[code].0, 5, "{at}");
        for row in rows(&store) {
            let run = store.load(row.id).unwrap();
            assert_eq!(run.outcome().status, Status::Unknown, "{at}");
            assert_eq!(run.outcome().termination_kind(), Some(TerminationKind::InfrastructureError));
            assert!(run.extra.contains_key("error"));
        }
        assert_clean(&store);
        let again = collect(&mut store, &environment, &*policy, &plan(5), 2, NOW, &mut ()).unwrap();
        assert_eq!(again, Collected { new: 0, ..collected }, "{at}");
    }
}
