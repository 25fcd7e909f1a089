//! Environments: worlds that a policy acts in, as functions over values.
//!
//! * A state is a value: a checkpoint is a copy of it, a fork is another step from the copy.
//! * Nothing depends on what was called before: `step` of the same task, state and action gives the
//!   same bytes, in this process or another, in memory or from a file.
//! * A broken environment is an [`EnvironmentError`], never a failed run or a score of 0.
//! * A verifier is a program; no environment calls a model.
//!
//! [`Environment`] makes and opens tasks; [`Instance`] is one task opened. [`package`] runs environments
//! that are data (`environments/README.md`), [`bundled`] are those that come with the program, [`worker`]
//! runs any other package in a process of its own, [`bridge`] drives programs that speak for a simulator.

mod action;
mod arguments;
#[cfg(all(feature = "packages", unix))]
pub mod bridge;
#[cfg(feature = "packages")]
pub mod bundled;
mod chance;
#[cfg(all(feature = "packages", unix))]
pub mod child;
mod error;
mod manifest;
#[cfg(all(feature = "packages", unix))]
mod opening;
#[cfg(feature = "packages")]
pub mod package;
mod state;
mod task_spec;
#[cfg(all(feature = "packages", unix))]
pub mod worker;

pub use self::action::{Action, Exchange, Goal, Score, Step};
pub(crate) use self::arguments::refusal;
pub use self::arguments::{ArgumentKind, Parameter, ToolSpec};
pub use self::chance::rand;
pub use self::error::{EnvironmentError, Fault};
pub use self::manifest::{Limits, Manifest};
#[cfg(all(feature = "packages", unix))]
pub use self::opening::{Opening, open, open_folder};
pub use self::state::{CheckpointKind, State};
pub use self::task_spec::TaskSpec;

use std::sync::Arc;

use crate::id::Hash;
use crate::json::Json;

/// What an environment is, apart from any task.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Name, version, families and limits.
    pub manifest: Manifest,
    /// Hash of everything that decides its behavior.
    pub hash: Hash,
    /// The written policy that its agents must follow.
    pub policy: Option<String>,
    /// What a checkpoint is here.
    pub checkpoint: CheckpointKind,
}

impl Identity {
    /// The version that runs record: that of the manifest and the first digits of the hash, so that a
    /// changed environment is never taken for the old one.
    pub fn version(&self) -> String {
        let hash = self.hash.to_string();
        format!("{}+{}", self.manifest.version, &hash[..12])
    }
}

/// A world with tasks.
pub trait Environment: Send + Sync {
    /// What it is.
    fn identity(&self) -> &Identity;

    /// The task of a seed. `difficulty` is 1, 2 or 3; the family is the one that
    /// [`Manifest::family_of`] says.
    ///
    /// # Errors
    /// When the environment breaks its contract.
    fn generate(&self, seed: u64, difficulty: u8) -> Result<TaskSpec, EnvironmentError>;

    /// Opens a task, which every function of the instance is about.
    ///
    /// # Errors
    /// When the task is not one of this environment, or it breaks its contract.
    fn open(&self, task: &TaskSpec) -> Result<Box<dyn Instance>, EnvironmentError>;
}

/// One task of an environment, opened. All functions are pure in their arguments; an instance may keep
/// what makes them fast. Threads each open their own.
pub trait Instance: Send {
    /// Tools that the policy may call.
    fn tools(&self) -> &Arc<[ToolSpec]>;

    /// The first state and what the policy sees of it.
    ///
    /// # Errors
    /// When the environment breaks its contract; so in all functions below.
    fn start(&mut self) -> Result<(State, String), EnvironmentError>;

    /// One action in a state. An action that fits no tool is answered with an error observation and
    /// changes nothing.
    fn step(&mut self, state: &State, action: &Action) -> Result<(State, Step), EnvironmentError>;

    /// Scores an end state.
    fn verify(&mut self, state: &State, transcript: &[Exchange]) -> Result<Score, EnvironmentError>;

    /// What the scripted teacher would do; `None` where the environment has no teacher.
    fn expert(&mut self, state: &State) -> Result<Option<Action>, EnvironmentError>;

    /// Goals that a state fulfills; empty where the environment cannot tell.
    fn achieved(&mut self, state: &State) -> Result<Vec<Goal>, EnvironmentError>;

    /// Lets a driver act, from the start or from a state, until it stops or the episode is done, and
    /// gives back the state then. Gives the same bytes as calling [`Instance::step`] again and again;
    /// environments that can keep a state in memory do.
    fn run(&mut self, from: Option<&State>, driver: &mut dyn Driver) -> Result<State, EnvironmentError>;

    /// Takes actions in order, from the start or from a state, until the episode is done. Gives what a
    /// [`Driver`] would have seen: the start, or nothing new, and then each action taken.
    fn run_actions(
        &mut self,
        from: Option<&State>,
        actions: &[Action],
    ) -> Result<(State, Vec<Step>), EnvironmentError> {
        let mut listed = Listed { actions: actions.iter(), steps: Vec::with_capacity(actions.len() + 1) };
        let state = self.run(from, &mut listed)?;
        Ok((state, listed.steps))
    }
}

/// Takes the actions of a list.
struct Listed<'a> {
    actions: std::slice::Iter<'a, Action>,
    steps: Vec<Step>,
}

impl Driver for Listed<'_> {
    fn act(&mut self, step: Step, _scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError> {
        self.steps.push(step);
        Ok(self.actions.next().cloned())
    }
}

/// Chooses actions in [`Instance::run`].
pub trait Driver {
    /// Receives what a step, or the start, has shown, and says what to do next; `None` stops. After
    /// a step that is `done`, what it says is not done any more.
    fn act(&mut self, step: Step, scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError>;
}

/// What a driver may ask about the state it is in. Each costs about as much as a step.
pub trait Scene {
    /// The state as a value: a checkpoint.
    fn state(&mut self) -> Result<State, EnvironmentError>;

    /// What the teacher would do here.
    fn expert(&mut self) -> Result<Option<Action>, EnvironmentError>;

    /// What the teacher would do after one more action, which is not taken.
    fn expert_after(&mut self, action: &Action) -> Result<Option<Action>, EnvironmentError>;
}

/// [`Instance::run`] for environments that keep nothing in memory: every step through its value.
///
/// # Errors
/// Those of the instance and of the driver.
pub fn run_by_value(
    instance: &mut dyn Instance,
    from: Option<&State>,
    driver: &mut dyn Driver,
) -> Result<State, EnvironmentError> {
    let (mut state, mut step) = if let Some(state) = from {
        (state.clone(), Step::resumed())
    } else {
        let (state, observation) = instance.start()?;
        (state, Step { observation, ..Step::resumed() })
    };
    loop {
        let scene = &mut ValueScene { instance: &mut *instance, state: &state };
        let done = step.done;
        let action = driver.act(step, scene)?;
        let Some(action) = action.filter(|_| !done) else { return Ok(state) };
        (state, step) = instance.step(&state, &action)?;
    }
}

struct ValueScene<'a> {
    instance: &'a mut dyn Instance,
    state: &'a State,
}

impl Scene for ValueScene<'_> {
    fn state(&mut self) -> Result<State, EnvironmentError> {
        Ok(self.state.clone())
    }

    fn expert(&mut self) -> Result<Option<Action>, EnvironmentError> {
        self.instance.expert(self.state)
    }

    fn expert_after(&mut self, action: &Action) -> Result<Option<Action>, EnvironmentError> {
        let (state, step) = self.instance.step(self.state, action)?;
        if step.done { Ok(None) } else { self.instance.expert(&state) }
    }
}

/// What a task is reset by, for the records: seed and difficulty.
pub fn reset(task: &TaskSpec) -> Json {
    let text = format!("{{\"difficulty\":{},\"seed\":{}}}", task.difficulty, task.seed);
    Json::from_foreign(&text)
}
