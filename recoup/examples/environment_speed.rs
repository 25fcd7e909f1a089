//! Measures environments, one part a call, so that `benches/environments.py` can take turns with other
//! programs. Each part prints one JSON line; the processor's time is that of the measuring thread.
//!
//! ```text
//! environment_speed heap PACKAGE             steps of the random policy, states kept in memory
//! environment_speed bytes PACKAGE            its steps, each through the state's bytes
//! environment_speed fork PACKAGE             a copy, its restoring and its first step; hashes
//! environment_speed spawn PACKAGE RECOUP     starting a worker
//! environment_speed single PACKAGE RECOUP    a worker's steps, one a request
//! environment_speed batched PACKAGE RECOUP   a worker's steps, an episode a request
//! ```

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use recoup::environments::child::ChildCommand;
use recoup::environments::worker::WorkerPackage;
use recoup::environments::{Action, Environment, State, TaskSpec, bundled};
use recoup::rollout::{Conditions, Keep, Policy, policies, run};
use serde_json::{Value, json};

/// As in the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Tasks of a package that are played: families and difficulties take turns.
const TASKS: u64 = 60;
/// What a part measures at least, so that the clocks' own time does not count.
const AT_LEAST: Duration = Duration::from_secs(1);
/// Bytes of a state that the figures for small ones hold for.
const SMALL: usize = 2048;

fn main() {
    let mut words = std::env::args().skip(1);
    let usage = "usage: environment_speed PART PACKAGE [RECOUP]";
    let (part, name) = (words.next().expect(usage), words.next().expect(usage));
    let figures = match part.as_str() {
        "heap" => heap(&name),
        "bytes" => bytes(&name),
        "fork" => fork(&name),
        "spawn" => spawn(&name, &words.next().expect(usage)),
        "single" => single(&name, &words.next().expect(usage)),
        "batched" => batched(&name, &words.next().expect(usage)),
        other => panic!("no part `{other}`"),
    };
    println!("{figures}");
}

fn open(name: &str) -> Box<dyn Environment> {
    bundled::open(name).expect("a bundled package").unwrap()
}

fn tasks(package: &dyn Environment) -> impl Iterator<Item = TaskSpec> + '_ {
    let families = package.identity().manifest.families.len() as u64;
    (0..TASKS).map(move |seed| package.generate(seed, (seed / families % 3) as u8 + 1).unwrap())
}

/// Time by the wall and of this thread's processor.
#[derive(Default)]
struct Watch {
    wall: Duration,
    cpu: Duration,
}

impl Watch {
    fn time<T>(&mut self, body: impl FnOnce() -> T) -> T {
        let cpu = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
        let (wall, processor) = (Instant::now(), cpu());
        let result = body();
        self.cpu += cpu().saturating_sub(processor);
        self.wall += wall.elapsed();
        result
    }

    fn steps(&self, steps: usize) -> Value {
        json!({
            "steps": steps, "wall_s": self.wall.as_secs_f64(), "cpu_s": self.cpu.as_secs_f64(),
            "steps_per_s": steps as f64 / self.wall.as_secs_f64(),
            "steps_per_cpu_s": steps as f64 / self.cpu.as_secs_f64(),
        })
    }
}

/// The random policy, from the first state to the verifier's word.
fn heap(name: &str) -> Value {
    let package = open(name);
    let mut opening = Watch::default();
    let mut opened: Vec<_> = opening.time(|| {
        let open = |task: TaskSpec| (package.open(&task).unwrap(), task);
        tasks(&*package).map(open).collect()
    });
    let (mut watch, mut steps) = (Watch::default(), 0);
    for round in 0.. {
        for (instance, task) in &mut opened {
            let conditions = Conditions { seed: task.seed + TASKS * round, ..Conditions::default() };
            let episode = watch.time(|| run(&mut **instance, task, &policies::Random, conditions));
            assert!(episode.score.is_some(), "{:?}", episode.end);
            steps += episode.executed().len();
        }
        if watch.cpu > AT_LEAST {
            break;
        }
    }
    let mut figures = watch.steps(steps);
    figures["open_us"] = micros(opening.cpu / TASKS as u32).into();
    figures
}

/// The actions of an episode and the states they were taken in.
struct Walk {
    task: TaskSpec,
    states: Vec<State>,
    actions: Vec<Action>,
}

fn walks(package: &dyn Environment, policy: &dyn Policy) -> Vec<Walk> {
    let walk = |task: TaskSpec| {
        let mut instance = package.open(&task).unwrap();
        let conditions = Conditions { seed: task.seed, keep: Keep::States, ..Conditions::default() };
        let episode = run(&mut *instance, &task, policy, conditions);
        let actions = episode.executed().iter().map(|exchange| exchange.action.clone()).collect();
        Walk { task, states: episode.checkpoints, actions }
    };
    tasks(package).map(walk).collect()
}

fn bytes(name: &str) -> Value {
    let package = open(name);
    let walks = walks(&*package, &policies::Random);
    let (mut watch, mut steps) = (Watch::default(), 0);
    while watch.cpu < AT_LEAST {
        for walk in &walks {
            let mut instance = package.open(&walk.task).unwrap();
            let mut state = walk.states[0].clone();
            watch.time(|| {
                for action in &walk.actions {
                    state = instance.step(&state, action).unwrap().0;
                }
            });
            assert_eq!(Some(&state), walk.states.get(walk.actions.len()));
            steps += walk.actions.len();
        }
    }
    watch.steps(steps)
}

/// The teacher's walks, so that every first step changes something.
fn fork(name: &str) -> Value {
    const TIMES: usize = 5;
    const HASHES: u32 = 64;
    let package = open(name);
    let mut sizes = Vec::new();
    let (mut small, mut small_hash) = (Vec::new(), Vec::new());
    let (mut large_ns, mut large_hash_ns) = (Vec::new(), Vec::new());
    for walk in walks(&*package, &policies::Expert) {
        let mut instance = package.open(&walk.task).unwrap();
        for (state, action) in walk.states.iter().zip(&walk.actions) {
            let size = state.as_str().len();
            sizes.push(size);
            for _ in 0..TIMES {
                let start = Instant::now();
                let copy = State::new(state.as_str());
                instance.step(&copy, action).unwrap();
                let taken = start.elapsed();
                let start = Instant::now();
                for _ in 0..HASHES {
                    std::hint::black_box(std::hint::black_box(state).hash());
                }
                let hashing = start.elapsed() / HASHES;
                if size <= SMALL {
                    small.push(micros(taken));
                    small_hash.push(micros(hashing));
                } else {
                    large_ns.push(taken.as_secs_f64() * 1e9 / size as f64);
                    large_hash_ns.push(hashing.as_secs_f64() * 1e9 / size as f64);
                }
            }
        }
    }
    sizes.sort_unstable();
    json!({
        "states": sizes.len(), "state_bytes_p50": sizes[sizes.len() / 2], "state_bytes_max": sizes.last(),
        "fork_us_p50": quantile(&mut small, 2), "fork_us_p10": quantile(&mut small, 10),
        "hash_us_p50": quantile(&mut small_hash, 2),
        "large_states": large_ns.len() / TIMES,
        "large_fork_ns_per_byte_p50": quantile(&mut large_ns, 2),
        "large_hash_ns_per_byte_p50": quantile(&mut large_hash_ns, 2),
    })
}

/// A worker starts in a folder of its own.
fn worker(recoup: &str) -> ChildCommand {
    ChildCommand::worker(std::path::absolute(recoup).unwrap(), false)
}

fn spawn(name: &str, recoup: &str) -> Value {
    const TIMES: usize = 20;
    let files = bundled::files(name).expect("a bundled package");
    let mut times: Vec<f64> = (0..TIMES)
        .map(|_| {
            let start = Instant::now();
            let package = WorkerPackage::load(&files, &worker(recoup)).unwrap();
            let taken = start.elapsed();
            drop(package);
            taken.as_secs_f64() * 1e3
        })
        .collect();
    json!({
        "times": TIMES, "spawn_ms_p50": quantile(&mut times, 2), "spawn_ms_p10": quantile(&mut times, 10),
    })
}

fn single(name: &str, recoup: &str) -> Value {
    const STEPS: usize = 20_000;
    let files = bundled::files(name).expect("a bundled package");
    let package = WorkerPackage::load(&files, &worker(recoup)).unwrap();
    let (mut watch, mut times, mut bytes) = (Watch::default(), Vec::new(), 0);
    let walks = walks(&*open(name), &policies::Random);
    for walk in walks.iter().cycle() {
        let mut instance = package.open(&walk.task).unwrap();
        for (state, action) in walk.states.iter().zip(&walk.actions) {
            let start = Instant::now();
            watch.time(|| instance.step(state, action).unwrap());
            times.push(micros(start.elapsed()));
            bytes += state.as_str().len();
        }
        if times.len() >= STEPS {
            break;
        }
    }
    json!({
        "steps": times.len(), "state_bytes_mean": bytes / times.len(), "caller_cpu_us": micros(watch.cpu) / times.len() as f64,
        "step_us_p50": quantile(&mut times, 2), "step_us_p10": quantile(&mut times, 10),
    })
}

fn batched(name: &str, recoup: &str) -> Value {
    let files = bundled::files(name).expect("a bundled package");
    let package = WorkerPackage::load(&files, &worker(recoup)).unwrap();
    let walks = walks(&*open(name), &policies::Random);
    let (mut watch, mut steps) = (Watch::default(), 0);
    while watch.wall < AT_LEAST {
        for walk in &walks {
            let mut instance = package.open(&walk.task).unwrap();
            let (state, _) = watch.time(|| instance.run_actions(None, &walk.actions).unwrap());
            assert_eq!(Some(&state), walk.states.get(walk.actions.len()));
            steps += walk.actions.len();
        }
    }
    watch.steps(steps)
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// The element at one part in so many of the sorted values; nothing where there are none.
fn quantile(values: &mut [f64], parts: usize) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / parts).copied()
}
