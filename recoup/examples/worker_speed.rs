//! Times a package in a worker: how long a worker takes to start, a single step, and steps in batches.
//!
//! `cargo run --release -p recoup --features packages --example worker_speed -- target/release/recoup [quest]`

#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use recoup::environments::child::ChildCommand;
use recoup::environments::worker::WorkerPackage;
use recoup::environments::{Action, Environment, bundled};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn main() {
    let mut words = std::env::args().skip(1);
    // A worker starts in a folder of its own.
    let program = std::path::absolute(words.next().expect("usage: worker_speed RECOUP [PACKAGE]")).unwrap();
    let name = words.next().unwrap_or_else(|| "quest".to_owned());
    let files = bundled::files(&name).expect("a bundled package");
    let command =
        ChildCommand { program: program.into(), arguments: vec!["env-worker".into()], variables: Vec::new() };

    let spawns = (0..20).map(|_| {
        let start = Instant::now();
        drop(WorkerPackage::load(&files, &command).unwrap());
        start.elapsed()
    });
    let spawn = median(spawns.collect());

    // An expert's walk, then the same actions again and again.
    let package = WorkerPackage::load(&files, &command).unwrap();
    let task = package.generate(0, 3).unwrap();
    let mut instance = package.open(&task).unwrap();
    let mut states = vec![instance.start().unwrap().0];
    let mut actions: Vec<Action> = Vec::new();
    while let Some(action) = instance.expert(states.last().unwrap()).unwrap() {
        let (state, step) = instance.step(states.last().unwrap(), &action).unwrap();
        actions.push(action);
        if step.done {
            break;
        }
        states.push(state);
    }
    let mut singles = Vec::new();
    for _ in 0..200 {
        for (state, action) in states.iter().zip(&actions) {
            let start = Instant::now();
            instance.step(state, action).unwrap();
            singles.push(start.elapsed());
        }
    }
    let single = median(singles);

    // One request a walk.
    let mut rates = Vec::new();
    for _ in 0..20 {
        let (start, mut steps) = (Instant::now(), 0);
        for _ in 0..20 {
            steps += instance.run_actions(None, &actions).unwrap().1.len() - 1;
        }
        rates.push(steps as f64 / start.elapsed().as_secs_f64());
    }
    rates.sort_by(f64::total_cmp);
    println!(
        "{{\"package\":\"{name}\",\"walk\":{},\"spawn_ms\":{:.2},\"single_step_us\":{:.1},\"batched_steps_a_second\":{:.0}}}",
        actions.len(),
        spawn.as_secs_f64() * 1e3,
        single.as_secs_f64() * 1e6,
        rates[rates.len() / 2]
    );
}
