//! Rows of a Parquet file, put together from its columns row group by row group.
//!
//! A row group, once damaged, gives no more rows, since its columns no longer run side by side; the next
//! ones are read. Of each column no more is held than a page and a few rows.

mod field;
mod footer;
mod schema;

use std::cell::Cell;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

use parquet::basic::Type as PhysicalType;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Row;
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::TypePtr;

use super::Item;
use crate::canonical::write_string;
use crate::importers::{ImportError, RawRecord, Source};
use crate::warning::{ByteSpan, Quarantine};

/// Bytes of a column's rows that are read at once, more or less.
const BATCH_BYTES: i64 = 1 << 20;
/// Rows that are read at once at the most.
const BATCH_ROWS: i64 = 256;
/// Characters kept of what the decoder says: it repeats the bytes that it could not read.
const REASON_CHARACTERS_MAX: usize = 160;

/// The rows of a file.
pub(in crate::importers) struct Rows {
    source: Source,
    file: SerializedFileReader<File>,
    columns: Vec<TypePtr>,
    /// The next row group, and the rows of the one at hand.
    group: usize,
    at_hand: Option<ReaderIter>,
    /// Rows before the one at hand, in the file and in all row groups so far.
    row: u64,
    group_end: u64,
}

impl Rows {
    /// Reads the footer.
    ///
    /// # Errors
    /// When the file cannot be read, is no Parquet file or has columns of no known shape.
    pub(super) fn open(source: &Source) -> Result<Self, ImportError> {
        let mut file = source.open_file()?;
        let unreadable = |reason: String| ImportError::Unreadable {
            uri: source.uri().to_owned(),
            code: "bad-parquet",
            reason: format!("a Parquet file that cannot be read: {reason}"),
        };
        footer::check(&mut file).map_err(|error| match error {
            footer::Problem::Io(error) => ImportError::io(source, error),
            footer::Problem::Damaged(reason) => unreadable(reason),
        })?;
        let file = guarded(|| SerializedFileReader::new(file)).map_err(unreadable)?;
        let root = file.metadata().file_metadata().schema_descr().root_schema();
        schema::check(root).map_err(unreadable)?;
        let columns = root.get_fields().to_vec();
        Ok(Self { source: source.clone(), file, columns, group: 0, at_hand: None, row: 0, group_end: 0 })
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Option<Item> {
        loop {
            if let Some(rows) = &mut self.at_hand {
                match guarded(|| rows.next().transpose()) {
                    Ok(Some(row)) => {
                        self.row += 1;
                        return Some(self.record(&row));
                    }
                    Ok(None) => self.at_hand = None,
                    Err(reason) => return Some(Err(self.skip_group(&reason))),
                }
            }
            self.row = self.group_end;
            if self.group >= self.file.num_row_groups() {
                return None;
            }
            if let Err(reason) = self.open_group() {
                return Some(Err(self.skip_group(&reason)));
            }
        }
    }

    fn open_group(&mut self) -> Result<(), String> {
        let file = &self.file;
        let index = self.group;
        self.group += 1;
        let metadata = file.metadata().row_group(index);
        let count = u64::try_from(metadata.num_rows()).map_err(|_| "fewer rows than none".to_owned())?;
        self.group_end += count;
        check_sizes(metadata, &self.source)?;
        let size = metadata.total_byte_size().max(metadata.compressed_size()).max(0);
        let batch = (BATCH_BYTES / (size / metadata.num_rows().max(1)).max(1)).clamp(1, BATCH_ROWS);
        let schema = metadata.schema_descr_ptr();
        let rows = guarded(|| {
            let group = file.get_row_group(index)?;
            TreeBuilder::new().with_batch_size(batch as usize).as_iter(schema, &*group)
        })?;
        self.at_hand = Some(rows);
        Ok(())
    }

    /// What stands for the rows of the group that cannot be read.
    fn skip_group(&mut self, reason: &str) -> Quarantine {
        let (first, last) = (self.row + 1, self.group_end);
        self.at_hand = None;
        self.row = self.group_end;
        let rows = if first < last { format!("rows {first} to {last}") } else { format!("row {first}") };
        self.problem("unreadable", format!("{rows}: the columns cannot be read: {reason}"))
    }

    fn record(&self, row: &Row) -> Item {
        let mut text = field::Text::new(self.source.options().record_bytes_max);
        text.out.push('{');
        for ((name, value), column) in row.get_column_iter().zip(&self.columns) {
            if text.out.len() > 1 {
                text.out.push(',');
            }
            write_string(&mut text.out, name);
            text.out.push(':');
            text.column(value, column);
        }
        text.out.push('}');
        if text.is_full() {
            let limit = self.source.options().record_bytes_max;
            let reason =
                format!("row {}: larger than {limit} bytes; raise `--max-record` to read it", self.row);
            return Err(self.problem("too-large", reason));
        }
        let mut record = RawRecord::at(&self.source, text.out.into_bytes(), 0, 1);
        record.span = ByteSpan { start: 0, end: 0 };
        record.row = Some(self.row);
        record.losses = text.losses;
        Ok(record)
    }

    fn problem(&self, code: &str, reason: String) -> Quarantine {
        Quarantine {
            uri: self.source.uri().to_owned(),
            line: None,
            span: None,
            code: code.to_owned(),
            reason,
        }
    }
}

/// Refuses columns that would unpack to more than the user allows.
fn check_sizes(group: &RowGroupMetaData, source: &Source) -> Result<(), String> {
    let options = source.options();
    for column in group.columns() {
        let packed = u64::try_from(column.compressed_size()).map_err(|_| "a column of negative size")?;
        let unpacked = u64::try_from(column.uncompressed_size()).map_err(|_| "a column of negative size")?;
        // A dictionary makes a column of equal texts small without any packing; its texts count once.
        let is_bomb = unpacked > options.decompressed_bytes_max
            || unpacked > BATCH_BYTES.unsigned_abs() && unpacked / packed.max(1) > options.ratio_max;
        if is_bomb {
            return Err(format!("`{}` unpacks to {unpacked} bytes from {packed}", column.column_path()));
        }
        if column.column_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY
            && column.column_descr().type_length() <= 0
        {
            return Err(format!("`{}` has values of no length", column.column_path()));
        }
    }
    Ok(())
}

/// Puts the hook in place that says nothing of what is caught.
static QUIET: Once = Once::new();

thread_local! {
    /// Whether this thread runs the decoder.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Runs the decoder, which gives up on some damage in a way that only this catches, without a word of it
/// on the program's standard error.
fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, String> {
    QUIET.call_once(|| {
        let said = take_hook();
        set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                said(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(outer);
    let reason = match decoded {
        Ok(Ok(read)) => return Ok(read),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "damaged beyond what the decoder can tell".to_owned(),
    };
    Err(reason.chars().take(REASON_CHARACTERS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::{GUARDED, guarded};

    #[test]
    fn a_panic_of_the_decoder_is_an_error() {
        let caught = guarded::<()>(|| {
            assert!(!GUARDED.get(), "said to nobody");
            Ok(())
        });
        assert!(caught.unwrap_err().starts_with("damaged"));
        assert!(!GUARDED.get());
        assert_eq!(guarded(|| Ok(1)), Ok(1));
    }
}
