//! The release of a project: every run with its verdicts and continuations, redacted, as linked tables.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use super::PipelineError;
use super::diagnose::text_len;
use super::outlets::remove_partial;
use crate::artifact::{Artifact, Provenance};
use crate::exporters::release::{CARD, Case, Release, ReleaseWriter, case_rows, is_own_card};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Row, Store, StoreError};
use crate::verdict::Side;

/// Text of one parallel batch, in bytes.
const BATCH_BYTES: usize = 16 << 20;

/// What the caller decides about a release.
#[derive(Clone, Copy, Debug)]
pub struct ReleaseConfig {
    /// Leave out runs whose licence is unknown, instead of writing nothing.
    pub skip_unknown: bool,
    /// Threads to use.
    pub threads: usize,
}

/// Writes every run of the project, its continuations and what was decided about them into a folder.
///
/// # Errors
/// [`PipelineError::UnknownLicence`] where a run's licence is unknown and it is not to be skipped, before
/// anything is written; [`PipelineError::NothingLeft`] where no run is left; else when the store or the folder
/// fails.
pub fn release(
    store: &Store,
    out: &Path,
    config: ReleaseConfig,
    provenance: Provenance,
    reporter: &mut dyn Reporter,
) -> Result<Artifact<Release>, PipelineError> {
    let card = out.join(CARD);
    if fs::read(&card).is_ok_and(|bytes| !is_own_card(&bytes)) {
        return Err(PipelineError::Foreign { path: card });
    }
    let rows = roots(store)?;
    let unknown = unknown_licences(store, &rows)?;
    if let Some(example) = rows.iter().map(|row| row.id).find(|id| unknown.contains(id))
        && !config.skip_unknown
    {
        return Err(PipelineError::UnknownLicence { count: unknown.len() as u64, example });
    }
    if rows.len() == unknown.len() {
        return Err(PipelineError::NothingLeft);
    }
    let failed = |source| PipelineError::Io { path: out.to_owned(), source };
    fs::create_dir_all(out).map_err(failed)?;
    remove_partial(out).map_err(failed)?;
    reporter.stage("release", Some(rows.len() as u64));
    let mut writer = ReleaseWriter::create(out)?;
    let mut batch: Vec<Case> = Vec::new();
    let mut bytes = 0;
    let mut flush = |batch: &mut Vec<Case>, writer: &mut ReleaseWriter| -> Result<(), PipelineError> {
        let given = parallel::map(batch, config.threads, case_rows);
        for (case, rows) in batch.iter().zip(given) {
            writer.offer(case, &rows)?;
        }
        reporter.advance(batch.len() as u64);
        batch.clear();
        Ok(())
    };
    for row in &rows {
        if unknown.contains(&row.id) {
            writer.pass_over_unknown_licence();
            continue;
        }
        let case = case(store, row)?;
        bytes += std::iter::once(&case.run).chain(&case.continuations).map(text_len).sum::<usize>();
        batch.push(case);
        if bytes >= BATCH_BYTES {
            flush(&mut batch, &mut writer)?;
            bytes = 0;
        }
    }
    flush(&mut batch, &mut writer)?;
    Ok(writer.finish(provenance)?)
}

/// Every run that is not released with another one: those that continue none, and those whose origin is
/// not in the project.
fn roots(store: &Store) -> Result<Vec<Row>, StoreError> {
    let mut rows = store.list(&Filter::default(), Page::ALL)?;
    let known: HashSet<TrajectoryId> = rows.iter().map(|row| row.id).collect();
    for row in store.list(&Filter { continuations: true, ..Filter::default() }, Page::ALL)? {
        if !known.contains(&row.id) && store.origin(row.id)?.is_none() {
            rows.push(row);
        }
    }
    Ok(rows)
}

fn unknown_licences(store: &Store, rows: &[Row]) -> Result<HashSet<TrajectoryId>, StoreError> {
    let mut unknown = HashSet::new();
    for row in rows {
        if matches!(store.licence(row.id)?.trim().to_lowercase().as_str(), "" | "unknown") {
            unknown.insert(row.id);
        }
    }
    Ok(unknown)
}

fn case(store: &Store, row: &Row) -> Result<Case, StoreError> {
    let continuations = store.continuations(row.id)?;
    Ok(Case {
        run: store.effective(row.id)?,
        side: row.split.as_deref().and_then(Side::from_word),
        verdicts: store.verdicts(row.id)?,
        continuations: continuations.into_iter().map(|id| store.effective(id)).collect::<Result<_, _>>()?,
    })
}
