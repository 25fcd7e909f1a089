//! An opened task: every function through bytes, and whole runs in the interpreter's heap.

use std::sync::Arc;

use starlark::collections::SmallSet;
use starlark::const_frozen_string;
use starlark::values::dict::{AllocDict, DictRef};
use starlark::values::float::UnpackFloat;
use starlark::values::list::{AllocList, ListRef};
use starlark::values::{FrozenStringValue, UnpackValue as _, Value};

use super::heap_argument::HeapArgument;
use super::program::{Calls, Function, HEAP_KEPT, OpenedTask, Program};
use super::tree;
use crate::environments::arguments::refusal;
use crate::environments::{
    Action, Driver, EnvironmentError, Exchange, Fault, Goal, Instance, Scene, Score, State, Step, ToolSpec,
};
use crate::json::Json;

/// A task of a package, opened.
pub(super) struct PackageInstance {
    program: Arc<Program>,
    task: OpenedTask,
    tools: Arc<[ToolSpec]>,
}

impl PackageInstance {
    pub(super) fn new(program: Arc<Program>, task: OpenedTask, tools: Arc<[ToolSpec]>) -> Self {
        Self { program, task, tools }
    }

    /// Runs something with the task on a heap of its own.
    fn play<T>(
        &self,
        body: impl for<'v> FnOnce(&mut Play<'v, '_, '_, '_>) -> Result<T, EnvironmentError>,
    ) -> Result<T, EnvironmentError> {
        self.program.scope(|calls| {
            let task = calls.heap.access_owned_frozen_value(&self.task);
            body(&mut Play { program: &self.program, tools: &self.tools, task, calls })
        })
    }
}

impl Instance for PackageInstance {
    fn tools(&self) -> &Arc<[ToolSpec]> {
        &self.tools
    }

    fn start(&mut self) -> Result<(State, String), EnvironmentError> {
        self.play(|play| {
            let (state, step) = play.start()?;
            Ok((play.state(state)?, step.observation))
        })
    }

    fn step(&mut self, state: &State, action: &Action) -> Result<(State, Step), EnvironmentError> {
        self.play(|play| {
            let before = play.calls.read(state.as_str(), "the state")?;
            let (after, step) = play.step(before, action)?;
            Ok((play.state(after)?, step))
        })
    }

    fn verify(&mut self, state: &State, transcript: &[Exchange]) -> Result<Score, EnvironmentError> {
        self.play(|play| {
            let state = play.calls.read(state.as_str(), "the state")?;
            let transcript = play.transcript(transcript)?;
            let score = play.calls.call(Function::Verify, &[play.task, state, transcript])?;
            play.score(score)
        })
    }

    fn expert(&mut self, state: &State) -> Result<Option<Action>, EnvironmentError> {
        self.play(|play| {
            let state = play.calls.read(state.as_str(), "the state")?;
            play.expert(state)
        })
    }

    fn achieved(&mut self, state: &State) -> Result<Vec<Goal>, EnvironmentError> {
        if !self.program.has(Function::Achieved) {
            return Ok(Vec::new());
        }
        self.play(|play| {
            let state = play.calls.read(state.as_str(), "the state")?;
            let goals = play.calls.call(Function::Achieved, &[play.task, state])?;
            play.goals(goals)
        })
    }

    fn run(&mut self, from: Option<&State>, driver: &mut dyn Driver) -> Result<State, EnvironmentError> {
        let mut resumed = from.map(|state| (state.clone(), Step::resumed()));
        loop {
            match self.play(|play| play.run(resumed.take(), driver))? {
                Played::Ended(state) => return Ok(state),
                Played::HeapFull(state, step) => resumed = Some((state, step)),
            }
        }
    }
}

/// How far a run came on one heap.
enum Played {
    /// The driver stopped, or the episode ended.
    Ended(State),
    /// It goes on from here on another heap.
    HeapFull(State, Step),
}

/// A task being played on one heap.
struct Play<'v, 'p, 'a, 'e> {
    program: &'p Program,
    tools: &'p [ToolSpec],
    task: Value<'v>,
    calls: &'p mut Calls<'v, 'a, 'e>,
}

impl<'v> Play<'v, '_, '_, '_> {
    /// Acts until the driver stops, the episode ends or the heap is full.
    fn run(
        &mut self,
        from: Option<(State, Step)>,
        driver: &mut dyn Driver,
    ) -> Result<Played, EnvironmentError> {
        let (mut state, mut step) = match from {
            Some((state, step)) => (self.calls.read(state.as_str(), "the state")?, step),
            None => self.start()?,
        };
        loop {
            if self.calls.heap.allocated_bytes() > HEAP_KEPT {
                return Ok(Played::HeapFull(self.state(state)?, step));
            }
            let done = step.done;
            let action = driver.act(step, &mut HeapScene { play: self, state })?;
            let Some(action) = action.filter(|_| !done) else {
                return Ok(Played::Ended(self.state(state)?));
            };
            (state, step) = self.step(state, &action)?;
        }
    }

    fn start(&mut self) -> Result<(Value<'v>, Step), EnvironmentError> {
        let result = self.calls.call(Function::Start, &[self.task])?;
        let fields = self.fields(result, Function::Start)?;
        let step = Step { observation: self.observation(&fields, Function::Start)?, ..Step::default() };
        Ok((self.field(&fields, const_frozen_string!("state"), Function::Start)?, step))
    }

    fn step(&mut self, state: Value<'v>, action: &Action) -> Result<(Value<'v>, Step), EnvironmentError> {
        let action = match action {
            Action::Say(text) => self.say(text),
            Action::Call { tool, arguments } => match self.arguments(tool, arguments) {
                Ok(arguments) => self.tool_call(tool, arguments),
                Err(observation) => return Ok((state, Step { observation, is_error: true, done: false })),
            },
        };
        self.step_value(state, action)
    }

    /// The arguments of a call on the heap, or why it is refused, in words for the agent.
    fn arguments(&self, tool: &str, arguments: &Json) -> Result<Value<'v>, String> {
        match tree::read(self.calls.heap, arguments.as_str()) {
            Ok(value) => refusal(self.tools, tool, HeapArgument(value)).map_or(Ok(value), Err),
            // A number that no package can hold is the policy's doing.
            Err(what) => Err(refusal(self.tools, tool, &arguments.to_value())
                .unwrap_or_else(|| format!("Error: the arguments of {tool} cannot be read: {what}."))),
        }
    }

    /// A call, as packages see it.
    fn tool_call(&self, tool: &str, arguments: Value<'v>) -> Value<'v> {
        let heap = self.calls.heap;
        heap.alloc(AllocDict([
            (const_frozen_string!("tool"), heap.alloc(tool)),
            (const_frozen_string!("arguments"), arguments),
        ]))
    }

    /// Words, as packages see them.
    fn say(&self, text: &str) -> Value<'v> {
        let heap = self.calls.heap;
        heap.alloc(AllocDict([(const_frozen_string!("say"), heap.alloc(text))]))
    }

    fn step_value(
        &mut self,
        state: Value<'v>,
        action: Value<'v>,
    ) -> Result<(Value<'v>, Step), EnvironmentError> {
        let result = self.calls.call(Function::Step, &[self.task, state, action])?;
        let fields = self.fields(result, Function::Step)?;
        let flag = |name: FrozenStringValue| {
            let value = self.field(&fields, name, Function::Step)?;
            value.unpack_bool().ok_or_else(|| self.calls.broken(format!("step: `{name}` is no bool")))
        };
        let step = Step {
            observation: self.observation(&fields, Function::Step)?,
            is_error: flag(const_frozen_string!("is_error"))?,
            done: flag(const_frozen_string!("done"))?,
        };
        Ok((self.field(&fields, const_frozen_string!("state"), Function::Step)?, step))
    }

    fn expert(&mut self, state: Value<'v>) -> Result<Option<Action>, EnvironmentError> {
        if !self.program.has(Function::Expert) {
            return Ok(None);
        }
        let action = self.calls.call(Function::Expert, &[self.task, state])?;
        if action.is_none() {
            return Ok(None);
        }
        let json = self.calls.write(action, "the expert's action")?;
        Action::from_json(&json).map(Some).map_err(|what| self.calls.broken(format!("expert: {what}")))
    }

    fn state(&self, state: Value<'v>) -> Result<State, EnvironmentError> {
        let json = self.calls.write(state, "the state")?;
        if tree::is_shared(state, &mut SmallSet::new()) {
            return Err(self.calls.broken("the state holds one list or dict at two places".to_owned()));
        }
        let most = self.program.limits().state_bytes;
        if json.len() as u64 > most {
            let message = format!("the state has {} bytes; at most {most} are allowed", json.len());
            return Err(EnvironmentError::new(self.program.environment(), Fault::Limit, message));
        }
        Ok(State::new(json))
    }

    fn transcript(&self, transcript: &[Exchange]) -> Result<Value<'v>, EnvironmentError> {
        let heap = self.calls.heap;
        let mut list = Vec::with_capacity(transcript.len());
        for Exchange { action, step } in transcript {
            let action = match action {
                Action::Say(text) => self.say(text),
                Action::Call { tool, arguments } => {
                    self.tool_call(tool, self.calls.read(arguments.as_str(), "an action")?)
                }
            };
            list.push(heap.alloc(AllocDict([
                (const_frozen_string!("action"), action),
                (const_frozen_string!("observation"), heap.alloc(step.observation.as_str())),
                (const_frozen_string!("is_error"), Value::new_bool(step.is_error)),
            ])));
        }
        Ok(heap.alloc(AllocList(list)))
    }

    fn score(&self, score: Value<'v>) -> Result<Score, EnvironmentError> {
        let fields = self.fields(score, Function::Verify)?;
        let success = self.field(&fields, const_frozen_string!("success"), Function::Verify)?.unpack_bool();
        let success = success.ok_or_else(|| self.calls.broken("verify: `success` is no bool".to_owned()))?;
        let number = self.field(&fields, const_frozen_string!("score"), Function::Verify)?;
        let number = UnpackFloat::unpack_value(number).ok().flatten().map(|float| float.0);
        let score = number.ok_or_else(|| self.calls.broken("verify: `score` is no number".to_owned()))?;
        let checks =
            DictRef::from_value(self.field(&fields, const_frozen_string!("checks"), Function::Verify)?);
        let checks = checks.ok_or_else(|| self.calls.broken("verify: `checks` is no dict".to_owned()))?;
        let checks =
            checks.iter().map(|(name, passed)| Some((name.unpack_str()?.to_owned(), passed.unpack_bool()?)));
        let checks = checks.collect::<Option<_>>();
        let checks = checks.ok_or_else(|| self.calls.broken("verify: a check is no bool".to_owned()))?;
        Score::checked(success, score, checks).map_err(|what| self.calls.broken(format!("verify: {what}")))
    }

    fn goals(&self, goals: Value<'v>) -> Result<Vec<Goal>, EnvironmentError> {
        let list = ListRef::from_value(goals);
        let list = list.ok_or_else(|| self.calls.broken("achieved: not a list".to_owned()))?;
        let goal = |value: Value<'v>| {
            let fields = self.fields(value, Function::Achieved)?;
            let text = self.field(&fields, const_frozen_string!("goal"), Function::Achieved)?.unpack_str();
            let text = text.ok_or_else(|| self.calls.broken("achieved: `goal` is no str".to_owned()))?;
            let task = self.calls.write(
                self.field(&fields, const_frozen_string!("task"), Function::Achieved)?,
                "a goal's task",
            )?;
            Ok(Goal { goal: text.to_owned(), task: task.into() })
        };
        list.iter().map(goal).collect()
    }

    fn fields(&self, value: Value<'v>, function: Function) -> Result<DictRef<'v>, EnvironmentError> {
        DictRef::from_value(value).ok_or_else(|| {
            self.calls.broken(format!("{}: returned a value of type {}", function.as_str(), value.get_type()))
        })
    }

    fn field(
        &self,
        fields: &DictRef<'v>,
        name: FrozenStringValue,
        function: Function,
    ) -> Result<Value<'v>, EnvironmentError> {
        let missing =
            || self.calls.broken(format!("{}: the result has no `{}`", function.as_str(), name.as_str()));
        fields.get_str_hashed(name.as_str_hashed()).ok_or_else(missing)
    }

    fn observation(&self, fields: &DictRef<'v>, function: Function) -> Result<String, EnvironmentError> {
        let value = self.field(fields, const_frozen_string!("observation"), function)?;
        let text = value.unpack_str();
        let text = text.ok_or_else(|| {
            self.calls.broken(format!("{}: `observation` is of type {}", function.as_str(), value.get_type()))
        })?;
        let most = self.program.limits().observation_bytes;
        if text.len() as u64 > most {
            let message = format!("an observation has {} bytes; at most {most} are allowed", text.len());
            return Err(EnvironmentError::new(self.program.environment(), Fault::Limit, message));
        }
        Ok(text.to_owned())
    }
}

struct HeapScene<'s, 'v, 'p, 'a, 'e> {
    play: &'s mut Play<'v, 'p, 'a, 'e>,
    state: Value<'v>,
}

impl Scene for HeapScene<'_, '_, '_, '_, '_> {
    fn state(&mut self) -> Result<State, EnvironmentError> {
        self.play.state(self.state)
    }

    fn expert(&mut self) -> Result<Option<Action>, EnvironmentError> {
        self.play.expert(self.state)
    }

    fn expert_after(&mut self, action: &Action) -> Result<Option<Action>, EnvironmentError> {
        // On a copy: `step` may change the state it is given.
        let state = self.play.state(self.state)?;
        let copy = self.play.calls.read(state.as_str(), "the state")?;
        let (after, step) = self.play.step(copy, action)?;
        if step.done { Ok(None) } else { self.play.expert(after) }
    }
}
