//! A stored run, opened where it happened.

use serde::Deserialize;

use super::recorded::Recorded;
use super::volatile::Volatile;
use super::{Checkpoints, ReplayError};
use crate::environments::{Environment, Instance, TaskSpec};
use crate::id::Hash;
use crate::rollout::EpisodeLimits;
use crate::trajectory::Trajectory;

/// A stored run with its task opened.
pub struct Reopened {
    /// The task that it was given.
    pub task: TaskSpec,
    /// The task, opened.
    pub instance: Box<dyn Instance>,
    /// The episode as recorded.
    pub recorded: Recorded,
    /// What the environment declares volatile.
    pub volatile: Volatile,
    /// What the run could spend, what it has spent included.
    pub limits: EpisodeLimits,
}

/// What brings an environment to a task's first state.
#[derive(Deserialize)]
struct Reset {
    seed: u64,
    difficulty: u8,
}

impl Reopened {
    /// Opens a stored run in its environment, which must be of the run's name and version.
    ///
    /// # Errors
    /// A [`ReplayError`] that says why this run cannot be replayed there.
    pub fn open(run: &Trajectory, environment: &dyn Environment) -> Result<Self, ReplayError> {
        let identity = environment.identity();
        let recorded = run.environment.as_ref().ok_or(ReplayError::NoEnvironment)?;
        let (name, version) = (&identity.manifest.name, identity.version());
        if recorded.name != *name || recorded.version.as_ref().is_some_and(|recorded| *recorded != version) {
            let recorded = recorded.version.clone().unwrap_or_default();
            return Err(ReplayError::Version { environment: name.clone(), recorded, known: version });
        }
        let reset =
            recorded.reset.as_ref().and_then(|reset| serde_json::from_str::<Reset>(reset.as_str()).ok());
        let Some(Reset { seed, difficulty: difficulty @ 1..=3 }) = reset else {
            return Err(ReplayError::Reset { environment: name.clone() });
        };
        let task = environment.generate(seed, difficulty)?;
        let recorded = Recorded::read(run)?;
        let limits = EpisodeLimits::of(run.budget.as_ref(), &task);
        Ok(Self {
            instance: environment.open(&task)?,
            volatile: Volatile::of(&identity.manifest),
            task,
            recorded,
            limits,
        })
    }

    /// Executes the run again up to, not including, a turn, or to its end.
    ///
    /// # Errors
    /// As [`Checkpoints::take`].
    pub fn execute(&mut self, until: Option<usize>) -> Result<Checkpoints, ReplayError> {
        Checkpoints::take(&mut *self.instance, &self.recorded, &self.volatile, until)
    }

    /// Hash of the conditions under which the run is continued: pairs are pooled only where it is equal.
    /// A budget that is the task's own counts as the same rule in every task.
    pub fn config_hash(&self, run: &Trajectory, environment: &dyn Environment, policy: &str) -> Hash {
        let harness = run.harness.as_ref();
        let EpisodeLimits { turns, tokens, milliseconds } = self.limits;
        let mut budget = turns.map_or_else(|| "the task's own".to_owned(), |turns| format!("{turns} turns"));
        for (most, unit) in [(tokens, "tokens"), (milliseconds, "ms")] {
            budget.extend(most.map(|most| format!(", {most} {unit}")));
        }
        let fields = [
            policy,
            harness.map_or("", |harness| &harness.name),
            harness.and_then(|harness| harness.version.as_deref()).unwrap_or_default(),
            &budget,
            &environment.identity().manifest.name,
            &environment.identity().version(),
        ];
        Hash::of_all(&fields.map(str::as_bytes))
    }
}
