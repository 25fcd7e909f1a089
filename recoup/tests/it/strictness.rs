//! Strictness: a stored run is reproduced to the byte or not at all, and a checkpoint goes on as the run did.

use proptest::prelude::{ProptestConfig, any, prop_assert, prop_assert_eq, proptest};
use recoup::environments::{Action, Instance, State, bundled, rand};
use recoup::replay::{Checkpoints, Recorded, Reopened, ReplayError};
use recoup::rollout::{Conditions, policies, run};
use recoup::trajectory::{Role, Trajectory};

use crate::harness::slow_tests;
use crate::replay::{environment, observation, runs};

#[test]
fn a_stored_run_executes_again_and_its_checkpoints_go_on_as_it_did() {
    for (environment, run) in runs(11) {
        let mut reopened = Reopened::open(&run, &*environment).unwrap();
        let all = reopened.execute(None).unwrap();
        assert_eq!(all.turns(), reopened.recorded.turns.len());
        for turn in 0..=all.turns() {
            let until = reopened.execute(Some(turn)).unwrap();
            assert_eq!(until.state(turn), all.state(turn), "turn {turn}");
            let (Some(mut state), Some(prefix)) = (all.state(turn).cloned(), all.before(turn)) else {
                continue;
            };
            let seen: usize = prefix.turns.iter().map(|turn| turn.exchanges).sum();
            for exchange in &all.executed()[seen..] {
                let (next, step) = reopened.instance.step(&state, &exchange.action).unwrap();
                assert_eq!(step, exchange.step);
                state = next;
            }
            assert_eq!(Some(&state), all.state(all.turns()), "from turn {turn}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the package, the task, the policy and the step: what is restored from bytes, in an instance that
    /// has seen nothing of the run, sees, does and scores the same, kept in memory and step by step.
    #[test]
    fn a_restored_checkpoint_never_differs_from_a_straight_run(
        package in 0..5_usize, seed in any::<u32>(), policy in any::<usize>(), cut in any::<usize>(),
    ) {
        let environment = environment(bundled::names().nth(package).unwrap());
        let task = environment.generate(seed.into(), 1 + (seed % 3) as u8).unwrap();
        let open = || environment.open(&task).unwrap();
        let style = policies::STYLES.get(policy % (policies::STYLES.len() + 1));
        let name = style.map_or_else(|| "random".to_owned(), |style| format!("weak:{}@0.3", style.name()));
        let policy = policies::parse(&name).unwrap();
        let rules = environment.identity().policy.as_deref();
        let conditions = Conditions { seed: seed.into(), rules, ..Conditions::default() };
        let episode = run(&mut *open(), &task, &*policy, conditions);
        let exchanges = episode.executed();
        let actions: Vec<Action> = exchanges.iter().map(|exchange| exchange.action.clone()).collect();
        let cut = cut % (actions.len() + 1);

        let (kept, _) = open().run_actions(None, &actions[..cut]).unwrap();
        let mut other: Box<dyn Instance> = open();
        let restored = State::new(kept.as_str());
        let (end, steps) = other.run_actions(Some(&restored), &actions[cut..]).unwrap();
        prop_assert_eq!(Some(&end), episode.state.as_ref());
        prop_assert!(steps.iter().skip(1).eq(exchanges[cut..].iter().map(|exchange| &exchange.step)));
        let mut state = restored;
        for exchange in &exchanges[cut..] {
            let (next, step) = other.step(&state, &exchange.action).unwrap();
            prop_assert_eq!(&step, &exchange.step);
            state = State::new(next.as_str());
        }
        prop_assert_eq!(state.hash(), end.hash());
        prop_assert_eq!(Some(other.verify(&state, exchanges).unwrap()), episode.score);
    }
}

#[test]
fn mutated_observations_are_caught_where_they_stand() {
    assert_eq!(caught(4, 15), 5 * 4 * 15);
}

#[test]
fn ten_thousand_mutated_observations_are_caught_where_they_stand() {
    if slow_tests() {
        assert_eq!(caught(50, 40), 10_000);
    }
}

/// Changes observations of stored runs, so many of each of so many runs a package, and counts those that are
/// caught; one that is not is a panic.
fn caught(seeds: u64, of_each: u64) -> u64 {
    let mut caught = 0;
    for (number, (environment, run)) in runs(seeds).enumerate() {
        let mut reopened = Reopened::open(&run, &*environment).unwrap();
        let volatile = reopened.volatile.clone();
        for draw in 0..of_each {
            let (mutated, position) = mutate(&run, (number as u64) << 32 | draw);
            let recorded = Recorded::read(&mutated).unwrap();
            match Checkpoints::take(&mut *reopened.instance, &recorded, &volatile, None) {
                Err(ReplayError::Diverged(divergence)) => assert_eq!(divergence.node, position),
                other => panic!("run {number}, draw {draw}, node {position}: {:?}", other.map(|_| ())),
            }
            caught += 1;
        }
    }
    caught
}

/// The run with one observation changed, and where it stands.
fn mutate(run: &Trajectory, seed: u64) -> (Trajectory, usize) {
    for attempt in 0.. {
        let draw = |what: &str, n: usize| rand(seed, what, attempt, n as u64) as usize;
        let mut mutated = run.clone();
        let shown: Vec<String> = (0..run.nodes.len())
            .filter_map(|position| observation(&mut mutated, position).cloned())
            .collect();
        let position = draw("node", run.nodes.len());
        if run.nodes[position].occurrence.sampled || run.nodes[position].role == Role::System {
            continue;
        }
        let Some(text) = observation(&mut mutated, position) else { continue };
        let mut chars: Vec<char> = text.chars().collect();
        let at = draw("place", chars.len().max(1));
        match (draw("kind", 6), chars.get(at).copied()) {
            (0, _) => chars.insert(at, 'x'),
            (1, Some(_)) => drop(chars.remove(at)),
            (2, Some(old)) => chars[at] = if old == 'x' { 'y' } else { 'x' },
            (3, Some(old)) => {
                chars[at] =
                    if old.is_uppercase() { old.to_ascii_lowercase() } else { old.to_ascii_uppercase() }
            }
            (4, Some(_)) => chars.truncate(at),
            // What was shown elsewhere.
            _ => chars = shown[draw("other", shown.len())].chars().collect(),
        }
        let changed: String = chars.into_iter().collect();
        if changed != *text {
            *text = changed;
            return (mutated, position);
        }
    }
    unreachable!("attempts have no end")
}
