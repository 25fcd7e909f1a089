//! Environments: the bundled packages, and what broken ones may not do.

use recoup::environments::{Action, Driver, Environment, EnvironmentError, Exchange, Scene, Step, bundled};

/// Lets the expert act and keeps what happened.
#[derive(Default)]
struct Expert {
    transcript: Vec<Exchange>,
    pending: Option<Action>,
}

impl Driver for Expert {
    fn act(&mut self, step: Step, scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError> {
        let done = step.done;
        if let Some(action) = self.pending.take() {
            self.transcript.push(Exchange { action, step });
        }
        if done || self.transcript.len() > 200 {
            return Ok(None);
        }
        self.pending = scene.expert()?;
        Ok(self.pending.clone())
    }
}

fn solve(name: &str, package: &dyn Environment, seed: u64, difficulty: u8) {
    let task = package.generate(seed, difficulty).unwrap();
    let mut instance = package.open(&task).unwrap();
    let mut expert = Expert::default();
    let state = instance.run(None, &mut expert).unwrap();
    let score = instance.verify(&state, &expert.transcript).unwrap();
    assert!(score.success, "{name}: {}: {score:?}", task.key(name));
    assert!(expert.transcript.len() as u64 <= task.max_steps, "{name}: {}", task.key(name));
}

#[test]
fn experts_solve_every_family_and_difficulty() {
    for name in bundled::names() {
        let package = bundled::open(name).unwrap().unwrap();
        for difficulty in 1..=3 {
            (0..60).for_each(|seed| solve(name, &*package, seed, difficulty));
        }
    }
}

#[test]
fn an_address_is_not_named_by_one_that_ends_with_it() {
    // Two new addresses: 553 Oak Street, and 53 Oak Street.
    solve("desk", &*bundled::open("desk").unwrap().unwrap(), 9570, 3);
}
