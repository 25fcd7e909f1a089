//! The records of a file, cut out one after the other while a [`Cursor`] walks over it once.

use std::collections::HashMap;
use std::io;

use super::cursor::Cursor;
use super::scan::Next;
use super::{Layout, RawRecord};
use crate::id::Hash;
use crate::importers::table::Rows;
use crate::importers::{ImportError, Source};
use crate::warning::{ByteSpan, Quarantine};

/// The records of a file, in order: each is read, or quarantined with its range.
pub struct Records<'a> {
    source: Source,
    cursor: Cursor,
    /// In place of the cursor, for a table.
    rows: Option<Rows>,
    layout: Layout<'a>,
    place: Place,
    index: u64,
    /// How often each record occurred, by the first 64 bits of its hash.
    seen: HashMap<[u8; 8], u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    Inside,
    End,
}

type Item = Result<RawRecord, Quarantine>;

impl<'a> Records<'a> {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened, or is no table where a table is wanted.
    pub fn new(source: &Source, layout: Layout<'a>) -> Result<Self, ImportError> {
        let cursor = Cursor::new(source.open()?, source.options().record_bytes_max);
        let rows = if layout == Layout::Table { Some(Rows::open(source)?) } else { None };
        Ok(Self {
            source: source.clone(),
            cursor,
            rows,
            layout,
            place: Place::Start,
            index: 0,
            seen: HashMap::new(),
        })
    }

    /// The next record, neither hashed nor rewritten yet: workers do that, or whoever joins records.
    pub(in crate::importers) fn next_raw(&mut self) -> Option<Result<Item, ImportError>> {
        match self.advance() {
            Ok(item) => item.map(Ok),
            Err(error) => {
                self.place = Place::End;
                if self.cursor.offset == 0 {
                    return Some(Err(ImportError::io(&self.source, error)));
                }
                // What stands before the damage counts: a file cut off by a crash is mostly whole.
                let captured = self.cursor.stop_capture().map_or(0, |bytes| bytes.len() as u64);
                let start = self.cursor.offset.saturating_sub(captured);
                let reason = format!("the file cannot be read from here on: {error}");
                Some(Ok(Err(self.problem(start, "unreadable", reason))))
            }
        }
    }

    fn advance(&mut self) -> io::Result<Option<Item>> {
        if let Some(rows) = &mut self.rows {
            let Some(item) = rows.next() else { return Ok(None) };
            return Ok(Some(item?.map(|record| self.numbered(record))));
        }
        if self.place == Place::Start {
            self.place = Place::Inside;
            if let Some(problem) = self.begin()? {
                self.place = Place::End;
                return Ok(Some(Err(problem)));
            }
        }
        if self.place == Place::End {
            return Ok(None);
        }
        match self.layout {
            Layout::Lines => self.next_line(),
            Layout::Elements(_) => self.next_element(),
            Layout::Document | Layout::Table => {
                self.place = Place::End;
                let start = self.cursor.mark();
                while self.cursor.fill()? {
                    self.cursor.take_buffered();
                }
                Ok(self.cut(start))
            }
        }
    }

    /// Skips a byte order mark and walks to the array.
    fn begin(&mut self) -> io::Result<Option<Quarantine>> {
        self.cursor.fill_at_least(3)?;
        let ahead = self.cursor.ahead();
        if ahead.starts_with(b"\xff\xfe") || ahead.starts_with(b"\xfe\xff") {
            return Ok(Some(self.problem(0, "encoding", "UTF-16 text; recoup reads UTF-8".to_owned())));
        }
        if ahead.starts_with(b"\xef\xbb\xbf") {
            self.cursor.skip(3);
        }
        let Layout::Elements(path) = self.layout else { return Ok(None) };
        if self.cursor.walk_to_array(path)? {
            return Ok(None);
        }
        let place = if path.is_empty() {
            "a JSON array".to_owned()
        } else {
            format!("an array at `{}`", path.join("."))
        };
        Ok(Some(self.problem(0, "missing-field", format!("expected {place}"))))
    }

    fn next_line(&mut self) -> io::Result<Option<Item>> {
        loop {
            let start = self.cursor.mark();
            if !self.cursor.fill()? {
                self.place = Place::End;
                self.cursor.stop_capture();
                return Ok(None);
            }
            self.cursor.take_line()?;
            if let Some(item) = self.cut(start) {
                return Ok(Some(item));
            }
        }
    }

    fn next_element(&mut self) -> io::Result<Option<Item>> {
        match self.cursor.walk_to_element()? {
            Next::Element => {}
            Next::Close => {
                self.place = Place::End;
                return self.behind_array();
            }
            Next::Cut => {
                self.place = Place::End;
                let at = self.cursor.offset;
                let reason = "the file ends inside the array".to_owned();
                return Ok(Some(Err(self.problem(at, "truncated", reason))));
            }
        }
        let start = self.cursor.mark();
        let closed = self.cursor.skip_value()?;
        // Whatever stands between the value and the next comma belongs to a bad element.
        self.cursor.skip_junk()?;
        if !closed {
            self.place = Place::End;
            let _ = self.cut(start);
            let reason = "the file ends inside this record".to_owned();
            return Ok(Some(Err(self.problem_at(start.0, start.1, "truncated", reason))));
        }
        Ok(self.cut(start))
    }

    /// What stands behind the file's array, which is no part of it.
    fn behind_array(&mut self) -> io::Result<Option<Item>> {
        if self.layout != Layout::Elements(&[]) {
            return Ok(None);
        }
        self.cursor.skip(1);
        self.cursor.skip_space()?;
        let (start, line) = (self.cursor.offset, self.cursor.line);
        while self.cursor.fill()? {
            self.cursor.take_buffered();
        }
        if self.cursor.offset == start {
            return Ok(None);
        }
        let reason = "the array ends before this".to_owned();
        Ok(Some(Err(self.problem_at(start, line, "trailing-data", reason))))
    }

    /// The record captured since `start`; `None` where it is only white space.
    fn cut(&mut self, (start, line): (u64, u64)) -> Option<Item> {
        let captured = self.cursor.stop_capture();
        let Some(bytes) = captured else {
            let limit = self.cursor.limit;
            let reason = format!("larger than {limit} bytes; raise `--max-record` to read it");
            self.index += 1;
            let problem = self.problem_at(start, line, "too-large", reason);
            return Some(Err(problem));
        };
        let lead = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        if lead == bytes.len() {
            return None;
        }
        let line = line + memchr::memchr_iter(b'\n', &bytes[..lead]).count() as u64;
        let mut bytes = bytes;
        let tail = bytes.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
        bytes.truncate(bytes.len() - tail);
        bytes.drain(..lead);
        let start = start + lead as u64;
        let record = RawRecord::at(&self.source, bytes, start, line);
        Some(Ok(self.numbered(record)))
    }

    /// The record with its place among the others.
    fn numbered(&mut self, mut record: RawRecord) -> RawRecord {
        let mut hash = [0; 8];
        hash.copy_from_slice(&Hash::of(&record.bytes).0[..8]);
        let ordinal = self.seen.entry(hash).or_default();
        record.index = self.index;
        record.ordinal = *ordinal;
        *ordinal += 1;
        self.index += 1;
        record
    }

    fn problem(&self, start: u64, code: &str, reason: String) -> Quarantine {
        self.problem_at(start, self.cursor.line, code, reason)
    }

    fn problem_at(&self, start: u64, line: u64, code: &str, reason: String) -> Quarantine {
        Quarantine {
            uri: self.source.uri().to_owned(),
            line: Some(line),
            span: Some(ByteSpan { start, end: self.cursor.offset }),
            code: code.to_owned(),
            reason,
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Result<Item, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut item = self.next_raw();
        if let Some(Ok(Ok(record))) = &mut item {
            record.prepare();
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{any, proptest};

    use super::Records;
    use crate::importers::slice::Layout;
    use crate::importers::{ImportOptions, Source};

    fn source(text: &str) -> Source {
        let options = ImportOptions { record_bytes_max: 1000, ..ImportOptions::default() };
        Source::from_bytes("x", text.as_bytes(), Arc::new(options))
    }

    fn cut(text: &str, layout: Layout) -> Vec<String> {
        Records::new(&source(text), layout)
            .unwrap()
            .map(|item| match item.unwrap() {
                Ok(record) => {
                    let (start, end) = (record.span.start as usize, record.span.end as usize);
                    assert_eq!(&text.as_bytes()[start..end], record.bytes, "span of {text}");
                    String::from_utf8(record.bytes).unwrap()
                }
                Err(quarantine) => format!("!{} line {}", quarantine.code, quarantine.line.unwrap()),
            })
            .collect()
    }

    #[test]
    fn lines_are_trimmed_and_empty_ones_skipped() {
        assert_eq!(cut("\u{feff}{\"a\":1}\r\n\n  2 \n", Layout::Lines), ["{\"a\":1}", "2"]);
        assert_eq!(cut("", Layout::Lines), Vec::<String>::new());
    }

    #[test]
    fn elements_are_cut_by_brackets_and_strings() {
        let text = r#"[ {"a":"]},\""}, [1,[2]] ,3,"x,y" ]"#;
        assert_eq!(cut(text, Layout::Elements(&[])), [r#"{"a":"]},\""}"#, "[1,[2]]", "3", r#""x,y""#]);
        let nested = r#"{"info":{"samples":[9]},"samples":[1,2],"rest":[3]}"#;
        assert_eq!(cut(nested, Layout::Elements(&["samples"])), ["1", "2"]);
    }

    #[test]
    fn a_bad_element_costs_only_itself() {
        assert_eq!(cut("[{\"a\":[1}, {\"b\":2}]", Layout::Elements(&[])), ["{\"a\":[1}", "{\"b\":2}"]);
        assert_eq!(cut("[{\"a\":1, {\"b\":2}]", Layout::Elements(&[])), ["{\"a\":1, {\"b\":2}"]);
        assert_eq!(cut("[1 2, 3]", Layout::Elements(&[])), ["1 2", "3"]);
        assert_eq!(cut("[{\"a\":1},\n{\"b\":", Layout::Elements(&[])), ["{\"a\":1}", "!truncated line 2"]);
        assert_eq!(cut("[1,", Layout::Elements(&[])), ["1", "!truncated line 1"]);
        assert_eq!(cut("{}", Layout::Elements(&["samples"])), ["!missing-field line 1"]);
    }

    #[test]
    fn what_stands_behind_an_array_is_quarantined() {
        for more in ["]", "\n{\"b\":2}", " more", "[2]"] {
            let line = 1 + more.matches('\n').count();
            assert_eq!(
                cut(&format!("[1]{more}"), Layout::Elements(&[])),
                ["1".to_owned(), format!("!trailing-data line {line}")]
            );
        }
        assert_eq!(cut("[1] \n", Layout::Elements(&[])), ["1"]);
        assert_eq!(cut("{\"a\":[1],\"b\":2}", Layout::Elements(&["a"])), ["1"]);
    }

    #[test]
    fn a_large_record_is_passed_over() {
        let text = format!("{{\"a\":1}}\n\"{}\"\n{{\"b\":2}}\n", "x".repeat(2000));
        assert_eq!(cut(&text, Layout::Lines), ["{\"a\":1}", "!too-large line 2", "{\"b\":2}"]);
    }

    #[test]
    fn utf_16_is_named() {
        let bytes: Vec<u8> = "\u{feff}{}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let source = Source::from_bytes("x", bytes, Arc::default());
        let item = Records::new(&source, Layout::Lines).unwrap().next().unwrap().unwrap();
        assert_eq!(item.unwrap_err().code, "encoding");
    }

    proptest! {
        #[test]
        fn any_bytes_come_to_an_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            for layout in [Layout::Lines, Layout::Elements(&[]), Layout::Elements(&["a"]), Layout::Document] {
                let source = Source::from_bytes("x", bytes.clone(), Arc::default());
                assert!(Records::new(&source, layout).unwrap().count() <= bytes.len() + 1);
            }
        }

        #[test]
        fn elements_join_to_the_array(values in proptest::collection::vec(any::<(String, Option<u8>)>(), 0..8)) {
            let texts: Vec<String> = values.iter().map(|value| serde_json::to_string(value).unwrap()).collect();
            let array = format!("[{}]", texts.join(" , "));
            let options = Arc::new(ImportOptions::default());
            let source = Source::from_bytes("x", array.into_bytes(), options);
            let cut: Vec<String> = Records::new(&source, Layout::Elements(&[]))
                .unwrap()
                .map(|item| String::from_utf8(item.unwrap().unwrap().bytes).unwrap())
                .collect();
            assert_eq!(cut, texts);
        }
    }
}
