//! Workers: packages that are not bundled run in a process of their own.
//!
//! The limits of [`super::package`] are a net, not a wall. Behind them stands a process that has shut
//! itself in before it reads anything of the package, and that is ended when it does not answer. How
//! that process is started is a value: the library neither knows its own program nor the system's walls.

mod serve;
mod wire;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;

pub use self::serve::serve_worker;
use self::wire::{Answer, READY, Request, Verb, WireExchange, WireGoal, WireState, WireStep};
use super::child::{Child, ChildCommand, shortened};
use super::package::PackageFiles;
use super::{
    Action, Driver, Environment, EnvironmentError, Exchange, Fault, Goal, Identity, Instance, Score, State,
    Step, TaskSpec, ToolSpec, run_by_value,
};

/// A worker is replaced after so many answers, before the time that the system grants it is used up.
const ANSWERS_MAX: u64 = 1_000_000;
/// Time for a worker's first word.
const START: Duration = Duration::from_secs(20);
/// Time for any other: a call of the greatest limits takes seconds, on a busy machine more.
const CALL: Duration = Duration::from_mins(2);
/// Longest answer, in bytes.
const LINE_BYTES: usize = 64 << 20;

/// A package that runs in workers: one for every open task, used again for the next.
pub struct WorkerPackage {
    shared: Arc<Shared>,
}

struct Shared {
    name: Arc<str>,
    identity: Identity,
    files: PackageFiles,
    command: ChildCommand,
    idle: Mutex<Vec<Worker>>,
}

struct Worker {
    child: Child,
    answers: u64,
}

impl WorkerPackage {
    /// Loads a package in a worker. `command` starts a process that runs [`serve_worker`].
    ///
    /// # Errors
    /// A [`Fault::Process`] where the worker cannot be started, and those of loading a package.
    pub fn load(files: &PackageFiles, command: &ChildCommand) -> Result<Self, EnvironmentError> {
        let identity = files.identity()?;
        let shared = Arc::new(Shared {
            name: identity.manifest.name.as_str().into(),
            identity,
            files: files.clone(),
            command: command.clone(),
            idle: Mutex::default(),
        });
        let worker = shared.spawn()?;
        shared.give_back(worker);
        Ok(Self { shared })
    }
}

impl Shared {
    fn take(&self) -> Result<Worker, EnvironmentError> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| self.spawn(), Ok)
    }

    fn give_back(&self, worker: Worker) {
        if worker.answers < ANSWERS_MAX {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(worker);
        }
    }

    fn spawn(&self) -> Result<Worker, EnvironmentError> {
        let mut child = Child::spawn(&self.name, &self.command, LINE_BYTES)?;
        let ready = child.receive(START)?;
        if ready != READY {
            return Err(
                child.fault(Fault::Process, &format!("the worker did not start: {}", shortened(&ready)))
            );
        }
        let mut worker = Worker { child, answers: 0 };
        let request = Request {
            verb: Verb::Load,
            manifest: Some(self.files.manifest.clone()),
            program: Some(self.files.program.clone()),
            policy: self.files.policy.clone(),
            ..Request::default()
        };
        self.ask(&mut worker, &request, |_| Ok(()))??;
        Ok(worker)
    }

    /// Asks a worker. The outer error is the worker's end, the inner one the package's answer.
    fn ask<T>(
        &self,
        worker: &mut Worker,
        request: &Request<'_>,
        read: impl FnOnce(&RawValue) -> Result<T, serde_json::Error>,
    ) -> Result<Result<T, EnvironmentError>, EnvironmentError> {
        let line = serde_json::to_string(request)
            .map_err(|error| EnvironmentError::new(&self.name, Fault::Contract, error.to_string()))?;
        let line = worker.child.ask(&line, CALL)?;
        worker.answers += 1;
        let read = match serde_json::from_str::<Answer<'_>>(&line) {
            Ok(Answer { error: Some(error), .. }) => return Ok(Err(error.into_error(&self.name))),
            Ok(Answer { ok: Some(value), .. }) => read(value),
            // The value of a request that has nothing to answer.
            Ok(Answer { ok: None, .. }) => read(RawValue::NULL),
            Err(error) => Err(error),
        };
        read.map(Ok).map_err(|error| {
            let message = format!("the worker's answer {} cannot be read: {error}", shortened(&line));
            worker.child.fault(Fault::Process, &message)
        })
    }
}

impl Environment for WorkerPackage {
    fn identity(&self) -> &Identity {
        &self.shared.identity
    }

    fn generate(&self, seed: u64, difficulty: u8) -> Result<TaskSpec, EnvironmentError> {
        let shared = &*self.shared;
        let mut worker = shared.take()?;
        let request = Request {
            verb: Verb::Generate,
            seed: Some(seed),
            difficulty: Some(difficulty),
            ..Request::default()
        };
        let task = shared.ask(&mut worker, &request, |task| Ok(task.get().to_owned()))?;
        shared.give_back(worker);
        TaskSpec::new(&shared.name, seed, difficulty, task?)
    }

    fn open(&self, task: &TaskSpec) -> Result<Box<dyn Instance>, EnvironmentError> {
        let mut instance = WorkerInstance {
            shared: self.shared.clone(),
            task: task.clone(),
            tools: Arc::default(),
            worker: None,
        };
        let (worker, tools) = instance.opened()?;
        instance.worker = Some(worker);
        instance.tools = tools.into();
        Ok(Box::new(instance))
    }
}

struct WorkerInstance {
    shared: Arc<Shared>,
    task: TaskSpec,
    tools: Arc<[ToolSpec]>,
    /// A worker that has the task open; none after one has ended.
    worker: Option<Worker>,
}

impl WorkerInstance {
    /// A worker with the task open.
    fn opened(&self) -> Result<(Worker, Vec<ToolSpec>), EnvironmentError> {
        let mut worker = self.shared.take()?;
        let request = Request {
            verb: Verb::Open,
            seed: Some(self.task.seed),
            difficulty: Some(self.task.difficulty),
            task: Some(self.raw(&self.task.json)?),
            ..Request::default()
        };
        let tools = self.shared.ask(&mut worker, &request, |tools| Ok(tools.get().to_owned()))?;
        match tools.and_then(|tools| ToolSpec::read_all(&self.shared.name, &tools)) {
            Ok(tools) => Ok((worker, tools)),
            Err(error) => {
                self.shared.give_back(worker);
                Err(error)
            }
        }
    }

    fn ask<T>(
        &mut self,
        request: &Request<'_>,
        read: impl FnOnce(&RawValue) -> Result<T, serde_json::Error>,
    ) -> Result<T, EnvironmentError> {
        let mut worker = match self.worker.take() {
            Some(worker) => worker,
            None => self.opened()?.0,
        };
        // A worker that has ended is dropped here; the next call opens the task in another.
        let answer = self.shared.ask(&mut worker, request, read)?;
        self.worker = Some(worker);
        answer
    }

    fn ask_state(&mut self, request: &Request<'_>) -> Result<(State, Vec<Step>), EnvironmentError> {
        self.ask(request, |value| {
            let wire: WireState<'_> = serde_json::from_str(value.get())?;
            Ok((State::new(wire.state.get()), wire.steps.into_iter().map(Step::from).collect()))
        })
    }

    fn raw<'a>(&self, json: &'a str) -> Result<&'a RawValue, EnvironmentError> {
        serde_json::from_str(json).map_err(|error| {
            EnvironmentError::new(&self.shared.name, Fault::Contract, format!("no JSON: {error}"))
        })
    }

    fn last(&self, steps: Vec<Step>) -> Result<Step, EnvironmentError> {
        let none =
            || EnvironmentError::new(&self.shared.name, Fault::Process, "the worker's answer has no step");
        steps.into_iter().next_back().ok_or_else(none)
    }
}

impl Drop for WorkerInstance {
    fn drop(&mut self) {
        if let Some(worker) = self.worker.take() {
            self.shared.give_back(worker);
        }
    }
}

impl Instance for WorkerInstance {
    fn tools(&self) -> &Arc<[ToolSpec]> {
        &self.tools
    }

    fn start(&mut self) -> Result<(State, String), EnvironmentError> {
        let (state, steps) = self.ask_state(&Request { verb: Verb::Start, ..Request::default() })?;
        Ok((state, self.last(steps)?.observation))
    }

    fn step(&mut self, state: &State, action: &Action) -> Result<(State, Step), EnvironmentError> {
        let (state, action) = (self.raw(state.as_str())?, action.to_json());
        let request = Request {
            verb: Verb::Step,
            state: Some(state),
            actions: vec![self.raw(&action)?],
            ..Request::default()
        };
        let (state, steps) = self.ask_state(&request)?;
        Ok((state, self.last(steps)?))
    }

    fn verify(&mut self, state: &State, transcript: &[Exchange]) -> Result<Score, EnvironmentError> {
        let actions: Vec<String> = transcript.iter().map(|exchange| exchange.action.to_json()).collect();
        let transcript = transcript.iter().zip(&actions).map(|(exchange, action)| {
            Ok(WireExchange { action: self.raw(action)?, step: exchange.step.clone().into() })
        });
        let request = Request {
            verb: Verb::Verify,
            transcript: transcript.collect::<Result<_, EnvironmentError>>()?,
            state: Some(self.raw(state.as_str())?),
            ..Request::default()
        };
        self.ask(&request, |value| serde_json::from_str(value.get()))
    }

    fn expert(&mut self, state: &State) -> Result<Option<Action>, EnvironmentError> {
        let request =
            Request { verb: Verb::Expert, state: Some(self.raw(state.as_str())?), ..Request::default() };
        self.ask(&request, |value| match value.get() {
            "null" => Ok(None),
            action => Action::from_json(action).map(Some).map_err(serde::de::Error::custom),
        })
    }

    fn achieved(&mut self, state: &State) -> Result<Vec<Goal>, EnvironmentError> {
        let request =
            Request { verb: Verb::Achieved, state: Some(self.raw(state.as_str())?), ..Request::default() };
        self.ask(&request, |value| {
            let goals: Vec<WireGoal<'_>> = serde_json::from_str(value.get())?;
            Ok(goals.into_iter().map(|goal| Goal { goal: goal.goal, task: goal.task.get().into() }).collect())
        })
    }

    fn run(&mut self, from: Option<&State>, driver: &mut dyn Driver) -> Result<State, EnvironmentError> {
        run_by_value(self, from, driver)
    }

    fn run_actions(
        &mut self,
        from: Option<&State>,
        actions: &[Action],
    ) -> Result<(State, Vec<Step>), EnvironmentError> {
        let actions: Vec<String> = actions.iter().map(Action::to_json).collect();
        let actions = actions.iter().map(|action| self.raw(action)).collect::<Result<Vec<_>, _>>()?;
        let state = from.map(|state| self.raw(state.as_str())).transpose()?;
        self.ask_state(&Request { verb: Verb::Run, state, actions, ..Request::default() })
    }
}

impl From<Step> for WireStep {
    fn from(step: Step) -> Self {
        Self { observation: step.observation, is_error: step.is_error, done: step.done }
    }
}

impl From<WireStep> for Step {
    fn from(wire: WireStep) -> Self {
        Self { observation: wire.observation, is_error: wire.is_error, done: wire.done }
    }
}
