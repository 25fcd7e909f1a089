//! The release writer: tables beside the place they will stand in, put there together at the end.

use std::io;
use std::path::{Path, PathBuf};

use super::card::card;
use super::{Case, CaseRows, Release, Table};
use crate::artifact::{Artifact, Provenance, pretty};
use crate::exporters::columns::ColumnFile;
use crate::exporters::hashed::Hashed;
use crate::exporters::{ExportError, place, replace};
use crate::failpoint::Failpoint;

/// The card's file.
pub(crate) const CARD: &str = "README.md";
/// The summary's file.
const SUMMARY: &str = "release.json";

/// Writes a release into a folder.
pub struct ReleaseWriter {
    folder: PathBuf,
    tables: Vec<(Table, ColumnFile<Hashed>)>,
    release: Release,
}

impl ReleaseWriter {
    /// Begins a release in an existing folder.
    ///
    /// # Errors
    /// When no file can be made there.
    pub fn create(folder: &Path) -> Result<Self, ExportError> {
        let mut tables = Vec::new();
        for table in Table::ALL {
            let path = folder.join(file_name(table));
            let failed = |source| ExportError::Io { path: path.clone(), source };
            let file = Hashed::create(folder).map_err(failed)?;
            let columns = ColumnFile::new(file, &table.shape());
            tables.push((table, columns.map_err(|error| failed(io::Error::other(error)))?));
        }
        Ok(Self { folder: folder.to_owned(), tables, release: Release::default() })
    }

    /// Takes the rows of a run.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn offer(&mut self, case: &Case, given: &CaseRows) -> Result<(), ExportError> {
        if let Some(reason) = &given.refused {
            self.release.refuse(reason);
            return Ok(());
        }
        for (table, file) in &mut self.tables {
            for row in given.rows.get(table).into_iter().flatten() {
                let failed = |error| ExportError::Io {
                    path: self.folder.join(file_name(*table)),
                    source: io::Error::other(error),
                };
                file.push(row).map_err(failed)?;
            }
        }
        self.release.add(case, given);
        Ok(())
    }

    /// Counts a run that stays out for its licence.
    pub fn pass_over_unknown_licence(&mut self) {
        self.release.refuse(Release::UNKNOWN_LICENCE);
    }

    /// Puts the tables in place, then the card, then the summary.
    ///
    /// # Errors
    /// When a file cannot be written; what is not in place yet stays as it was.
    pub fn finish(mut self, provenance: Provenance) -> Result<Artifact<Release>, ExportError> {
        let mut files = Vec::new();
        for (table, file) in self.tables {
            let path = self.folder.join(file_name(table));
            let written = file.finish().map_err(io::Error::other).and_then(Hashed::finish);
            let (file, sha256) = written.map_err(|source| ExportError::Io { path: path.clone(), source })?;
            self.release.files.insert(file_name(table), sha256);
            files.push((file, path));
        }
        for (file, path) in files {
            place(file, &path, Failpoint::Rows).map_err(|source| ExportError::Io { path, source })?;
        }
        let card = card(&self.release);
        let artifact = Artifact::new(provenance, self.release);
        for (name, text) in [(CARD, card), (SUMMARY, pretty(&artifact))] {
            let path = self.folder.join(name);
            replace(&path, &text, Failpoint::Manifest).map_err(|source| ExportError::Io { path, source })?;
        }
        Ok(artifact)
    }
}

fn file_name(table: Table) -> String {
    format!("{}.parquet", table.name())
}
