//! The export writer: streams rows into place, counts everything that does not become one.
//!
//! Rows go to a temporary file in the same folder that is renamed at the end, so a reader never sees
//! half an export and an interrupted one leaves the last whole one standing.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::NamedTempFile;

use super::row_file::RowFile;
use super::{Built, Exporter, Manifest, Training};
use crate::artifact::{Provenance, pretty};
use crate::failpoint::{self, Failpoint};
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

/// Writes the rows of a view, what a reader needs beside them, and `<view>.manifest.json`.
pub struct ExportWriter<'a> {
    exporter: &'a dyn Exporter,
    folder: PathBuf,
    rows_path: PathBuf,
    rows: RowFile,
    deduplicator: Deduplicator,
    manifest: Manifest,
}

impl<'a> ExportWriter<'a> {
    /// Begins an export into an existing folder. `config` is what decides content, for the manifest.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn create(
        folder: &Path,
        training: Training<'a>,
        provenance: Provenance,
        config: Value,
    ) -> Result<Self, ExportError> {
        let exporter = training.exporter;
        let manifest = Manifest::new(&training, provenance, config);
        // Where something stands in the way of what comes last, nothing is begun.
        let free = exporter.companions(folder, &manifest);
        free.map_err(|source| ExportError::Io { path: folder.to_owned(), source })?;
        let rows_path = folder.join(exporter.file(training.view.name()));
        let rows = RowFile::create(folder, exporter);
        Ok(Self {
            exporter,
            folder: folder.to_owned(),
            rows: rows.map_err(|source| ExportError::Io { path: rows_path.clone(), source })?,
            rows_path,
            deduplicator: Deduplicator::default(),
            manifest,
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

    fn write(&mut self, Built { example, copies, row, tokens }: Built) -> Result<(), ExportError> {
        if !self.deduplicator.is_new(&example) {
            self.manifest.duplicates += 1;
            return Ok(());
        }
        let row = match row {
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
        for _ in 0..copies {
            self.push(&row)?;
            if let Some(tokens) = tokens {
                *self.manifest.tokens.get_or_insert_default() += tokens;
            }
            let Manifest { licences, split, gates, .. } = &mut self.manifest;
            *licences.entry(example.lineage.licence.clone()).or_default() += 1;
            *split.entry(example.lineage.side).or_default() += 1;
            for gate in &example.lineage.gates {
                *gates.entry(gate.clone()).or_default() += 1;
            }
        }
        Ok(())
    }

    fn push(&mut self, row: &Value) -> Result<(), ExportError> {
        let mut first = None;
        if self.manifest.rows == 0 {
            self.exporter.open(first.insert(row.clone()));
        }
        let row = first.as_ref().unwrap_or(row);
        let pushed = self.rows.push(row);
        pushed.map_err(|source| ExportError::Io { path: self.rows_path.clone(), source })?;
        self.manifest.rows += 1;
        Ok(())
    }

    fn refuse(&mut self, reason: &str) {
        *self.manifest.refused.entry(reason.to_owned()).or_default() += 1;
    }

    /// Puts all files in place, the rows first and the manifest last.
    ///
    /// # Errors
    /// When they cannot be written; what stood there before then still does.
    pub fn finish(mut self) -> Result<Manifest, ExportError> {
        let failed = |path: &Path, source| ExportError::Io { path: path.to_owned(), source };
        let (rows, sha256) = self.rows.finish().map_err(|source| failed(&self.rows_path, source))?;
        self.manifest.sha256 = sha256;
        let companions = self.exporter.companions(&self.folder, &self.manifest);
        let companions = companions.map_err(|source| failed(&self.folder, source))?;
        let placed = self.rows_path.parent().map_or(Ok(()), std::fs::create_dir_all);
        placed
            .and_then(|()| place(rows, &self.rows_path, Failpoint::Rows))
            .map_err(|source| failed(&self.rows_path, source))?;
        for (name, text) in companions {
            let path = self.folder.join(name);
            replace(&path, &text, Failpoint::Rows).map_err(|source| failed(&path, source))?;
            self.manifest.files.push(name.to_owned());
        }
        let path = self.folder.join(format!("{}.manifest.json", self.manifest.view));
        replace(&path, &pretty(&self.manifest), Failpoint::Manifest)
            .map_err(|source| failed(&path, source))?;
        Ok(self.manifest)
    }
}

/// Writes beside the file and renames, so that a reader sees the old or the new one.
pub(crate) fn replace(path: &Path, text: &str, point: Failpoint) -> io::Result<()> {
    let mut file = partial(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    place(file, path, point)
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
