//! Failed runs of weak policies in the bundled environments, made for these tests.

use recoup::environments::bundled;
use recoup::hindsight::corpus::Corpus;
use recoup::rollout::{Plan, collect, policies};
use recoup::store::{Filter, Page};
use recoup::trajectory::{Status, Trajectory};

use crate::store::project;

/// Who acts where.
const WHO: &[(&str, &str)] = &[
    ("desk", "weak:premature-stop@0.2"),
    ("desk", "weak:skip-step@0.3"),
    ("quest", "weak:premature-stop@0.2"),
    ("quest", "weak:budget-overrun@0.4"),
    ("toolchain", "weak:premature-stop@0.2"),
    ("toolchain", "weak:budget-overrun@0.4"),
    ("shop", "weak:premature-stop@0.2"),
];

/// Failed runs, and the corpus of all of them.
pub(super) fn failed(tasks: u64, seed: u64) -> (Vec<Trajectory>, Corpus) {
    let (_folder, mut store) = project();
    for (name, policy) in WHO {
        let environment = bundled::open(name).unwrap().unwrap();
        let policy = policies::parse(policy).unwrap();
        let plan = Plan::new(tasks, seed);
        collect(&mut store, &*environment, &*policy, &plan, 2, "2026-01-01T00:00:00Z", &mut ()).unwrap();
    }
    let filter = Filter { outcome: Some(Status::Failure.as_str().to_owned()), ..Filter::default() };
    let rows = store.list(&filter, Page::ALL).unwrap();
    let runs: Vec<Trajectory> = rows.iter().map(|row| store.effective(row.id).unwrap()).collect();
    let corpus = Corpus::new(runs.iter().map(|run| (run.task.key.clone(), Corpus::document(run))));
    (runs, corpus)
}
