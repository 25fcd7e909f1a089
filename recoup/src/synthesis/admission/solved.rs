//! The teacher's run of a seed: what the gates measure others against.

use super::Seed;
use crate::environments::{Action, Environment, EnvironmentError, Exchange, Score, State, Step, TaskSpec};
use crate::rollout::policies::Expert;
use crate::rollout::{Conditions, End, Keep, PolicyError, run};

pub(super) struct Solved {
    pub(super) task: TaskSpec,
    pub(super) first_observation: String,
    pub(super) actions: Vec<Action>,
    pub(super) steps: Vec<Step>,
    /// The first state, then one after each action.
    pub(super) states: Vec<State>,
    pub(super) score: Score,
}

impl Solved {
    pub(super) fn play(environment: &dyn Environment, seed: Seed) -> Result<Self, EnvironmentError> {
        let task = environment.generate(seed.seed, seed.difficulty)?;
        let mut instance = environment.open(&task)?;
        let conditions = Conditions { keep: Keep::States, ..Conditions::default() };
        let episode = run(&mut *instance, &task, &Expert, conditions);
        let name = &environment.identity().manifest.name;
        let score = match episode.end {
            End::Environment(error) | End::Policy(PolicyError::Environment(error)) => return Err(error),
            _ => episode.score.unwrap_or(Score { success: false, score: 0.0, checks: [].into() }),
        };
        let (actions, steps) =
            episode.transcript.into_iter().map(|exchange| (exchange.action, exchange.step)).unzip();
        let solved = Self {
            task,
            first_observation: episode.first_observation,
            actions,
            steps,
            states: episode.checkpoints,
            score,
        };
        debug_assert!(solved.states.len() == solved.steps.len() + 1, "{name}");
        Ok(solved)
    }

    pub(super) fn exchanges(&self) -> impl Iterator<Item = Exchange> + '_ {
        self.actions
            .iter()
            .zip(&self.steps)
            .map(|(action, step)| Exchange { action: action.clone(), step: step.clone() })
    }

    pub(super) fn end(&self) -> Option<&State> {
        self.states.last()
    }
}
