//! A file that is hashed while it is written, beside the place that it will be renamed to.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::writer::partial;
use crate::id::hexadecimal;

/// See the module.
pub(super) struct Hashed {
    file: BufWriter<NamedTempFile>,
    hasher: Sha256,
}

impl Hashed {
    /// Begins a file in a folder.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        Ok(Self { file: BufWriter::new(partial(folder)?), hasher: Sha256::new() })
    }

    /// The whole file, and its SHA-256.
    pub(super) fn finish(self) -> io::Result<(NamedTempFile, String)> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok((file, hexadecimal(&self.hasher.finalize())))
    }
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
