//! A table: the rows of a Parquet or CSV file, each delivered as a record whose members are the columns.
//!
//! An importer that reads rows of JSON reads tables too ([`crate::importers::Layout::Table`]). What a
//! column's type does not say, its text does: a cell of text that is a JSON object or array stands in the
//! row as that value, for tables have no other way to nest. CSV has no types at all, so there a cell
//! that is a number or a truth value is one, a list or dictionary as Python prints it is one, and an empty
//! cell is absent.
//!
//! A row has no bytes of its own in a Parquet file, so its number stands where others have a range, and
//! its hash is that of the row as JSON; CSV rows have their range and that hash.

mod cell;
mod csv;
mod literal;
#[cfg(feature = "parquet")]
mod parquet;

pub(super) use self::csv::is_csv;
use super::{ImportError, RawRecord, Source};
use crate::warning::Quarantine;

/// What a Parquet file begins with.
const PARQUET: &[u8] = b"PAR1";

/// True for the first bytes of a Parquet file.
pub(super) fn is_parquet(head: &[u8]) -> bool {
    head.starts_with(PARQUET)
}

/// A row, or why there is none.
type Item = Result<RawRecord, Quarantine>;

/// The rows of a table, in order.
pub(super) enum Rows {
    Csv(Box<csv::Rows>),
    #[cfg(feature = "parquet")]
    Parquet(Box<parquet::Rows>),
}

impl Rows {
    /// Opens a table.
    ///
    /// # Errors
    /// When it cannot be read, is a damaged Parquet file, or one in a program that reads none.
    pub(super) fn open(source: &Source) -> Result<Self, ImportError> {
        let mut head = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(source.open()?, 4), &mut head)
            .map_err(|error| ImportError::io(source, error))?;
        if is_parquet(&head) {
            Self::columns(source)
        } else {
            Ok(Self::Csv(Box::new(csv::Rows::open(source)?)))
        }
    }

    #[cfg(feature = "parquet")]
    fn columns(source: &Source) -> Result<Self, ImportError> {
        Ok(Self::Parquet(Box::new(parquet::Rows::open(source)?)))
    }

    #[cfg(not(feature = "parquet"))]
    fn columns(source: &Source) -> Result<Self, ImportError> {
        Err(ImportError::Unreadable {
            uri: source.uri().to_owned(),
            code: "unsupported",
            reason:
                "a Parquet file, and this build reads none; hint: build recoup with the feature `parquet`, \
                     or write the table as JSONL"
                    .to_owned(),
        })
    }

    /// The next row; an error of the file ends it.
    pub(super) fn next(&mut self) -> Option<std::io::Result<Item>> {
        match self {
            Self::Csv(rows) => rows.next(),
            #[cfg(feature = "parquet")]
            Self::Parquet(rows) => rows.next().map(Ok),
        }
    }
}

/// The first rows of a table as lines of JSON, for a probe to look at.
///
/// # Errors
/// As [`Rows::open`].
pub(super) fn first_rows(source: &Source, count: usize) -> Result<Vec<u8>, ImportError> {
    let mut rows = Rows::open(source)?;
    let mut lines = Vec::new();
    for _ in 0..count {
        match rows.next() {
            Some(Ok(Ok(row))) => {
                lines.extend_from_slice(&row.bytes);
                lines.push(b'\n');
            }
            Some(Ok(Err(_))) => {}
            Some(Err(_)) | None => break,
        }
    }
    Ok(lines)
}
