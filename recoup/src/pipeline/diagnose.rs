//! Diagnosis of every run that waits for it, task by task, in parallel.

use std::sync::Arc;

use serde::Serialize;

use super::siblings::successes;
use crate::diagnosis::{self, DiagnosisConfig, RULES_VERSION};
use crate::parallel;
use crate::reporter::Reporter;
use crate::store::{Group, Store, StoreError};
use crate::trajectory::{Part, Trajectory};
use crate::verdict::Verdict;

/// The stage's name in the project.
const STAGE: &str = "diagnosis";
/// Text of one parallel batch of runs, in bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Runs of one batch.
const BATCH_RUNS: usize = 512;

/// What the stage did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosing {
    /// Runs looked at.
    pub runs: u64,
    /// Diagnoses made.
    pub diagnosed: u64,
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
    let mut done = Diagnosing::default();
    let mut batch = Batch::default();
    for group in groups {
        let alone = group.runs.len() < 2;
        let siblings = Arc::new(if alone { Vec::new() } else { successes(store, &group.task)? });
        batch.bytes += siblings.iter().map(text_len).sum::<usize>();
        for id in &group.runs {
            let run = store.effective(*id)?;
            batch.bytes += text_len(&run);
            batch.work.push(Work { run, siblings: siblings.clone() });
            if batch.bytes >= BATCH_BYTES || batch.work.len() >= BATCH_RUNS {
                batch.flush(store, &mut done, &config, now, threads, reporter)?;
            }
        }
        batch.finished.push(group);
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
            (u64::from(diagnosed.diagnosis.is_some()), diagnosed.verdicts(work.run.id, now))
        });
        done.runs += diagnosed.len() as u64;
        done.diagnosed += diagnosed.iter().map(|(count, _)| count).sum::<u64>();
        let verdicts: Vec<Verdict> = diagnosed.into_iter().flat_map(|(_, verdicts)| verdicts).collect();
        for chunk in verdicts.chunks(1000) {
            store.put_verdicts(chunk)?;
        }
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
