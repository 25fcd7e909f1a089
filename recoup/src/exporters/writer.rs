//! The export writer: streams rows into place, counts everything that does not become one.
//!
//! Rows go to a temporary file in the same folder that is renamed at the end, so a reader never sees
//! half an export and an interrupted one leaves the last whole one standing.

use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::{Built, Exporter, Manifest};
use crate::artifact::Provenance;
use crate::failpoint::{self, Failpoint};
use crate::id::hexadecimal;
use crate::redaction::{Redacted, leftovers};
use crate::views::{Deduplicator, Exclusion, Tally};

/// Why an export could not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// Writing failed.
    #[error("cannot write {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
}

/// How the names of files begin that are not whole yet: a call that was killed may leave one, and the
/// next removes it.
pub(crate) const PARTIAL: &str = ".recoup-partial-";

/// A file beside the place it will be renamed to.
pub(crate) fn partial(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(PARTIAL).tempfile_in(folder)
}

/// Writes `<view>.jsonl` and `<view>.manifest.json`.
pub struct ExportWriter<'a> {
    exporter: &'a dyn Exporter,
    rows_path: PathBuf,
    manifest_path: PathBuf,
    rows: BufWriter<NamedTempFile>,
    hasher: Sha256,
    deduplicator: Deduplicator,
    manifest: Manifest,
}

impl<'a> ExportWriter<'a> {
    /// Begins an export into an existing folder.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn create(
        folder: &Path,
        view: &str,
        exporter: &'a dyn Exporter,
        provenance: Provenance,
    ) -> Result<Self, ExportError> {
        let rows_path = folder.join(format!("{view}.jsonl"));
        let file = partial(folder).map_err(|source| ExportError::Io { path: rows_path.clone(), source })?;
        Ok(Self {
            exporter,
            manifest_path: folder.join(format!("{view}.manifest.json")),
            rows_path,
            rows: BufWriter::new(file),
            hasher: Sha256::new(),
            deduplicator: Deduplicator::default(),
            manifest: Manifest::new(exporter, view, provenance),
        })
    }

    /// Takes what a view and the exporter built from a run: writes its rows, or counts why there are none.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn offer(&mut self, run: &Redacted, built: Result<Vec<Built>, Exclusion>) -> Result<(), ExportError> {
        self.manifest.runs_in += 1;
        let rows_before = self.manifest.rows;
        match built {
            Err(exclusion) => *self.manifest.excluded.entry(exclusion.reason.to_owned()).or_default() += 1,
            Ok(rows) => {
                for built in rows {
                    self.write(built)?;
                }
            }
        }
        if self.manifest.rows > rows_before {
            for (kind, count) in &run.counts {
                *self.manifest.redactions.entry(*kind).or_default() += *count as u64;
            }
        }
        Ok(())
    }

    /// Counts what the view built.
    pub fn count(&mut self, tally: &Tally) {
        self.manifest.built.merge(tally);
    }

    fn write(&mut self, Built { example, row, tokens }: Built) -> Result<(), ExportError> {
        if !self.deduplicator.is_new(&example) {
            self.manifest.duplicates += 1;
            return Ok(());
        }
        let mut row = match row {
            Ok(row) => row,
            Err(refusal) => {
                self.refuse(refusal.reason);
                return Ok(());
            }
        };
        if self.exporter.is_text()
            && let Some(reason) = leftover(&row)
        {
            self.refuse(&reason);
            return Ok(());
        }
        if self.manifest.rows == 0 {
            self.exporter.open(&mut row);
        }
        let mut line = row.to_string();
        line.push('\n');
        self.hasher.update(line.as_bytes());
        self.rows
            .write_all(line.as_bytes())
            .map_err(|source| ExportError::Io { path: self.rows_path.clone(), source })?;
        self.manifest.rows += 1;
        if let Some(tokens) = tokens {
            *self.manifest.tokens.get_or_insert_default() += tokens;
        }
        let Manifest { licences, split, .. } = &mut self.manifest;
        *licences.entry(example.lineage.licence).or_default() += 1;
        *split.entry(example.lineage.side).or_default() += 1;
        Ok(())
    }

    fn refuse(&mut self, reason: &str) {
        *self.manifest.refused.entry(reason.to_owned()).or_default() += 1;
    }

    /// Puts both files in place, the rows first.
    ///
    /// # Errors
    /// When they cannot be written; what stood there before then still does.
    pub fn finish(mut self) -> Result<Manifest, ExportError> {
        self.manifest.sha256 = hexadecimal(&self.hasher.finalize());
        let failed = |path: &Path, source| ExportError::Io { path: path.to_owned(), source };
        let rows = self.rows.into_inner().map_err(|error| failed(&self.rows_path, error.into_error()))?;
        place(rows, &self.rows_path, Failpoint::Rows).map_err(|source| failed(&self.rows_path, source))?;
        let folder = self.manifest_path.parent().unwrap_or(Path::new("."));
        let manifest = partial(folder).and_then(|mut file| {
            serde_json::to_writer_pretty(&mut file, &self.manifest)?;
            file.write_all(b"\n")?;
            place(file, &self.manifest_path, Failpoint::Manifest)
        });
        manifest.map_err(|source| failed(&self.manifest_path, source))?;
        Ok(self.manifest)
    }
}

/// Renames a whole file, so that a reader sees the old or the new one.
pub(crate) fn place(file: NamedTempFile, path: &Path, point: Failpoint) -> io::Result<()> {
    file.as_file().sync_all()?;
    failpoint::commit(point, || file.persist(path)).map(drop).map_err(|error| error.error)
}

/// Why a row must not leave, where something in it should have been redacted.
pub(super) fn leftover(row: &Value) -> Option<String> {
    match row {
        Value::String(text) => leftovers(text)
            .first()
            .map(|found| format!("leftover-{}", found.kind.word().to_lowercase().replace('_', "-"))),
        Value::Array(items) => items.iter().find_map(leftover),
        Value::Object(members) => members
            .iter()
            .find_map(|(key, value)| leftover(value).or_else(|| leftover(&Value::String(key.clone())))),
        Value::Number(number) => leftover(&Value::String(number.to_string())),
        Value::Null | Value::Bool(_) => None,
    }
}
