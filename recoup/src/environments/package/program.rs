//! A package's program: parsed, run once, and called.

use std::cell::Cell;
use std::rc::Rc;

use starlark::environment::{FrozenModule, Module};
use starlark::eval::Evaluator;
use starlark::values::{Heap, OwnedFrozenValue, Value};

use super::super::{EnvironmentError, Fault, Limits};
use super::{host, screen, tree};

/// Ticks between two looks at the limits, as the interpreter does them.
const TICKS_A_LOOK: u64 = 1000;
/// Deepest calls of functions.
const CALLS_MAX: usize = 64;
/// What a heap may hold before a call: [`super::session`] starts a new one beyond that.
pub(super) const HEAP_KEPT: usize = 8 << 20;

/// A package's program.
pub(super) struct Program {
    environment: String,
    limits: Limits,
    functions: Functions,
}

/// The functions of the contract.
struct Functions {
    generate: OwnedFrozenValue,
    tools: OwnedFrozenValue,
    start: OwnedFrozenValue,
    step: OwnedFrozenValue,
    verify: OwnedFrozenValue,
    expert: Option<OwnedFrozenValue>,
    achieved: Option<OwnedFrozenValue>,
}

/// A function of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Generate,
    Tools,
    Start,
    Step,
    Verify,
    Expert,
    Achieved,
}

impl Function {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Generate => "generate",
            Self::Tools => "tools",
            Self::Start => "start",
            Self::Step => "step",
            Self::Verify => "verify",
            Self::Expert => "expert",
            Self::Achieved => "achieved",
        }
    }
}

/// A task on a heap of its own, frozen.
pub(super) type OpenedTask = OwnedFrozenValue;

impl Program {
    pub(super) fn load(environment: &str, source: &str, limits: Limits) -> Result<Self, EnvironmentError> {
        screen::screen(environment, source)?;
        let module = host::parse(source).map_err(|error| told(environment, &error, Fault::Load))?;
        let frozen = Module::with_temp_heap(|scope| {
            let mut caller = Caller::new(environment, &scope, limits)?;
            caller.limited("the top level", |eval| eval.eval_module(module, &host::GLOBALS))?;
            drop(caller);
            scope.freeze().map_err(|error| {
                EnvironmentError::new(environment, Fault::Load, format!("cannot be frozen: {error:?}"))
            })
        })?;
        let required = |function: Function| {
            optional(&frozen, function).ok_or_else(|| {
                let message = format!("environment.star has no function `{}`", function.as_str());
                EnvironmentError::new(environment, Fault::Load, message)
            })
        };
        let functions = Functions {
            generate: required(Function::Generate)?,
            tools: required(Function::Tools)?,
            start: required(Function::Start)?,
            step: required(Function::Step)?,
            verify: required(Function::Verify)?,
            expert: optional(&frozen, Function::Expert),
            achieved: optional(&frozen, Function::Achieved),
        };
        Ok(Self { environment: environment.to_owned(), limits, functions })
    }

    pub(super) fn environment(&self) -> &str {
        &self.environment
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the package has an optional function.
    pub(super) fn has(&self, function: Function) -> bool {
        self.function(function).is_some()
    }

    fn function(&self, function: Function) -> Option<&OwnedFrozenValue> {
        match function {
            Function::Generate => Some(&self.functions.generate),
            Function::Tools => Some(&self.functions.tools),
            Function::Start => Some(&self.functions.start),
            Function::Step => Some(&self.functions.step),
            Function::Verify => Some(&self.functions.verify),
            Function::Expert => self.functions.expert.as_ref(),
            Function::Achieved => self.functions.achieved.as_ref(),
        }
    }

    /// Runs something on a heap of its own.
    pub(super) fn scope<T>(
        &self,
        body: impl for<'v> FnOnce(&mut Calls<'v, '_, '_>) -> Result<T, EnvironmentError>,
    ) -> Result<T, EnvironmentError> {
        Module::with_temp_heap(|scope| {
            let heap = scope.heap();
            let caller = Caller::new(&self.environment, &scope, self.limits)?;
            body(&mut Calls { program: self, heap, caller })
        })
    }

    /// The task of a seed, as JSON.
    pub(super) fn generate(&self, seed: u64, difficulty: u8) -> Result<String, EnvironmentError> {
        self.scope(|calls| {
            let arguments = [calls.heap.alloc(seed), calls.heap.alloc(i32::from(difficulty))];
            let task = calls.call(Function::Generate, &arguments)?;
            calls.write(task, "the task")
        })
    }

    /// Freezes a task.
    pub(super) fn open(&self, json: &str) -> Result<OpenedTask, EnvironmentError> {
        let broken = |what: String| {
            EnvironmentError::new(&self.environment, Fault::Contract, format!("the task: {what}"))
        };
        let module = Module::with_temp_heap(|scope| {
            let task = tree::read(scope.heap(), json).map_err(|error| broken(error.to_string()))?;
            scope.set("task", task);
            scope.freeze().map_err(|error| broken(format!("{error:?}")))
        })?;
        module.get("task").map_err(|error| broken(error.to_string()))
    }

    /// The tools of a task, as JSON.
    pub(super) fn tools(&self, task: &OpenedTask) -> Result<String, EnvironmentError> {
        self.scope(|calls| {
            let task = calls.heap.access_owned_frozen_value(task);
            let tools = calls.call(Function::Tools, &[task])?;
            calls.write(tools, "tools")
        })
    }
}

fn optional(module: &FrozenModule, function: Function) -> Option<OwnedFrozenValue> {
    module.get_option(function.as_str()).ok().flatten()
}

/// Calls of a program's functions on one heap.
pub(super) struct Calls<'v, 'a, 'e> {
    program: &'a Program,
    pub(super) heap: Heap<'v>,
    caller: Caller<'v, 'a, 'e>,
}

impl<'v> Calls<'v, '_, '_> {
    pub(super) fn call(
        &mut self,
        function: Function,
        arguments: &[Value<'v>],
    ) -> Result<Value<'v>, EnvironmentError> {
        let name = function.as_str();
        let Some(value) = self.program.function(function) else {
            let message = format!("the package has no `{name}`");
            return Err(EnvironmentError::new(&self.program.environment, Fault::Unsupported, message));
        };
        let value = self.heap.access_owned_frozen_value(value);
        self.caller.limited(name, |eval| eval.eval_function(value, arguments, &[]))
    }

    /// A value as JSON; `what` names it in errors.
    pub(super) fn write(&self, value: Value<'v>, what: &str) -> Result<String, EnvironmentError> {
        let mut out = String::new();
        tree::write(&mut out, value, 0).map_err(|found| self.broken(format!("{what} holds {found}")))?;
        Ok(out)
    }

    /// JSON as a value; `what` names it in errors.
    pub(super) fn read(&self, json: &str, what: &str) -> Result<Value<'v>, EnvironmentError> {
        tree::read(self.heap, json).map_err(|error| self.broken(format!("{what}: {error}")))
    }

    /// A broken contract.
    pub(super) fn broken(&self, message: String) -> EnvironmentError {
        EnvironmentError::new(&self.program.environment, Fault::Contract, message)
    }
}

/// An evaluator that keeps the limits.
struct Caller<'v, 'a, 'e> {
    environment: &'a str,
    limits: Limits,
    eval: Evaluator<'v, 'a, 'e>,
    /// Looks left before the running call is stopped.
    looks: Rc<Cell<u64>>,
}

impl<'v, 'a, 'e: 'a> Caller<'v, 'a, 'e> {
    fn new(environment: &'a str, module: &'a Module<'v>, limits: Limits) -> Result<Self, EnvironmentError> {
        let mut eval = Evaluator::new(module);
        let looks = Rc::new(Cell::new(u64::MAX));
        let left = looks.clone();
        // The verdict is the ticks of one call, taken when it is over. This stops a call that would not
        // end; a look falls at different ticks of a call depending on those before it, so it gives room.
        eval.set_check_cancelled(Box::new(move || {
            left.set(left.get().saturating_sub(1));
            left.get() == 0
        }));
        let heap = limits.heap_mib as usize * 2 * (1 << 20) + HEAP_KEPT;
        let set = eval.set_max_callstack_size(CALLS_MAX).and_then(|()| eval.set_max_heap_size(heap));
        set.map_err(|error| EnvironmentError::new(environment, Fault::Load, error.to_string()))?;
        Ok(Self { environment, limits, eval, looks })
    }

    fn limited<T>(
        &mut self,
        what: &str,
        call: impl FnOnce(&mut Evaluator<'v, 'a, 'e>) -> Result<T, starlark::Error>,
    ) -> Result<T, EnvironmentError> {
        self.looks.set(self.limits.ticks / TICKS_A_LOOK + 3);
        let (ticks, bytes) = (self.eval.get_total_tick_count(), self.eval.heap().allocated_bytes());
        let result = call(&mut self.eval);
        let ticks = self.eval.get_total_tick_count() - ticks;
        let bytes = self.eval.heap().allocated_bytes().saturating_sub(bytes);
        let at = result.as_ref().err().and_then(place);
        let exceeded = |message: String| {
            Err(EnvironmentError { at, ..EnvironmentError::new(self.environment, Fault::Limit, message) })
        };
        if ticks > self.limits.ticks || self.looks.get() == 0 {
            return exceeded(format!("{what} takes more than {} ticks", self.limits.ticks));
        }
        if bytes as u64 > self.limits.heap_mib << 20 {
            return exceeded(format!("{what} takes more than {} MiB of memory", self.limits.heap_mib));
        }
        result.map_err(|error| told(self.environment, &error, Fault::Crash))
    }
}

/// An error of the interpreter in our terms.
fn told(environment: &str, error: &starlark::Error, fault: Fault) -> EnvironmentError {
    use starlark::ErrorKind;
    let fault = match error.kind() {
        ErrorKind::StackOverflow(_) => Fault::Limit,
        _ => fault,
    };
    let mut message = error.without_diagnostic().to_string();
    message.truncate(message.floor_char_boundary(2000));
    EnvironmentError { environment: environment.to_owned(), fault, at: place(error), message }
}

/// File and line of an error.
fn place(error: &starlark::Error) -> Option<String> {
    error.span().map(|span| format!("{}:{}", span.filename(), span.resolve_span().begin.line + 1))
}
