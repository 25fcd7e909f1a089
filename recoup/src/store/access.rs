//! Access: how the database's file is opened, from writing down to a file that nobody changes.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{StoreError, schema};

/// How long to wait for another process's commit.
const BUSY: Duration = Duration::from_secs(30);

/// What may be done with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Everything.
    Write,
    /// Reading; the folder takes the files that write-ahead mode needs beside the database.
    Read,
    /// Reading where nothing can be written beside the database: nobody changes it meanwhile.
    Frozen,
    /// Reading, for the file has this format, which is newer than the program.
    Newer(i64),
}

impl Access {
    /// A connection to the file.
    pub(super) fn open(self, file: &Path) -> Result<Connection, StoreError> {
        let connection = match self {
            Self::Write => {
                let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                let connection = Connection::open_with_flags(file, flags)?;
                if connection.is_readonly("main")? {
                    return Err(StoreError::ReadOnly);
                }
                connection
            }
            Self::Read | Self::Newer(_) => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
                Connection::open_with_flags(file, flags)?
            }
            Self::Frozen => {
                let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
                    | OpenFlags::SQLITE_OPEN_NO_MUTEX
                    | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(frozen_uri(file), flags)?
            }
        };
        connection.busy_timeout(BUSY)?;
        Ok(connection)
    }
}

/// A connection to a file that cannot be written, and how it was got.
///
/// # Errors
/// [`StoreError::ReadOnly`] where commits stand in a log beside the file that cannot be merged.
pub(super) fn for_reading(file: &Path) -> Result<(Connection, Access), StoreError> {
    let opened = Access::Read.open(file).and_then(|connection| {
        schema::version(&connection)?;
        Ok(connection)
    });
    match opened {
        Ok(connection) => return Ok((connection, Access::Read)),
        Err(StoreError::ReadOnly) => {}
        Err(error) => return Err(error),
    }
    // SQLite says of a file that may not be read what it says of a folder that takes no log.
    fs::File::open(file).map_err(|error| StoreError::io(file, error))?;
    let log = PathBuf::from(format!("{}-wal", file.display()));
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Err(StoreError::ReadOnly);
    }
    Ok((Access::Frozen.open(file)?, Access::Frozen))
}

/// The file as the URI that promises that nobody changes it.
fn frozen_uri(file: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in file.as_os_str().as_encoded_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(byte) {
            uri.push(char::from(*byte));
        } else {
            let _ = write!(uri, "%{byte:02x}");
        }
    }
    uri.push_str("?immutable=1");
    uri
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Access, for_reading, frozen_uri};
    use crate::store::{Filter, Import, Page, Store, StoreError};

    #[test]
    fn a_frozen_file_is_read_under_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("a b?c#d%e");
        drop(Store::create_or_open(&odd).unwrap());
        let connection = Access::Frozen.open(&odd.join("store.sqlite")).unwrap();
        let runs: i64 =
            connection.query_row("SELECT count(*) FROM trajectory", [], |row| row.get(0)).unwrap();
        assert_eq!(runs, 0);
        assert_eq!(fs::read_dir(&odd).unwrap().count(), 2, "nothing was written beside the database");
        assert!(frozen_uri(&odd).ends_with("a%20b%3fc%23d%25e?immutable=1"));
        assert!(matches!(for_reading(&odd.join("none")), Err(StoreError::ReadOnly | StoreError::Io { .. })));
    }

    #[test]
    fn a_project_that_cannot_be_written_reads_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        drop(Store::create_or_open(dir.path()).unwrap());
        let mut store = Store::open_for_reading(dir.path(), &dir.path().join("store.sqlite")).unwrap();
        assert!(store.list(&Filter::default(), Page::ALL).unwrap().is_empty());
        assert!(store.verify(&mut |_, _| {}).unwrap().is_clean());
        let refused: Result<Import<'_>, _> = store.import("");
        assert!(matches!(refused.err(), Some(StoreError::ReadOnly)));
        assert!(matches!(store.gc().err(), Some(StoreError::ReadOnly)));
    }
}
