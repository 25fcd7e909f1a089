//! A probe: the first bytes of a file, read leniently, for recognizing its format.

mod condense;
mod outline;

use std::io::Read as _;

pub use self::outline::Outline;
use self::outline::{ELEMENTS_MAX, Scanner};
use super::{ImportError, Layout, Source, table};

/// Bytes of a file that a probe reads (after decompression).
const HEAD_BYTES: u64 = 1 << 20;
/// Top-level values that a probe keeps.
const VALUES_MAX: usize = 16;
/// Rows of a table that a probe looks at.
const ROWS: usize = 2;
/// NUL bytes that a text of any length may have by accident.
const STRAY_NULS_MAX: usize = 4;

/// The first bytes of a file.
#[derive(Debug)]
pub struct Probe {
    /// File name without folders, for hints only.
    pub name: String,
    /// Up to a MiB, without a byte order mark.
    pub head: Vec<u8>,
    /// True when `head` is the whole file.
    pub complete: bool,
    /// Outlines of the first top-level JSON values; lines that are not JSON are skipped.
    pub values: Vec<Outline>,
    /// What the file looks like.
    pub shape: Shape,
}

/// What a file looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One JSON object.
    Object,
    /// One JSON array.
    Array,
    /// Several JSON values, one a line.
    Lines,
    /// A zip archive.
    Zip,
    /// Rows of a Parquet or CSV file.
    Table,
    /// Text.
    Text,
    /// Neither text nor a known archive.
    Binary,
}

/// The encoding that a byte order mark other than UTF-8's names.
fn foreign_encoding(head: &[u8]) -> Option<&'static str> {
    if head.starts_with(b"\xff\xfe\0\0") || head.starts_with(b"\0\0\xfe\xff") {
        Some("UTF-32")
    } else if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        Some("UTF-16")
    } else {
        None
    }
}

/// Whether NUL bytes are part of the format: a stray one in a text damages a record only.
fn is_binary(head: &[u8]) -> bool {
    memchr::memchr_iter(0, head).count() > (head.len() / 100).max(STRAY_NULS_MAX)
}

impl Probe {
    /// Reads the head of a file.
    ///
    /// # Errors
    /// When nothing of it can be read, or it is text in another encoding.
    pub fn read(source: &Source) -> Result<Self, ImportError> {
        let mut head = Vec::new();
        let reader = source.open()?;
        let read = reader.take(HEAD_BYTES + 1).read_to_end(&mut head);
        if let Err(error) = read {
            // The start of a damaged file says as much as that of a whole one.
            if head.is_empty() {
                return Err(ImportError::io(source, error));
            }
        }
        let complete = head.len() as u64 <= HEAD_BYTES;
        head.truncate(HEAD_BYTES as usize);
        if let Some(encoding) = foreign_encoding(&head) {
            return Err(ImportError::Unreadable {
                uri: source.uri().to_owned(),
                code: "encoding",
                reason: format!("{encoding} text; recoup reads UTF-8"),
            });
        }
        if head.starts_with(b"\xef\xbb\xbf") {
            head.drain(..3);
        }
        let mut probe = Self::of(source.name(), head, complete);
        if probe.shape == Shape::Table {
            let rows = table::first_rows(source, ROWS)?;
            let mut scanner = Scanner::new(&rows);
            probe.values = std::iter::from_fn(|| scanner.top_level()).collect();
        }
        if probe.is_cut_in_first_record() {
            let condensed = condense::first_value(source)?;
            probe.values.splice(..1, Scanner::new(&condensed).top_level());
        }
        Ok(probe)
    }

    /// Looks at a head that is already in memory.
    pub fn of(name: &str, head: Vec<u8>, complete: bool) -> Self {
        let mut values = Vec::new();
        let shape = if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            Shape::Zip
        } else if table::is_parquet(&head) || table::is_csv(&head, complete) {
            Shape::Table
        } else if is_binary(&head) {
            Shape::Binary
        } else {
            let mut scanner = Scanner::new(&head);
            let mut first_end = 0;
            while values.len() < VALUES_MAX {
                match scanner.top_level() {
                    Some(value) => {
                        if values.is_empty() && !scanner.broken {
                            first_end = scanner.at;
                        }
                        values.push(value);
                    }
                    None if scanner.at >= head.len() => break,
                    None => {}
                }
            }
            // A whole object on one line with more behind it: lines, of which the others are broken.
            let (first, rest) = head.split_at(first_end);
            let more = first_end > 0 && !first.contains(&b'\n') && !rest.trim_ascii().is_empty();
            match values.as_slice() {
                [Outline::Object(_)] if more => Shape::Lines,
                [Outline::Object(_)] => Shape::Object,
                [Outline::Array(_)] => Shape::Array,
                [] | [_] => Shape::Text,
                _ => Shape::Lines,
            }
        };
        Self { name: name.to_owned(), head, complete, values, shape }
    }

    /// True when the head ends before enough of the first value was seen to tell what it is: a long
    /// history may stand before the keys that say whose it is.
    fn is_cut_in_first_record(&self) -> bool {
        match self.values.as_slice() {
            [Outline::Object(_)] => !self.complete,
            [Outline::Array(elements)] => !self.complete && elements.len() < ELEMENTS_MAX,
            _ => false,
        }
    }

    /// How the file's records lie, for the formats that come as JSON lines, as an array of records or
    /// as one record.
    pub fn layout(&self) -> Layout<'static> {
        match self.shape {
            Shape::Array => Layout::Elements(&[]),
            Shape::Table => Layout::Table,
            // A first line longer than the head may be one of several; if it is not, it is still a line.
            Shape::Object if !self.complete && !self.head.contains(&b'\n') => Layout::Lines,
            Shape::Object => Layout::Document,
            _ => Layout::Lines,
        }
    }

    /// True for a file that is one array, and as a whole one run: `is_run` says so of the array.
    pub fn is_one_list(&self, is_run: impl Fn(&Outline) -> bool) -> bool {
        self.shape == Shape::Array && self.values.first().is_some_and(is_run)
    }

    /// How the records lie, where the whole file may be such an array.
    pub fn layout_or_list(&self, is_run: impl Fn(&Outline) -> bool) -> Layout<'static> {
        if self.is_one_list(is_run) { Layout::Document } else { self.layout() }
    }

    /// Outlines of the first records in that layout: the values themselves, the array's elements, or
    /// the table's rows with their columns as keys.
    pub fn records(&self) -> &[Outline] {
        match (self.shape, self.values.first()) {
            (Shape::Array, Some(array)) => array.elements(),
            _ => &self.values,
        }
    }

    /// True when some of the first records is an object with all these keys.
    pub fn any_record_has(&self, keys: &[&str]) -> bool {
        self.records().iter().any(|record| record.has_all(keys))
    }

    /// The head as text, with replacement characters where it is not UTF-8.
    pub fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::{Outline, Probe, Shape};

    fn probe(text: &str) -> Probe {
        Probe::of("x", text.as_bytes().to_vec(), true)
    }

    #[test]
    fn shapes_are_told_apart() {
        assert_eq!(probe("[{\"a\":1}]").shape, Shape::Array);
        assert_eq!(probe("{\"a\":\n1}").shape, Shape::Object);
        assert_eq!(probe("{\"a\":1}\nnot json\n{\"a\":2}\n").shape, Shape::Lines);
        assert_eq!(probe("{\"a\":1}\n{broken\n").shape, Shape::Lines);
        assert_eq!(probe("{\"a\":1}\n\n").shape, Shape::Object);
        assert_eq!(probe("Thought 1: hm").shape, Shape::Text);
        assert_eq!(probe("").shape, Shape::Text);
        assert_eq!(probe("PK\u{3}\u{4}").shape, Shape::Zip);
        assert_eq!(probe("{\"a\":1}\n{\"a\":\"\0\"}\n").shape, Shape::Lines);
        assert_eq!(probe(&"\0\u{1}".repeat(20)).shape, Shape::Binary);
    }

    #[test]
    fn a_backslash_may_be_the_last_byte() {
        assert_eq!(probe("[\"a\": \"b\\").shape, Shape::Array);
        assert_eq!(probe("{\"a\": \"b\\").shape, Shape::Object);
        assert_eq!(probe("\"\\").shape, Shape::Text);
    }

    #[test]
    fn a_bad_element_does_not_make_an_array_lines() {
        let probe = probe(r#"[{"a": 1}, {"a": [2}, {"a": 3}]"#);
        assert_eq!(probe.shape, Shape::Array);
        assert!(probe.any_record_has(&["a"]));
    }

    #[test]
    fn a_truncated_head_still_shows_its_keys() {
        let probe = probe(r#"[{"task_id": 7, "traj": [{"role": "user", "content": "he"#);
        let record = &probe.records()[0];
        assert_eq!(record.get("task_id"), Some(&Outline::Number("7".to_owned())));
        assert_eq!(
            record.get("traj").and_then(Outline::first).and_then(|m| m.get("role")?.as_str()),
            Some("user")
        );
    }

    #[test]
    fn hostile_nesting_ends() {
        assert_eq!(probe(&"[".repeat(1 << 20)).shape, Shape::Array);
        assert_eq!(probe(&"{\"a\":".repeat(100_000)).shape, Shape::Object);
    }
}
