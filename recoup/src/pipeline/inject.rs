//! Fault injection into successful runs, and how near the diagnosis comes to the faults.

use serde::Serialize;

use super::PipelineError;
use super::replay::{ReplayConfig, store_runs};
use super::worlds::Worlds;
use crate::diagnosis::{DiagnosisConfig, diagnose};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::replay::{self, Injected, Matched, Reopened, ReplayError};
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Store};
use crate::trajectory::{Status, Trajectory};

/// What injecting faults gave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Injecting {
    /// Successful runs that a fault was put into.
    pub tried: u64,
    /// Of them, those that fail with it and pass without.
    pub kept: u64,
    /// Runs that cannot be replayed.
    pub unsupported: u64,
    /// Kept runs that the rules diagnose.
    pub diagnosed: u64,
    /// Diagnoses at the very turn.
    pub exact: u64,
    /// Diagnoses at most one turn away.
    pub within_one: u64,
}

/// Puts a fault into each of the first `count` successful runs that have an environment, and keeps
/// those whose label holds as runs of their own.
///
/// # Errors
/// When the store fails.
pub fn inject(
    store: &mut Store,
    count: usize,
    config: &ReplayConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Injecting, PipelineError> {
    let filter = Filter { outcome: Some(Status::Success.as_str().to_owned()), ..Filter::default() };
    let ids: Vec<TrajectoryId> = store.list(&filter, Page::ALL)?.into_iter().map(|row| row.id).collect();
    let mut worlds = Worlds::new(config.opener, config.policy);
    let mut runs = Vec::new();
    for id in ids {
        if runs.len() == count {
            break;
        }
        let run = store.effective(id)?;
        if run.environment.is_some() {
            worlds.prepare(&run);
            runs.push(run);
        }
    }
    reporter.stage("inject", Some(runs.len() as u64));
    let answers = parallel::map(&runs, config.threads, |run| one(run, &worlds, config));
    reporter.advance(runs.len() as u64);
    let mut done = Injecting { tried: runs.len() as u64, ..Injecting::default() };
    let mut kept = Vec::new();
    for answer in answers {
        match answer {
            Ok(None) => {}
            Err(_) => done.unsupported += 1,
            Ok(Some((injected, distance))) => {
                done.kept += 1;
                done.diagnosed += u64::from(distance.is_some());
                done.exact += u64::from(distance == Some(0));
                done.within_one += u64::from(distance.is_some_and(|distance| distance <= 1));
                kept.push(injected.run);
            }
        }
    }
    store_runs(store, kept, config.now)?;
    Ok(done)
}

/// An injected run, with the number of turns between its fault and the diagnosed one.
type Located = (Injected, Option<usize>);

fn one(
    run: &Trajectory,
    worlds: &Worlds<'_>,
    config: &ReplayConfig<'_>,
) -> Result<Option<Located>, ReplayError> {
    let environment = worlds.environment(run).map_err(Clone::clone)?;
    let policy = worlds.policy(run).map_err(|name| ReplayError::UnknownPolicy(name.to_owned()))?;
    let mut reopened = Reopened::open(run, environment)?;
    let checkpoints = reopened.execute(None)?;
    let (seed, continuations) = (config.plan.seed, 1);
    let matched = Matched { run, environment, policy, seed, continuations };
    let Some(injected) = replay::inject(&matched, &mut reopened, &checkpoints)? else { return Ok(None) };
    let bodies: Vec<_> =
        injected.run.bodies.iter().map(|body| (body.hash, body.bytes.clone().into())).collect();
    let head = &injected.run.head;
    let unsealed = Trajectory::unseal(&injected.run.record, head.source.clone(), head.key, &bodies).ok();
    let distance = unsealed.and_then(|run| {
        let diagnosis = diagnose(&run, &[], &DiagnosisConfig::default()).diagnosis?;
        Some(run.main_branch().step(diagnosis.decisive_node)?.abs_diff(injected.step))
    });
    Ok(Some((injected, distance)))
}
