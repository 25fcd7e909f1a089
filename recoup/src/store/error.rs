//! Why the store could not do something.

use std::io;
use std::path::{Path, PathBuf};

use crate::id::TrajectoryId;

/// Why the store could not do something. Whatever was committed before it stays.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder holds no project.
    #[error("no project in {}", dir.display())]
    NoProject {
        /// The folder looked in.
        dir: PathBuf,
    },
    /// No run has that id or prefix.
    #[error("no run has an id that starts with `{prefix}`")]
    NotFound {
        /// What was looked for.
        prefix: String,
    },
    /// A prefix names several runs.
    #[error("`{prefix}` is the start of {} ids or more: type more digits", matches.len())]
    Ambiguous {
        /// What was looked for.
        prefix: String,
        /// The first runs it names, in import order.
        matches: Vec<TrajectoryId>,
    },
    /// The project was written by a newer version of this program; it can be read only.
    #[error(
        "the project has format {found} and this program writes format {known}: it opens for reading only; \
         update the program to change it"
    )]
    Newer {
        /// Format of the file.
        found: i64,
        /// Newest format this program knows.
        known: i64,
    },
    /// The file or its folder cannot be written.
    #[error("the project is read-only")]
    ReadOnly,
    /// The disk is full.
    #[error("the disk is full: what was committed is kept; make room and run the command again")]
    DiskFull,
    /// Another process held the project for longer than the busy timeout.
    #[error("another process is writing to the project and did not let go in time: try again")]
    Busy,
    /// The file is damaged.
    #[error("the project is damaged: {0}")]
    Corrupt(String),
    /// A file of the project cannot be read or written.
    #[error("cannot read or write {}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// Any other answer of the database.
    #[error("the project's database failed")]
    Database(#[source] rusqlite::Error),
}

impl StoreError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::StorageFull {
            return Self::DiskFull;
        }
        Self::Io { path: path.to_owned(), source }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::DiskFull,
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => Self::Busy,
            // A folder that takes no write-ahead log cannot be opened for writing either.
            Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::CannotOpen) => Self::ReadOnly,
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                Self::Corrupt(error.to_string())
            }
            _ => Self::Database(error),
        }
    }
}
