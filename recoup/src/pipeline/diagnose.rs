//! Diagnosis of every run that waits for it, task by task, in parallel.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use super::judge::Judging;
use super::siblings::successes;
use crate::diagnosis::{self, Diagnosed, DiagnosisConfig, RULES_VERSION};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::reporter::Reporter;
use crate::store::{Group, Store, StoreError};
use crate::trajectory::{Part, Trajectory};
use crate::verdict::{Decision, Verdict};

/// The stage's name in the project.
const STAGE: &str = "diagnosis";
/// Text of one parallel batch of runs, in bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Runs of one batch.
const BATCH_RUNS: usize = 512;

/// What the stage did: by rules, or by judges where a panel was asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosing {
    /// Runs looked at.
    pub runs: u64,
    /// Diagnoses made.
    pub diagnosed: u64,
    /// Of them, those that every gate and judge admitted.
    pub admitted: u64,
    /// Runs without an admitted diagnosis, by the first gate that refused the last answer.
    pub rejected: BTreeMap<String, u64>,
    /// Questions that models answered, the cache included.
    pub calls: u64,
    /// Questions answered from the cache.
    pub cached: u64,
    /// Cost in US dollars; `None` where a model has no price.
    pub cost_usd: Option<f64>,
    /// What the panel did, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judging: Option<Judging>,
}

impl Diagnosing {
    fn count(&mut self, diagnosed: &Diagnosed) {
        self.runs += 1;
        if diagnosed.diagnosis.is_none() {
            return;
        }
        self.diagnosed += 1;
        match diagnosed.reviews.iter().find(|review| review.decision == Decision::Reject) {
            None => self.admitted += 1,
            Some(review) => *self.rejected.entry(review.gate.to_owned()).or_default() += 1,
        }
    }
}

/// A run with the successful runs of its task.
struct Work {
    run: Trajectory,
    siblings: Arc<Vec<Trajectory>>,
}

/// Diagnoses the runs of every task that has new runs or new outcomes.
///
/// # Errors
/// When the store fails; tasks that were finished stay finished.
pub fn diagnose(
    store: &mut Store,
    now: &str,
    threads: usize,
    reporter: &mut dyn Reporter,
) -> Result<Diagnosing, StoreError> {
    let config = DiagnosisConfig::default();
    let groups = store.pending(STAGE, RULES_VERSION)?;
    reporter.stage("diagnose", Some(groups.iter().map(|group| group.runs.len() as u64).sum()));
    let mut done = Diagnosing { cost_usd: Some(0.0), ..Diagnosing::default() };
    let mut batch = Batch::default();
    for group in groups {
        let alone = group.runs.len() < 2;
        let siblings = Arc::new(if alone { Vec::new() } else { successes(store, &group.task)? });
        batch.bytes += siblings.iter().map(text_len).sum::<usize>();
        for id in &group.runs {
            let run = store.effective(*id)?;
            batch.bytes += text_len(&run);
            batch.work.push(Work { run, siblings: siblings.clone() });
            if batch.is_full() {
                batch.flush(store, &mut done, &config, now, threads, reporter)?;
            }
        }
        batch.finished.push(group);
    }
    batch.flush(store, &mut done, &config, now, threads, reporter)?;
    Ok(done)
}

/// Diagnoses these runs, looked at already or not.
///
/// # Errors
/// When the store fails; what was kept stays.
pub fn diagnose_again(
    store: &mut Store,
    runs: &[TrajectoryId],
    now: &str,
    threads: usize,
    reporter: &mut dyn Reporter,
) -> Result<Diagnosing, StoreError> {
    let config = DiagnosisConfig::default();
    reporter.stage("diagnose", Some(runs.len() as u64));
    let mut done = Diagnosing { cost_usd: Some(0.0), ..Diagnosing::default() };
    let mut batch = Batch::default();
    for id in runs {
        let run = store.effective(*id)?;
        let siblings = Arc::new(successes(store, &store.row(*id)?.task)?);
        batch.bytes += text_len(&run) + siblings.iter().map(text_len).sum::<usize>();
        batch.work.push(Work { run, siblings });
        if batch.is_full() {
            batch.flush(store, &mut done, &config, now, threads, reporter)?;
        }
    }
    batch.flush(store, &mut done, &config, now, threads, reporter)?;
    Ok(done)
}

/// Runs that wait to be diagnosed together, and the tasks that are finished with them.
#[derive(Default)]
struct Batch {
    work: Vec<Work>,
    bytes: usize,
    finished: Vec<Group>,
}

impl Batch {
    fn is_full(&self) -> bool {
        self.bytes >= BATCH_BYTES || self.work.len() >= BATCH_RUNS
    }

    fn flush(
        &mut self,
        store: &mut Store,
        done: &mut Diagnosing,
        config: &DiagnosisConfig,
        now: &str,
        threads: usize,
        reporter: &mut dyn Reporter,
    ) -> Result<(), StoreError> {
        let diagnosed = parallel::map(&self.work, threads, |work| {
            let siblings: Vec<&Trajectory> =
                work.siblings.iter().filter(|sibling| sibling.id != work.run.id).collect();
            let diagnosed = diagnosis::diagnose(&work.run, &siblings, config);
            let verdicts = diagnosed.verdicts(work.run.id, now);
            (diagnosed, verdicts)
        });
        for (diagnosed, _) in &diagnosed {
            done.count(diagnosed);
        }
        let verdicts: Vec<Verdict> = diagnosed.into_iter().flat_map(|(_, verdicts)| verdicts).collect();
        store.put_verdicts(&verdicts)?;
        store.mark_done(STAGE, RULES_VERSION, &self.finished)?;
        reporter.advance(self.work.len() as u64);
        *self = Self::default();
        Ok(())
    }
}

/// Bytes of text that a run holds in memory.
pub(super) fn text_len(run: &Trajectory) -> usize {
    fn parts_len(parts: &[Part]) -> usize {
        let len = |part: &Part| match part {
            Part::ToolResult(result) => parts_len(&result.parts),
            part => part.cited_text().map_or(0, str::len),
        };
        parts.iter().map(len).sum()
    }
    run.nodes.iter().map(|node| parts_len(&node.parts)).sum()
}
