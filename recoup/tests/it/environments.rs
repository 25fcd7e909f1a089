//! Environments: the bundled packages, and what broken ones may not do.

use recoup::environments::{Action, Driver, EnvironmentError, Exchange, Scene, Step, bundled};

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

#[test]
fn experts_solve_every_family_and_difficulty() {
    for name in bundled::names() {
        let package = bundled::open(name).unwrap().unwrap();
        for difficulty in 1..=3 {
            for seed in 0..60 {
                let task = package.generate(seed, difficulty).unwrap();
                let mut instance = package.open(&task).unwrap();
                let mut expert = Expert::default();
                let state = instance.run(None, &mut expert).unwrap();
                let score = instance.verify(&state, &expert.transcript).unwrap();
                assert!(score.success, "{name}: {}: {score:?}", task.key(name));
                assert!(expert.transcript.len() as u64 <= task.max_steps, "{name}: {}", task.key(name));
            }
        }
    }
}
