//! Collecting: episodes of many tasks, in parallel, stored as ordinary runs.
//!
//! Results are put back in the order of the plan, so the project is the same whatever the number of
//! threads. They are committed batch by batch: a process that is killed loses the batch under way, and
//! the same call started again finds what is stored and makes the rest.

use std::collections::BTreeMap;

use super::attempt::Attempt;
use super::record::native_id;
use super::{Assignment, FORMAT, Plan, PlanError, Policy};
use crate::environments::{Environment, Identity, TaskSpec};
use crate::id::TrajectoryId;
use crate::importers::{Sink as _, SinkError};
use crate::parallel;
use crate::reporter::Reporter;
use crate::statistics::{Interval, Z_95, wilson};
use crate::store::{Filter, Page, Store, StoreError};
use crate::trajectory::{Outcome, Status, Trajectory};

/// Episodes of a batch, for each thread.
const BATCH: usize = 64;

/// What a call has collected, what was there before included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// Runs of the plan, all of which are now stored.
    pub episodes: u64,
    /// Those that were made by this call.
    pub new: u64,
    /// Runs that a verifier passed.
    pub passed: u64,
    /// Runs that a verifier scored: all but those that an error ended.
    pub scored: u64,
    /// Runs by how they ended.
    pub end_modes: BTreeMap<String, u64>,
    /// Errors of the environment and the policy by code, with the first message of each.
    pub errors: BTreeMap<String, (u64, String)>,
}

/// Why collecting stopped. What was committed is kept.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The plan asks for what does not exist.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The project failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What was collected could not be stored.
    #[error(transparent)]
    Sink(#[from] SinkError),
}

/// What of a plan is to be done, and what is stored already.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pending {
    /// Runs to be made.
    pub missing: Vec<Assignment>,
    /// Runs that are stored.
    pub known: Vec<TrajectoryId>,
}

/// Compares a plan with a project.
///
/// # Errors
/// Those of the plan and the project.
pub fn pending(
    store: Option<&Store>,
    identity: &Identity,
    policy: &dyn Policy,
    plan: &Plan,
) -> Result<Pending, CollectError> {
    let assignments = plan.assignments(&identity.manifest)?;
    let mut stored = BTreeMap::new();
    if let Some(store) = store {
        let ours = Filter { format: Some(FORMAT.to_owned()), ..Filter::default() };
        let rows = store.list(&ours, Page::ALL)?;
        stored.extend(rows.into_iter().filter_map(|row| Some((row.native_id?, row.id))));
    }
    let mut pending = Pending::default();
    for assignment in assignments {
        let Assignment { task_seed, difficulty, family, trial, seed } = &assignment;
        let key = TaskSpec::key_of(&identity.manifest.name, family, *difficulty, *task_seed);
        let id = native_id(identity, &key, policy.name(), *seed, *trial, plan.limits);
        match stored.get(&id) {
            Some(id) => pending.known.push(*id),
            None => pending.missing.push(assignment),
        }
    }
    Ok(pending)
}

/// Runs what of a plan is not stored yet, and stores it. `now` (RFC 3339) dates the verdicts that come
/// with storing.
///
/// # Errors
/// Those of the plan and the project. An error of the environment or of the policy costs the episode
/// that it happened in, and is on its record.
pub fn collect(
    store: &mut Store,
    environment: &dyn Environment,
    policy: &dyn Policy,
    plan: &Plan,
    threads: usize,
    now: &str,
    reporter: &mut dyn Reporter,
) -> Result<Collected, CollectError> {
    let identity = environment.identity();
    let Pending { missing, known } = pending(Some(store), identity, policy, plan)?;
    let mut collected = Collected::default();
    for id in known {
        collected.count(&store.load(id)?);
    }
    reporter.stage("collect", Some(missing.len() as u64));
    for batch in missing.chunks(BATCH * threads.max(1)) {
        let runs = parallel::map(batch, threads, |assignment| {
            let attempt = Attempt::play(environment, policy, plan, assignment, plan.keep);
            attempt.record(environment.identity(), policy, plan, assignment)
        });
        let mut sink = store.import(now)?;
        for (run, native) in runs {
            collected.count(&run);
            sink.trajectory(run, &native, Vec::new())?;
        }
        collected.new += sink.finish()?.counts.new;
        reporter.advance(batch.len() as u64);
    }
    Ok(collected)
}

impl Collected {
    /// The rate of success among the scored runs, with its 95 % interval (Wilson).
    pub fn success(&self) -> Interval {
        wilson(self.passed, self.scored, Z_95)
    }

    fn count(&mut self, run: &Trajectory) {
        let Outcome { status, termination, .. } = run.outcome();
        self.episodes += 1;
        self.passed += u64::from(*status == Status::Success);
        self.scored += u64::from(*status != Status::Unknown);
        let native = termination.as_ref().map_or("unknown", |termination| termination.native.as_str());
        *self.end_modes.entry(native.to_owned()).or_default() += 1;
        if let Some(error) = run.extra.get("error") {
            let error = error.to_value();
            let text =
                |name: &str| error.get(name).and_then(|text| text.as_str()).unwrap_or_default().to_owned();
            self.errors.entry(text("code")).or_insert_with(|| (0, text("message"))).0 += 1;
        }
    }
}
