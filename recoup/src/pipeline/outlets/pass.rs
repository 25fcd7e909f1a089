//! One pass over runs: each is loaded once, redacted once, and shown to every view and its exporter.

use super::load::{Cleared, Loaded};
use super::rows::run_row;
use crate::exporters::{Built, ExportWriter, Training, build_rows};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::pipeline::PipelineError;
use crate::pipeline::diagnose::text_len;
use crate::redaction::Redacted;
use crate::report::RunRow;
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Store};
use crate::verdict::Side;
use crate::views::{Exclusion, ViewInput, ViewSettings};

/// Text of one parallel batch of runs, in bytes.
const BATCH_BYTES: usize = 16 << 20;
/// Runs of one batch.
const BATCH_RUNS: u64 = 256;

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
    settings: &ViewSettings,
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
            let loaded = Loaded::read(store, row)?;
            bytes += loaded.runs().map(text_len).sum::<usize>();
            batch.push(loaded);
            if bytes < BATCH_BYTES && page.peek().is_some() {
                continue;
            }
            reporter.advance(batch.len() as u64);
            let batch = std::mem::take(&mut batch);
            for given in parallel::map(&batch, threads, |loaded| give(loaded, training, settings)) {
                for (writer, built) in writers.iter_mut().zip(given.rows) {
                    writer.offer(&given.redacted, built)?;
                }
                rows.push(given.report);
            }
            bytes = 0;
        }
    }
}

fn give(loaded: &Loaded, training: &[Training<'_>], settings: &ViewSettings) -> Given {
    let Cleared { mut redacted, diagnosis, reviews, forks } = loaded.clear();
    let side = side(loaded.row.split.as_deref());
    let input = ViewInput {
        blame: loaded.blame.as_ref(),
        class: loaded.class.as_ref(),
        diagnosis: diagnosis.as_ref(),
        reviews: &reviews,
        forks: &forks,
        sweep: loaded.sweep.as_ref(),
        ..ViewInput::new(&redacted.trajectory, side.unwrap_or(Side::Excluded), settings)
    };
    let rows = |Training { view, exporter, options }: &Training<'_>| {
        Ok(build_rows(*exporter, view.build(&input)?, *options))
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
