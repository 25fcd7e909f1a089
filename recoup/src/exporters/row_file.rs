//! The file of rows while it is written: lines of JSON or columns, hashed on the way.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::Exporter;
#[cfg(feature = "parquet")]
use super::columns::ColumnFile;
use super::writer::partial;
use crate::id::hexadecimal;

/// See the module.
pub(super) enum RowFile {
    Lines(Hashed),
    #[cfg(feature = "parquet")]
    Columns(Box<ColumnFile<Hashed>>),
}

impl RowFile {
    /// Begins a file beside the place that it will be renamed to.
    pub(super) fn create(folder: &Path, exporter: &dyn Exporter) -> io::Result<Self> {
        let file = Hashed { file: BufWriter::new(partial(folder)?), hasher: Sha256::new() };
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
        let Hashed { file, hasher } = match self {
            Self::Lines(file) => file,
            #[cfg(feature = "parquet")]
            Self::Columns(file) => file.finish().map_err(io::Error::other)?,
        };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((file, hexadecimal(&hasher.finalize())))
    }
}

/// A file that knows the hash of what was written.
pub(super) struct Hashed {
    file: BufWriter<NamedTempFile>,
    hasher: Sha256,
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.hasher.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
