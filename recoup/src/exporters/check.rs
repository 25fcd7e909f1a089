//! The check: an export read again, held against its manifest and the shape of its format.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Exporter, Manifest, Misfit};
use crate::id::hexadecimal;

/// Why an export is not what its manifest says.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// A file cannot be read.
    #[error("cannot read {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The bytes are others.
    #[error("{path}: its SHA-256 is not the manifest's")]
    Digest {
        /// The file.
        path: PathBuf,
    },
    /// There are more or fewer rows.
    #[error("{path}: {found} rows where the manifest says {said}")]
    Count {
        /// The file.
        path: PathBuf,
        /// Rows in it.
        found: u64,
        /// Rows that the manifest names.
        said: u64,
    },
    /// A row does not have the shape of its format.
    #[error("{path}: row {row}: {misfit}")]
    Row {
        /// The file.
        path: PathBuf,
        /// Its number, from 1.
        row: u64,
        /// Where and why.
        misfit: Misfit,
    },
}

/// Reads an export again, row by row.
///
/// # Errors
/// The first thing that is not as it should be.
pub fn check(folder: &Path, manifest: &Manifest, exporter: &dyn Exporter) -> Result<(), CheckError> {
    let path = folder.join(exporter.file(&manifest.view));
    let failed = |source| CheckError::Io { path: path.clone(), source };
    if digest(&path).map_err(failed)? != manifest.sha256 {
        return Err(CheckError::Digest { path });
    }
    let mut rows = 0;
    let mut look = |row: Result<Value, io::Error>| {
        rows += 1;
        let row = row.map_err(failed)?;
        let misfit = exporter.shape().check(&row);
        misfit.map_err(|misfit| CheckError::Row { path: path.clone(), row: rows, misfit })
    };
    if exporter.is_columnar() {
        for_columns(&path, &mut look)?;
    } else {
        for line in BufReader::new(File::open(&path).map_err(failed)?).lines() {
            look(line.and_then(|line| Ok(serde_json::from_str(&line)?)))?;
        }
    }
    if rows == manifest.rows {
        Ok(())
    } else {
        Err(CheckError::Count { path, found: rows, said: manifest.rows })
    }
}

fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(hexadecimal(&hasher.finalize()));
        }
        hasher.update(buffer.get(..read).unwrap_or_default());
    }
}

#[cfg(feature = "parquet")]
fn for_columns(
    path: &Path,
    look: &mut impl FnMut(Result<Value, io::Error>) -> Result<(), CheckError>,
) -> Result<(), CheckError> {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    let failed = |source| CheckError::Io { path: path.to_owned(), source };
    let file = File::open(path).map_err(failed)?;
    let reader = SerializedFileReader::new(file).map_err(|error| failed(io::Error::other(error)))?;
    for row in reader.get_row_iter(None).map_err(|error| failed(io::Error::other(error)))? {
        look(row.map(|row| without_nulls(row.to_json_value())).map_err(io::Error::other))?;
    }
    Ok(())
}

#[cfg(not(feature = "parquet"))]
fn for_columns(
    _: &Path,
    _: &mut impl FnMut(Result<Value, io::Error>) -> Result<(), CheckError>,
) -> Result<(), CheckError> {
    Ok(())
}

/// A row of columns as it was before columns that it has nothing in were filled up.
#[cfg(feature = "parquet")]
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(members) => {
            let kept = members.into_iter().filter(|(_, member)| !member.is_null());
            Value::Object(kept.map(|(name, member)| (name, without_nulls(member))).collect())
        }
        Value::Array(items) => items.into_iter().map(without_nulls).collect(),
        value => value,
    }
}
