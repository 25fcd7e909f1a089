//! One pass over runs: each is loaded once, redacted once, and shown to every view and its exporter.

use super::rows::run_row;
use crate::exporters::{Built, ExportWriter, Training};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::pipeline::PipelineError;
use crate::pipeline::diagnose::text_len;
use crate::redaction::{Redacted, redact};
use crate::report::RunRow;
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Row, Store, StoreError};
use crate::trajectory::{Status, Trajectory};
use crate::verdict::{Blame, Content, Diagnosis, FailureClass, Finding, Side};
use crate::views::{Exclusion, ViewInput};

/// Text of one parallel batch of runs, in bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Runs of one batch.
const BATCH_RUNS: u64 = 256;

/// One run as the store has it.
pub(super) struct Loaded {
    pub row: Row,
    pub run: Trajectory,
    pub blame: Option<Blame>,
    pub class: Option<FailureClass>,
    pub diagnosis: Option<Diagnosis>,
    pub findings: Vec<Finding>,
}

/// What one run gives to every outlet.
struct Given {
    redacted: Redacted,
    rows: Vec<Result<Vec<Built>, Exclusion>>,
    report: RunRow,
}

/// Shows every run, or the ones named, to the writers, each of which has its view; returns their rows.
pub(super) fn pass(
    store: &Store,
    ids: Option<&[TrajectoryId]>,
    training: &[Training<'_>],
    threads: usize,
    writers: &mut [ExportWriter<'_>],
    reporter: &mut dyn Reporter,
) -> Result<Vec<RunRow>, PipelineError> {
    let total = ids.map_or_else(|| store.count(&Filter::default()), |ids| Ok(ids.len() as u64))?;
    reporter.stage("write", Some(total));
    let mut rows = Vec::new();
    let mut offset = 0;
    loop {
        let page = match ids {
            None => store.list(&Filter::default(), Page { offset, limit: BATCH_RUNS })?,
            Some(ids) => {
                let named = ids.iter().skip(offset as usize).take(BATCH_RUNS as usize);
                named.map(|id| store.row(*id)).collect::<Result<_, _>>()?
            }
        };
        if page.is_empty() {
            return Ok(rows);
        }
        offset += page.len() as u64;
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut page = page.into_iter().peekable();
        while let Some(row) = page.next() {
            let loaded = load(store, row)?;
            bytes += text_len(&loaded.run);
            batch.push(loaded);
            if bytes < BATCH_BYTES && page.peek().is_some() {
                continue;
            }
            reporter.advance(batch.len() as u64);
            for given in parallel::map(&std::mem::take(&mut batch), threads, |loaded| give(loaded, training))
            {
                for (writer, built) in writers.iter_mut().zip(given.rows) {
                    writer.offer(&given.redacted, built)?;
                }
                rows.push(given.report);
            }
            bytes = 0;
        }
    }
}

fn load(store: &Store, row: Row) -> Result<Loaded, StoreError> {
    let run = store.effective(row.id)?;
    let current = |kind| Ok::<_, StoreError>(store.current(row.id, kind)?.map(|verdict| verdict.content));
    let (mut blame, mut class, mut diagnosis, mut findings) = (None, None, None, Vec::new());
    // A solved run has no failure, whatever was decided while it counted as one.
    if run.outcome().status != Status::Success {
        if let Some(Content::Blame(found)) = current("blame")? {
            blame = Some(found);
        }
        if let Some(Content::FailureClass(found)) = current("failure_class")? {
            class = Some(found);
        }
        if let Some(Content::Diagnosis(found)) = current("diagnosis")? {
            findings.clone_from(&found.findings);
            diagnosis = Some(found);
        }
    }
    if diagnosis.is_none()
        && let Some(Content::Findings(found)) = current("findings")?
    {
        findings = found;
    }
    Ok(Loaded { row, run, blame, class, diagnosis, findings })
}

fn give(loaded: &Loaded, training: &[Training<'_>]) -> Given {
    let mut redacted = redact(&loaded.run);
    let side = side(loaded.row.split.as_deref());
    let input = ViewInput {
        run: &redacted.trajectory,
        blame: loaded.blame.as_ref(),
        class: loaded.class.as_ref(),
        diagnosis: loaded.diagnosis.as_ref(),
        side: side.unwrap_or(Side::Excluded),
    };
    let rows = |Training { view, exporter }: &Training<'_>| {
        let examples = view.build(&input)?.into_iter();
        Ok(examples.flat_map(|example| exporter.rows(example)).collect())
    };
    let rows = training.iter().map(rows).collect();
    let report = run_row(loaded, side, &mut redacted);
    Given { redacted, rows, report }
}

fn side(word: Option<&str>) -> Option<Side> {
    [Side::Train, Side::Validation, Side::Test, Side::Excluded]
        .into_iter()
        .find(|side| Some(side.as_str()) == word)
}
