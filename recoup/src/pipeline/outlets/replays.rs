//! What the replays of a project show, for the report.

use std::collections::{BTreeMap, BTreeSet};

use crate::id::TrajectoryId;
use crate::redaction::redact_name;
use crate::replay::{self, REPLAY_VERSION};
use crate::report::{Curves, ReplayRow};
use crate::store::{Store, StoreError};
use crate::verdict::{Content, ReplayPair};

/// Seed of the report's resampling: the same project, the same intervals.
const REPORT_SEED: u64 = 0;

/// What the replays of the project show: of each run the current pair of each configuration, natural
/// faults only, as this version of the procedure found them. Why a run could not be replayed counts only
/// until it could. `None` where nothing was replayed.
pub(super) fn replay_row(store: &Store) -> Result<Option<ReplayRow>, StoreError> {
    let mut pairs: Vec<(String, TrajectoryId, ReplayPair)> = Vec::new();
    for (task, verdict) in store.of_kind("replay_pair")? {
        let Content::ReplayPair(pair) = verdict.content else { continue };
        // The current one comes first.
        let known = pairs
            .iter()
            .rev()
            .take_while(|(_, run, _)| *run == verdict.subject)
            .any(|(_, _, other)| other.config_hash == pair.config_hash);
        if !pair.injected && !known && verdict.producer.version == REPLAY_VERSION {
            pairs.push((task.0, verdict.subject, pair));
        }
    }
    let replayed = pairs.iter().filter(|(_, _, pair)| pair.unsupported.is_none());
    let replayed: BTreeSet<TrajectoryId> = replayed.map(|(_, run, _)| *run).collect();
    pairs.retain(|(_, run, pair)| pair.unsupported.is_none() || !replayed.contains(run));
    let mut curves: Vec<Curves> = Vec::new();
    for (task, verdict) in store.of_kind("sweep")? {
        let Content::Sweep(sweep) = verdict.content else { continue };
        let run = verdict.subject.to_string();
        if !sweep.injected && curves.last().is_none_or(|last| last.run != run) {
            let steps = store.row(verdict.subject)?.steps as usize;
            curves.push(Curves { run, task: redact_name(&task.0), steps, sweep });
        }
    }
    if pairs.is_empty() && curves.is_empty() {
        return Ok(None);
    }
    let mut claims: BTreeMap<String, u64> = BTreeMap::new();
    let mut last = None;
    for (_, verdict) in store.of_kind("claim")? {
        let Content::Claim(claim) = verdict.content else { continue };
        if last.replace(verdict.subject) != Some(verdict.subject) {
            *claims.entry(claim.rung.as_str().to_owned()).or_default() += 1;
        }
    }
    let mut summary =
        replay::summarize(pairs.iter().map(|(task, _, pair)| (task.as_str(), pair)), REPORT_SEED);
    for group in &mut summary.groups {
        group.environment = redact_name(&group.environment);
        group.policy = redact_name(&group.policy);
    }
    Ok(Some(ReplayRow { summary, claims, curves }))
}
