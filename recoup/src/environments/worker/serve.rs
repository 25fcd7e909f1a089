//! The worker's side: a package that runs in a process of its own.

use std::io::{self, BufRead, Write};

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::super::package::{Package, PackageFiles};
use super::super::{
    Action, Environment as _, EnvironmentError, Exchange, Fault, Instance, State, Step, TaskSpec, ToolSpec,
};
use super::wire::{Answer, READY, Request, Verb, WireExchange, WireGoal, WireState, WireStep};

/// Answers requests until the input ends. Whoever calls this has shut the process in before: nothing of
/// a package is read here but what comes down the pipe.
///
/// # Errors
/// When a pipe breaks.
pub fn serve_worker(mut input: impl BufRead, mut output: impl Write) -> io::Result<()> {
    let mut worker = Worker::default();
    let mut line = String::new();
    writeln!(output, "{READY}")?;
    output.flush()?;
    loop {
        line.clear();
        if input.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let result = worker.answer(&line);
        let answer = match &result {
            Ok(value) => Answer { ok: Some(value), error: None },
            Err(error) => Answer { ok: None, error: Some(error.clone().into()) },
        };
        serde_json::to_writer(&mut output, &answer)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
}

#[derive(Default)]
struct Worker {
    package: Option<Package>,
    instance: Option<Box<dyn Instance>>,
}

type Answered = Result<Box<RawValue>, EnvironmentError>;

impl Worker {
    fn answer(&mut self, line: &str) -> Answered {
        let mut request: Request<'_> = serde_json::from_str(line).map_err(|error| broken(&error))?;
        match request.verb {
            Verb::Load => {
                let (Some(manifest), Some(program)) = (request.manifest.take(), request.program.take())
                else {
                    return Err(broken(&"load needs `manifest` and `program`"));
                };
                self.instance = None;
                self.package =
                    Some(Package::load(&PackageFiles { manifest, program, policy: request.policy })?);
                written(&())
            }
            Verb::Generate => {
                raw(self.package()?.generate(seed(&request)?, difficulty(&request)?)?.json.as_ref())
            }
            Verb::Open => {
                let package = self.package()?;
                let name = &package.identity().manifest.name;
                let task =
                    TaskSpec::new(name, seed(&request)?, difficulty(&request)?, text(request.task, "task")?)?;
                let instance = package.open(&task)?;
                let tools = raw(&ToolSpec::write_all(instance.tools()))?;
                self.instance = Some(instance);
                Ok(tools)
            }
            Verb::Start => {
                let (state, observation) = self.instance()?.start()?;
                written_state(&state, vec![Step { observation, ..Step::default() }])
            }
            Verb::Step => {
                let state = State::new(text(request.state, "state")?);
                let action = text(request.actions.first().copied(), "actions")?;
                let (state, step) = self.instance()?.step(&state, &read_action(action)?)?;
                written_state(&state, vec![step])
            }
            Verb::Verify => {
                let state = State::new(text(request.state, "state")?);
                let transcript: Vec<Exchange> =
                    request.transcript.into_iter().map(exchange).collect::<Result<_, _>>()?;
                written(&self.instance()?.verify(&state, &transcript)?)
            }
            Verb::Expert => {
                let state = State::new(text(request.state, "state")?);
                let action = self.instance()?.expert(&state)?.map(|action| action.to_json());
                raw(action.as_deref().unwrap_or("null"))
            }
            Verb::Achieved => {
                let state = State::new(text(request.state, "state")?);
                let goals = self.instance()?.achieved(&state)?;
                let tasks: Vec<Box<RawValue>> =
                    goals.iter().map(|goal| raw(&goal.task)).collect::<Result<_, _>>()?;
                let goals =
                    goals.iter().zip(&tasks).map(|(goal, task)| WireGoal { goal: goal.goal.clone(), task });
                written(&goals.collect::<Vec<_>>())
            }
            Verb::Run => {
                let from = request.state.map(|state| State::new(state.get()));
                let actions: Vec<Action> = request
                    .actions
                    .iter()
                    .map(|action| read_action(action.get()))
                    .collect::<Result<_, _>>()?;
                let (state, steps) = self.instance()?.run_actions(from.as_ref(), &actions)?;
                written_state(&state, steps)
            }
        }
    }

    fn package(&self) -> Result<&Package, EnvironmentError> {
        self.package.as_ref().ok_or_else(|| broken(&"no package is loaded"))
    }

    fn instance(&mut self) -> Result<&mut dyn Instance, EnvironmentError> {
        match &mut self.instance {
            Some(instance) => Ok(&mut **instance),
            None => Err(broken(&"no task is open")),
        }
    }
}

fn seed(request: &Request<'_>) -> Result<u64, EnvironmentError> {
    request.seed.ok_or_else(|| broken(&"no `seed`"))
}

fn difficulty(request: &Request<'_>) -> Result<u8, EnvironmentError> {
    request.difficulty.ok_or_else(|| broken(&"no `difficulty`"))
}

fn text<'a>(value: Option<&'a RawValue>, name: &str) -> Result<&'a str, EnvironmentError> {
    value.map(RawValue::get).ok_or_else(|| broken(&format!("no `{name}`")))
}

fn read_action(text: &str) -> Result<Action, EnvironmentError> {
    Action::from_json(text).map_err(|what| broken(&what))
}

fn exchange(wire: WireExchange<'_>) -> Result<Exchange, EnvironmentError> {
    Ok(Exchange { action: read_action(wire.action.get())?, step: wire.step.into() })
}

fn written_state(state: &State, steps: Vec<Step>) -> Answered {
    let steps = steps.into_iter().map(WireStep::from).collect();
    written(&WireState {
        state: serde_json::from_str(state.as_str()).map_err(|error| broken(&error))?,
        steps,
    })
}

fn written<T: Serialize>(value: &T) -> Answered {
    to_raw_value(value).map_err(|error| broken(&error))
}

fn raw(json: &str) -> Answered {
    RawValue::from_string(json.to_owned()).map_err(|error| broken(&error))
}

fn broken(what: &dyn std::fmt::Display) -> EnvironmentError {
    EnvironmentError::new("worker", Fault::Contract, format!("a request is wrong: {what}"))
}
