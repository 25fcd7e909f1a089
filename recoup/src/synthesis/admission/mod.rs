//! Admission: what an environment must prove before anything is trained in it.
//!
//! An environment that pays for nothing, leaks its answers or cannot be solved teaches just that. Each
//! gate plays many seeds and gives one figure against one rule; a package is admitted when all pass. The
//! gates here need no student. Same package and settings, same figures, whatever the number of threads.

mod alternatives;
mod cheaters;
mod deterministic;
mod distinct;
mod interface;
mod loads;
mod mutants;
mod no_leak;
mod no_op;
mod solvable;
mod solved;

use serde::Serialize;

use self::solved::Solved;
use crate::deduplication::HeldOut;
use crate::environments::{
    Environment, EnvironmentError, Exchange, Instance, Score, State, Step, TaskSpec, ToolSpec,
};
use crate::parallel;
use crate::reporter::Reporter;

/// What the battery plays.
#[derive(Clone, Debug)]
pub struct AdmissionConfig {
    /// Seeds of the gates that play solutions.
    pub seeds: u64,
    /// Seeds of the cheaters.
    pub cheater_seeds: u64,
    /// Tools of the target that the environment stands in for, where it stands in for one.
    pub target: Option<Vec<ToolSpec>>,
    /// Texts of the tasks that the student will be measured on.
    pub held_out: HeldOut,
    /// Names of the gates to run, of [`gate_names`]; all where empty. Only all of them admit.
    pub gates: Vec<String>,
    /// Threads to play on.
    pub threads: usize,
}

impl Default for AdmissionConfig {
    fn default() -> Self {
        Self {
            seeds: 200,
            cheater_seeds: 1000,
            target: None,
            held_out: HeldOut::default(),
            gates: Vec::new(),
            threads: 1,
        }
    }
}

/// A gate: one figure against one rule.
trait Gate: Sync {
    fn name(&self) -> &'static str;

    /// The rule in words.
    fn rule(&self) -> &'static str;

    /// Plays.
    ///
    /// # Errors
    /// Those of the environment: the gate then fails with the error as its figure.
    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError>;
}

const GATES: &[&dyn Gate] = &[
    &loads::Loads,
    &solvable::Solvable,
    &no_op::NoOp,
    &cheaters::Cheaters,
    &mutants::Mutants,
    &alternatives::Alternatives,
    &deterministic::Deterministic,
    &no_leak::NoLeak,
    &interface::Interface,
    &distinct::Distinct,
];

/// Names of the gates, in order.
pub fn gate_names() -> impl Iterator<Item = &'static str> {
    GATES.iter().map(|gate| gate.name())
}

/// What a gate saw.
struct Finding {
    passed: bool,
    figure: String,
}

/// A gate's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GateReport {
    /// Name of the gate.
    pub name: &'static str,
    /// Whether the rule holds.
    pub passed: bool,
    /// What was seen, in words and numbers.
    pub figure: String,
    /// The rule.
    pub rule: &'static str,
}

/// The battery's verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Admission {
    /// Name and version of the package.
    pub package: String,
    /// Whether every gate was run and passed.
    pub admitted: bool,
    /// The gates, in order.
    pub gates: Vec<GateReport>,
}

/// Runs the gates.
pub fn admit(
    environment: &dyn Environment,
    config: &AdmissionConfig,
    reporter: &mut dyn Reporter,
) -> Admission {
    let asked =
        |gate: &&&dyn Gate| config.gates.is_empty() || config.gates.iter().any(|name| name == gate.name());
    let asked: Vec<_> = GATES.iter().filter(asked).collect();
    reporter.stage("check", Some(asked.len() as u64 + 1));
    let seeds: Vec<Seed> = (0..config.seeds).map(Seed::nth).collect();
    let solved = parallel::map(&seeds, config.threads, |seed| Solved::play(environment, *seed));
    reporter.advance(1);
    let battery = Battery { environment, config, solved };
    let mut gates = Vec::with_capacity(asked.len());
    for gate in asked {
        let finding =
            gate.check(&battery).unwrap_or_else(|error| Finding { passed: false, figure: error.to_string() });
        gates.push(GateReport {
            name: gate.name(),
            passed: finding.passed,
            figure: finding.figure,
            rule: gate.rule(),
        });
        reporter.advance(1);
    }
    let manifest = &environment.identity().manifest;
    Admission {
        package: format!("{} {}", manifest.name, environment.identity().version()),
        admitted: gates.len() == GATES.len() && gates.iter().all(|gate| gate.passed),
        gates,
    }
}

/// A task to play: difficulties take turns after families have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seed {
    seed: u64,
    difficulty: u8,
}

impl Seed {
    fn nth(index: u64) -> Self {
        // Seven is prime to any likely number of families, so each meets every difficulty.
        Self { seed: index, difficulty: (index / 7 % 3) as u8 + 1 }
    }
}

/// What gates play with.
struct Battery<'a> {
    environment: &'a dyn Environment,
    config: &'a AdmissionConfig,
    /// The teacher's runs, in the order of seeds.
    solved: Vec<Result<Solved, EnvironmentError>>,
}

impl Battery<'_> {
    /// The teacher's runs.
    ///
    /// # Errors
    /// The first error of one.
    fn solved(&self) -> Result<Vec<&Solved>, EnvironmentError> {
        self.solved.iter().map(|solved| solved.as_ref().map_err(Clone::clone)).collect()
    }

    /// Tries something on every teacher's run.
    fn on_solved<T: Send>(
        &self,
        try_one: impl Fn(&Solved, &mut dyn Instance) -> Result<T, EnvironmentError> + Sync,
    ) -> Result<Vec<T>, EnvironmentError> {
        let solved = self.solved()?;
        let tried = parallel::map(&solved, self.config.threads, |solved| {
            let mut instance = self.environment.open(&solved.task)?;
            try_one(solved, &mut *instance)
        });
        tried.into_iter().collect()
    }

    /// Tries something on the seeds of the cheaters.
    fn on_cheater_seeds<T: Send>(
        &self,
        try_one: impl Fn(&TaskSpec, &mut dyn Instance) -> Result<T, EnvironmentError> + Sync,
    ) -> Result<Vec<T>, EnvironmentError> {
        let seeds: Vec<Seed> = (0..self.config.cheater_seeds).map(Seed::nth).collect();
        let tried = parallel::map(&seeds, self.config.threads, |seed| {
            let task = self.environment.generate(seed.seed, seed.difficulty)?;
            let mut instance = self.environment.open(&task)?;
            try_one(&task, &mut *instance)
        });
        tried.into_iter().collect()
    }
}

/// A run of given actions: where it ended and what its verifier says.
struct Played {
    state: State,
    steps: Vec<Step>,
    score: Score,
}

/// Takes actions until they or the episode end.
fn play(
    instance: &mut dyn Instance,
    actions: &[crate::environments::Action],
) -> Result<Played, EnvironmentError> {
    let (mut state, _) = instance.start()?;
    let mut transcript: Vec<Exchange> = Vec::with_capacity(actions.len());
    for action in actions {
        let (next, step) = instance.step(&state, action)?;
        state = next;
        let done = step.done;
        transcript.push(Exchange { action: action.clone(), step });
        if done {
            break;
        }
    }
    let score = instance.verify(&state, &transcript)?;
    Ok(Played { state, steps: transcript.into_iter().map(|exchange| exchange.step).collect(), score })
}

/// Sums of what was counted in each run: how many, of how many.
fn total(counted: &[(usize, usize)]) -> (usize, usize) {
    counted.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// `count` of `total` as a percentage.
fn percent(count: usize, total: usize) -> f64 {
    if total == 0 { 0.0 } else { 100.0 * count as f64 / total as f64 }
}
