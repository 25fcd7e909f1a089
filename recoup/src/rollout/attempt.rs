//! An attempt: one assignment of a plan, played to its end or to what kept it from beginning, and its record.

use std::sync::Arc;

use super::{Assignment, Conditions, End, Episode, Keep, Plan, Policy, Recording, record, run};
use crate::environments::{Environment, EnvironmentError, Identity, TaskSpec, ToolSpec};
use crate::trajectory::{NativeId, Trajectory};

/// What was played, and how it went.
pub(super) struct Attempt {
    pub task: TaskSpec,
    pub tools: Arc<[ToolSpec]>,
    pub episode: Episode,
}

impl Attempt {
    /// Plays an assignment. `keep` is what is kept of its states.
    pub(super) fn play(
        environment: &dyn Environment,
        policy: &dyn Policy,
        plan: &Plan,
        assignment: &Assignment,
        keep: Keep,
    ) -> Self {
        let failed = |task, error| Self { task, tools: Arc::default(), episode: broken(error) };
        let task = match environment.generate(assignment.task_seed, assignment.difficulty) {
            Ok(task) => task,
            Err(error) => return failed(unmade(assignment), error),
        };
        let mut instance = match environment.open(&task) {
            Ok(instance) => instance,
            Err(error) => return failed(task, error),
        };
        let conditions = Conditions {
            seed: assignment.seed,
            rules: environment.identity().policy.as_deref(),
            limits: plan.limits,
            keep,
            ..Conditions::default()
        };
        let episode = run(&mut *instance, &task, policy, conditions);
        let tools = instance.tools().clone();
        Self { task, tools, episode }
    }

    /// The record of it, under the policy's name.
    pub(super) fn record(
        &self,
        identity: &Identity,
        policy: &dyn Policy,
        plan: &Plan,
        assignment: &Assignment,
    ) -> (Trajectory, NativeId) {
        let recording = Recording {
            identity,
            task: &self.task,
            tools: &self.tools,
            policy,
            seed: assignment.seed,
            trial: assignment.trial,
            limits: plan.limits,
            origin: None,
            advice: None,
        };
        record(&self.episode, &recording)
    }
}

/// The episode of an environment that could not even be started.
fn broken(error: EnvironmentError) -> Episode {
    Episode {
        first_observation: String::new(),
        transcript: Vec::new(),
        turns: Vec::new(),
        prefix_turns: 0,
        end: End::Environment(error),
        state: None,
        score: None,
        hashes: Vec::new(),
        checkpoints: Vec::new(),
    }
}

/// The task of an environment that could not make it.
fn unmade(assignment: &Assignment) -> TaskSpec {
    TaskSpec {
        seed: assignment.task_seed,
        difficulty: assignment.difficulty,
        family: assignment.family.clone(),
        goal: String::new(),
        max_steps: 0,
        json: "".into(),
    }
}
