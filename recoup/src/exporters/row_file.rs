//! The file of rows while it is written: lines of JSON or columns, hashed on the way.

use std::io::{self, Write as _};
use std::path::Path;

use serde_json::Value;
use tempfile::NamedTempFile;

use super::Exporter;
#[cfg(feature = "parquet")]
use super::columns::ColumnFile;
use super::hashed::Hashed;

/// See the module.
pub(super) enum RowFile {
    Lines(Hashed),
    #[cfg(feature = "parquet")]
    Columns(Box<ColumnFile<Hashed>>),
}

impl RowFile {
    /// Begins a file beside the place that it will be renamed to.
    pub(super) fn create(folder: &Path, exporter: &dyn Exporter) -> io::Result<Self> {
        let file = Hashed::create(folder)?;
        #[cfg(feature = "parquet")]
        if exporter.is_columnar() {
            let columns = ColumnFile::new(file, exporter.shape()).map_err(io::Error::other)?;
            return Ok(Self::Columns(Box::new(columns)));
        }
        _ = exporter;
        Ok(Self::Lines(file))
    }

    /// Adds a row.
    pub(super) fn push(&mut self, row: &Value) -> io::Result<()> {
        match self {
            Self::Lines(file) => {
                let mut line = row.to_string();
                line.push('\n');
                file.write_all(line.as_bytes())
            }
            #[cfg(feature = "parquet")]
            Self::Columns(file) => file.push(row).map_err(io::Error::other),
        }
    }

    /// The whole file, and its SHA-256.
    pub(super) fn finish(self) -> io::Result<(NamedTempFile, String)> {
        let file = match self {
            Self::Lines(file) => file,
            #[cfg(feature = "parquet")]
            Self::Columns(file) => file.finish().map_err(io::Error::other)?,
        };
        file.finish()
    }
}
