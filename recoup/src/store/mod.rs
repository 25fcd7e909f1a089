//! A project: one folder that keeps every run once, and what was decided about it.
//!
//! `<folder>/store.sqlite` is the truth: an SQLite database in write-ahead mode that several
//! processes may open. The folder is readable by its owner only and ignored by git, for traces hold
//! what people typed.
//!
//! * A run is stored as a record (everything but its messages) and a list of nodes. A node is a
//!   message in its context and is stored once: a prompt that is sent again at every step costs
//!   nothing. Bodies lie compressed in packs.
//! * Runs are immutable. Verdicts stand beside them; listing reads copies of the current ones.
//! * Ids in this API are content hashes. Integer ids stay inside.
//!
//! `import` writes, `query` lists, `load` reads, `verdicts` decides, `split` keeps training and test
//! apart, `pending` remembers what is done, `replies` keeps what models answered; `verify`, `gc` and `forget` look after the bytes.

mod access;
mod apply;
mod batches;
mod components;
mod compressor;
mod error;
mod facets;
mod fingerprint;
mod forget;
mod gc;
mod growth;
mod import;
mod join;
mod lineage;
mod load;
mod pack;
mod pending;
mod plan;
mod query;
mod replies;
mod revisions;
mod schema;
mod search;
mod sketches;
mod split;
mod stats;
mod summary;
mod varint;
mod verdicts;
mod verify;

use std::cell::RefCell;
use std::fs;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::access::Access;
pub use self::batches::BatchQuestion;
pub use self::error::StoreError;
pub use self::fingerprint::Failures;
pub use self::forget::ForgetReport;
pub use self::gc::GcReport;
pub use self::import::Import;
pub use self::pending::Group;
pub use self::query::{Filter, Page, Row};
pub use self::replies::{Replies, Reply, StageCost};
pub use self::split::LargestComponent;
pub use self::stats::{FormatStats, Stats};
pub use self::summary::{FormatCounts, ImportSummary, OutcomeCounts};
pub use self::verify::VerifyReport;
use crate::failpoint::{self, Failpoint};

/// The database's file name in a project folder.
const FILE: &str = "store.sqlite";
/// Page size of a new file. Most pages hold compressed packs, which large pages write with fewer calls.
const PAGE_BYTES: i64 = 16 << 10;
/// Bytes in the write-ahead log after which it is copied into the file: rarely, so that a page that
/// several commits touch is copied once.
const LOG_BYTES: i64 = 32 << 20;
/// Pause and attempts while another process switches a new file to write-ahead mode: SQLite does not
/// wait for that by itself.
const OPEN_PAUSE: Duration = Duration::from_millis(20);
const OPEN_ATTEMPTS: u32 = 500;

/// A project folder.
pub struct Store {
    connection: Connection,
    dir: PathBuf,
    packs: RefCell<pack::PackCache>,
    access: Access,
}

impl Store {
    /// Opens a project, making folder and file where there is none and bringing an older file to this
    /// version's format after a copy (`store.sqlite.v<format>.backup`). A file of a newer format
    /// opens for reading.
    pub fn create_or_open(dir: &Path) -> Result<Self, StoreError> {
        create_folder(dir)?;
        let file = dir.join(FILE);
        create_private(&file)?;
        Self::open_file(dir, &file)
    }

    /// Opens a project that exists; for reading, where its folder or file cannot be written.
    ///
    /// # Errors
    /// [`StoreError::NoProject`] where the folder holds none.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        let file = dir.join(FILE);
        match fs::metadata(&file) {
            Ok(metadata) if metadata.is_file() => match Self::open_file(dir, &file) {
                Err(StoreError::ReadOnly) => Self::open_for_reading(dir, &file),
                opened => opened,
            },
            Ok(_) => Err(StoreError::NoProject { dir: dir.to_owned() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(StoreError::NoProject { dir: dir.to_owned() })
            }
            Err(error) => Err(StoreError::io(&file, error)),
        }
    }

    /// The project's folder.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn open_file(dir: &Path, file: &Path) -> Result<Self, StoreError> {
        let mut connection = Access::Write.open(file)?;
        let known = schema::MIGRATIONS.len() as i64;
        let found = schema::version(&connection)?;
        let mut access = Access::Write;
        if found > known {
            access = Access::Newer(found);
            connection = access.open(file)?;
        } else {
            // Holds where nothing was written yet.
            connection.pragma_update(None, "page_size", PAGE_BYTES)?;
            write_ahead(&connection)?;
            let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
            connection.execute_batch(&format!(
                "PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = {}; PRAGMA cache_size = -32768;",
                LOG_BYTES / page.max(1)
            ))?;
            schema::migrate(&mut connection, schema::MIGRATIONS, &|found| backup_path(dir, found))?;
        }
        prepare(&connection)?;
        Ok(Self { connection, dir: dir.to_owned(), packs: RefCell::default(), access })
    }

    /// Opens a project that cannot be written; one of an older format cannot be read either.
    fn open_for_reading(dir: &Path, file: &Path) -> Result<Self, StoreError> {
        let (connection, access) = access::for_reading(file)?;
        let known = schema::MIGRATIONS.len() as i64;
        let access = match schema::version(&connection)? {
            found if found > known => Access::Newer(found),
            found if found < known => return Err(StoreError::ReadOnly),
            _ => access,
        };
        prepare(&connection)?;
        Ok(Self { connection, dir: dir.to_owned(), packs: RefCell::default(), access })
    }

    /// # Errors
    /// [`StoreError::Newer`] or [`StoreError::ReadOnly`] where the file must not or cannot be written.
    fn check_writable(&self) -> Result<(), StoreError> {
        match self.access {
            Access::Newer(found) => Err(StoreError::Newer { found, known: schema::MIGRATIONS.len() as i64 }),
            Access::Read | Access::Frozen => Err(StoreError::ReadOnly),
            Access::Write => Ok(()),
        }
    }

    /// A transaction that holds the write lock; one whoever holds it keeps short.
    fn write(&self) -> Result<Writing<'_>, StoreError> {
        self.check_writable()?;
        Ok(Writing(Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?))
    }

    /// A transaction that only reads: many small queries then take the file's locks once.
    fn read(&self) -> Result<Transaction<'_>, StoreError> {
        Ok(Transaction::new_unchecked(&self.connection, TransactionBehavior::Deferred)?)
    }

    /// Brings everything committed to the disk.
    fn sync(&self) -> Result<(), StoreError> {
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(())
    }

    /// A second connection to the same file, for a reading thread.
    fn reader(&self) -> Result<Connection, StoreError> {
        let access = if self.access == Access::Write { Access::Read } else { self.access };
        let connection = access.open(&self.dir.join(FILE))?;
        prepare(&connection)?;
        Ok(connection)
    }
}

/// A transaction that writes; dropped, it changes nothing.
struct Writing<'a>(Transaction<'a>);

impl Writing<'_> {
    fn commit(self, point: Failpoint) -> rusqlite::Result<()> {
        failpoint::commit(point, || self.0.commit())
    }
}

impl Deref for Writing<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.0
    }
}

/// Makes prepared statements worth keeping: without the stability guarantee SQLite plans many of them
/// anew whenever a parameter changes, which takes longer than running them.
fn prepare(connection: &Connection) -> Result<(), StoreError> {
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(())
}

fn backup_path(dir: &Path, found: i64) -> PathBuf {
    dir.join(format!("{FILE}.v{found}.backup"))
}

fn write_ahead(connection: &Connection) -> Result<(), StoreError> {
    for _ in 1..OPEN_ATTEMPTS {
        match connection.pragma_update(None, "journal_mode", "WAL").map_err(StoreError::from) {
            Err(StoreError::Busy) => std::thread::sleep(OPEN_PAUSE),
            done => return done,
        }
    }
    Err(StoreError::Busy)
}

/// Makes a project folder, closed to others and ignored by git as a whole where it was empty.
fn create_folder(dir: &Path) -> Result<(), StoreError> {
    let fail = |error| StoreError::io(dir, error);
    fs::create_dir_all(dir).map_err(fail)?;
    if dir.join(FILE).exists() {
        return Ok(());
    }
    let ours = fs::read_dir(dir).map_err(fail)?.next().is_none();
    if ours {
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            fs::set_permissions(dir, fs::Permissions::from_mode(0o700)).map_err(fail)?;
        }
    }
    let ignore = dir.join(".gitignore");
    if !ignore.exists() {
        // In a folder that holds other things, only what is ours is kept from git.
        let pattern = if ours { "*\n".to_owned() } else { format!("{FILE}*\n") };
        fs::write(&ignore, pattern).map_err(|error| StoreError::io(&ignore, error))?;
    }
    Ok(())
}

/// Makes an empty file that only its owner can read, unless the file exists.
fn create_private(file: &Path) -> Result<(), StoreError> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    match options.open(file) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(StoreError::io(file, error)),
    }
}
