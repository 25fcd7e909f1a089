//! CSV files of pieces, translated to JSON lines: a row is an object of strings, without the empty ones.

use std::io::{self, Seek as _, Write as _};

use crate::importers::value::write_object;
use crate::importers::{ImportError, Source};
use crate::json::Json;

/// Names of the columns of a CSV file, seen from its first bytes; none for another file.
pub(super) fn columns(head: &[u8]) -> Vec<String> {
    if head.trim_ascii_start().first().is_none_or(|first| b"{[".contains(first)) {
        return Vec::new();
    }
    let line = head.get(..memchr::memchr(b'\n', head).unwrap_or(head.len())).unwrap_or_default();
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => record.iter().map(str::to_owned).collect(),
        _ => Vec::new(),
    }
}

/// The file as JSON lines, in a temporary file; and the file's size.
///
/// # Errors
/// When it cannot be read.
pub(super) fn translate(source: &Source) -> Result<(Source, u64), ImportError> {
    let failed = |error: io::Error| ImportError::io(source, error);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(source.open()?);
    let names = reader.byte_headers().map_err(io::Error::from).map_err(failed)?.clone();
    let names: Vec<String> = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let mut spool = tempfile::tempfile().map_err(failed)?;
    let mut writer = io::BufWriter::new(&mut spool);
    let mut record = csv::ByteRecord::new();
    while reader.read_byte_record(&mut record).map_err(io::Error::from).map_err(failed)? {
        let cells = names.iter().zip(record.iter()).filter(|(_, cell)| !cell.is_empty());
        let members = cells.map(|(name, cell)| (name, Json::string(&String::from_utf8_lossy(cell))));
        writeln!(writer, "{}", write_object(members)).map_err(failed)?;
    }
    let size = reader.position().byte();
    writer.flush().map_err(failed)?;
    drop(writer);
    spool.rewind().map_err(failed)?;
    let translated = Source::from_reader(source.uri(), spool, source.options().clone()).map_err(failed)?;
    Ok((translated, size))
}
