//! Rows of CSV: a header of names, then cells, which may hold line breaks and be as long as a record.

use std::io::{self, BufRead as _, BufReader, Read};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::Item;
use super::cell::write_untyped;
use crate::canonical::write_string;
use crate::importers::{ImportError, RawRecord, Source};
use crate::warning::{ByteSpan, Quarantine};

/// Columns above which a file is no table.
const COLUMNS_MAX: usize = 4096;
/// Bytes of a column's name.
const NAME_BYTES_MAX: usize = 128;
/// What may stand between two cells.
const DELIMITERS: [u8; 3] = *b",\t;";

/// True for text that begins like CSV: names of at least two columns, and a row of as many cells.
pub(in crate::importers) fn is_csv(head: &[u8], complete: bool) -> bool {
    delimiter(head, complete).is_some()
}

fn delimiter(head: &[u8], complete: bool) -> Option<u8> {
    DELIMITERS.into_iter().find(|delimiter| {
        let mut cells = Cells::new(head, *delimiter, head.len());
        let Ok(Some(Line::Whole)) = cells.advance() else { return false };
        let header = cells.names().unwrap_or_default();
        let mut names = header.clone();
        names.sort_unstable();
        names.dedup();
        if header.len() < 2 || names.len() < header.len() || !header.iter().all(|name| is_name(name)) {
            return false;
        }
        match cells.advance() {
            Ok(Some(Line::Whole)) => {
                let cut = !complete && cells.offset == head.len() as u64;
                cells.count == header.len() || cut && cells.count < header.len()
            }
            _ => true,
        }
    })
}

/// True for what people name columns: words, perhaps joined by dots, slashes, brackets or single spaces.
fn is_name(name: &str) -> bool {
    let starts = name.starts_with(|first: char| first.is_alphabetic() || first == '_');
    let plain = |letter: char| letter.is_alphanumeric() || "_-./:[]() #".contains(letter);
    starts
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(plain)
        && name.trim() == name
        && !name.contains("  ")
}

/// What was read of a line.
enum Line {
    /// All its cells are at hand.
    Whole,
    /// It is larger than a record may be and was passed over.
    TooLarge,
}

/// Cuts lines into cells; holds one line at a time.
struct Cells<R> {
    input: BufReader<R>,
    reader: Reader,
    limit: usize,
    text: Vec<u8>,
    ends: Vec<usize>,
    /// Cells of the line at hand.
    count: usize,
    offset: u64,
    start: u64,
    line: u64,
}

impl<R: Read> Cells<R> {
    fn new(input: R, delimiter: u8, limit: usize) -> Self {
        Self {
            input: BufReader::with_capacity(64 << 10, input),
            reader: ReaderBuilder::new().delimiter(delimiter).build(),
            limit,
            text: vec![0; 4 << 10],
            ends: vec![0; 64],
            count: 0,
            offset: 0,
            start: 0,
            line: 1,
        }
    }

    /// Reads the next line of cells; `None` at the end.
    fn advance(&mut self) -> io::Result<Option<Line>> {
        (self.start, self.line, self.count) = (self.offset, self.reader.line(), 0);
        let (mut length, mut line) = (0, Line::Whole);
        loop {
            let input = self.input.fill_buf()?;
            let text = self.text.get_mut(length..).unwrap_or_default();
            let ends = self.ends.get_mut(self.count..).unwrap_or_default();
            let (result, read, written, ended) = self.reader.read_record(input, text, ends);
            self.input.consume(read);
            self.offset += read as u64;
            length += written;
            self.count += ended;
            match result {
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if self.text.len() >= self.limit.max(4 << 10) => {
                    (line, length) = (Line::TooLarge, 0);
                }
                ReadRecordResult::OutputFull => self.text.resize(self.text.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= COLUMNS_MAX => {
                    (line, self.count) = (Line::TooLarge, 0);
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record => return Ok(Some(line)),
                ReadRecordResult::End => return Ok(None),
            }
        }
    }

    /// The cells of the line at hand, or `None` where they are not UTF-8.
    fn names(&self) -> Option<Vec<String>> {
        self.texts().map(|cell| Some(cell?.to_owned())).collect()
    }

    fn texts(&self) -> impl Iterator<Item = Option<&str>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts
            .zip(&self.ends)
            .take(self.count)
            .map(|(start, end)| std::str::from_utf8(self.text.get(start..*end)?).ok())
    }
}

/// The rows behind a header.
pub(in crate::importers) struct Rows {
    source: Source,
    cells: Cells<Box<dyn Read + Send>>,
    header: Vec<String>,
}

impl Rows {
    /// Reads the header.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(super) fn open(source: &Source) -> Result<Self, ImportError> {
        let mut head = Vec::new();
        let failed = |error| ImportError::io(source, error);
        source.open()?.take(1 << 20).read_to_end(&mut head).map_err(failed)?;
        let delimiter = delimiter(&head, false).unwrap_or(b',');
        let limit = usize::try_from(source.options().record_bytes_max).unwrap_or(usize::MAX);
        let mut cells = Cells::new(source.open()?, delimiter, limit);
        cells.advance().map_err(failed)?;
        let header = cells.names().unwrap_or_default();
        Ok(Self { source: source.clone(), cells, header })
    }

    /// The next row.
    pub(super) fn next(&mut self) -> Option<io::Result<Item>> {
        Some(match self.cells.advance() {
            Err(error) => Err(error),
            Ok(None) => return None,
            Ok(Some(Line::TooLarge)) => {
                let limit = self.cells.limit;
                let reason = format!(
                    "a row larger than {limit} bytes; raise `--max-record`, or look for a quote that is not closed"
                );
                Ok(Err(self.problem("too-large", reason)))
            }
            Ok(Some(Line::Whole)) => Ok(self.row()),
        })
    }

    fn row(&self) -> Item {
        let (found, wanted) = (self.cells.count, self.header.len());
        if found != wanted {
            let reason = format!("a row of {found} cells under a header of {wanted}");
            return Err(self.problem("ragged-row", reason));
        }
        let mut text = String::from("{");
        for (name, cell) in self.header.iter().zip(self.cells.texts()) {
            let Some(cell) = cell else {
                let reason = "a cell that is not UTF-8".to_owned();
                return Err(self.problem("encoding", reason));
            };
            if text.len() > 1 {
                text.push(',');
            }
            write_string(&mut text, name);
            text.push(':');
            write_untyped(&mut text, cell);
        }
        text.push('}');
        let mut record = RawRecord::at(&self.source, text.into_bytes(), self.cells.start, self.cells.line);
        record.span = self.span();
        Ok(record)
    }

    fn span(&self) -> ByteSpan {
        ByteSpan { start: self.cells.start, end: self.cells.offset }
    }

    fn problem(&self, code: &str, reason: String) -> Quarantine {
        Quarantine {
            uri: self.source.uri().to_owned(),
            line: Some(self.cells.line),
            span: Some(self.span()),
            code: code.to_owned(),
            reason,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{Rows, is_csv};
    use crate::importers::{ImportOptions, Source};

    fn rows(text: &str, record_bytes_max: u64) -> Vec<String> {
        let options = ImportOptions { record_bytes_max, ..ImportOptions::default() };
        let source = Source::from_bytes("x.csv", text.as_bytes(), Arc::new(options));
        let mut rows = Rows::open(&source).unwrap();
        std::iter::from_fn(|| rows.next())
            .map(|item| match item.unwrap() {
                Ok(record) => String::from_utf8(record.bytes).unwrap(),
                Err(problem) => format!("!{} line {}", problem.code, problem.line.unwrap()),
            })
            .collect()
    }

    #[test]
    fn cells_hold_line_breaks_quotes_and_json() {
        let text = "\u{feff}id,input,tags\r\n1,\"a \"\"b\"\"\r\nc\",\"[\"\"x\"\"]\"\r\n,,\r\n";
        assert_eq!(
            rows(text, 1 << 20),
            [r#"{"id":1,"input":"a \"b\"\r\nc","tags":["x"]}"#, r#"{"id":null,"input":null,"tags":null}"#]
        );
    }

    #[test]
    fn a_bad_row_costs_only_itself() {
        let long = "x".repeat(10_000);
        let text = format!("a,b\n1,2\n3\n4,{long}\n5,6,7\n8,9");
        assert_eq!(
            rows(&text, 5000),
            [
                r#"{"a":1,"b":2}"#,
                "!ragged-row line 3",
                "!too-large line 4",
                "!ragged-row line 5",
                r#"{"a":8,"b":9}"#
            ]
        );
        let text = "a,b\n1,\"never closed\n2,3\n".to_owned() + &long;
        assert_eq!(rows(&text, 5000), ["!too-large line 2"]);
    }

    #[test]
    fn prose_is_no_table() {
        for (text, is_table) in [
            ("id,trace_id\n1,2\n", true),
            ("id\ttrace_id\n1\t2\n", true),
            ("trace id;scores/a [x]\n1;2\n", true),
            ("\u{feff}id,b\n\"1\n2\",3", true),
            ("id,b", true),
            ("Hello, world\nHow are you?\n", false),
            ("Thought 1: look, then go\nAction, Search\n", false),
            ("one\ntwo\n", false),
            ("a,a\n1,2\n", false),
            ("a,b\n1,2,3\n", false),
            ("", false),
            ("{\"a\":1,\n\"b\":2}", false),
        ] {
            assert_eq!(is_csv(text.as_bytes(), true), is_table, "{text}");
        }
    }
}
