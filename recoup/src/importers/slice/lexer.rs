//! The lexer: walks a stream once, following strings and brackets, and cuts out records.

use std::collections::HashMap;
use std::io::{self, Read};

use super::{Layout, RawRecord};
use crate::id::Hash;
use crate::importers::{ImportError, Source};
use crate::warning::{ByteSpan, Quarantine};

/// Bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;
/// Nesting up to which brackets are matched by kind; deeper ones are only counted.
const TYPED_DEPTH_MAX: usize = 4096;

/// The records of a file, in order: each is read, or quarantined with its range.
pub struct Records {
    source: Source,
    cursor: Cursor,
    layout: Layout,
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

impl Records {
    /// Opens a file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn new(source: &Source, layout: Layout) -> Result<Self, ImportError> {
        let cursor = Cursor::new(source.open()?, source.options().record_bytes_max);
        Ok(Self {
            source: source.clone(),
            cursor,
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
            Layout::Document => {
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
        loop {
            self.cursor.skip_space()?;
            match self.cursor.peek()? {
                None => {
                    self.place = Place::End;
                    let at = self.cursor.offset;
                    let reason = "the file ends inside the array".to_owned();
                    return Ok(Some(Err(self.problem(at, "truncated", reason))));
                }
                Some(b']') => {
                    self.place = Place::End;
                    return Ok(None);
                }
                Some(b',') => self.cursor.skip(1),
                Some(_) => break,
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
            return Ok(Some(Err(self.problem(start.0, "truncated", reason))));
        }
        Ok(self.cut(start))
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
        let mut hash = [0; 8];
        hash.copy_from_slice(&Hash::of(&bytes).0[..8]);
        let ordinal = self.seen.entry(hash).or_default();
        let record = RawRecord {
            uri: self.source.uri().to_owned(),
            span: ByteSpan { start, end: start + bytes.len() as u64 },
            bytes,
            line,
            index: self.index,
            ordinal: *ordinal,
            sha256: String::new(),
            losses: Vec::new(),
            licence: self.source.options().licence.clone(),
        };
        *ordinal += 1;
        self.index += 1;
        Some(Ok(record))
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

impl Iterator for Records {
    type Item = Result<Item, ImportError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut item = self.next_raw();
        if let Some(Ok(Ok(record))) = &mut item {
            record.prepare();
        }
        item
    }
}

/// The document with the array at `path` emptied: what stands beside the records.
///
/// # Errors
/// When the file cannot be read, is larger than a record may be even so, or has no such array.
pub fn header(source: &Source, path: &[&str]) -> Result<RawRecord, ImportError> {
    let mut cursor = Cursor::new(source.open()?, source.options().record_bytes_max);
    let io = |error| ImportError::io(source, error);
    let unreadable =
        |code, reason: String| ImportError::Unreadable { uri: source.uri().to_owned(), code, reason };
    cursor.fill_at_least(3).map_err(io)?;
    if cursor.ahead().starts_with(b"\xef\xbb\xbf") {
        cursor.skip(3);
    }
    cursor.mark();
    if !cursor.walk_to_array(path).map_err(io)? {
        return Err(unreadable("missing-field", format!("expected an array at `{}`", path.join("."))));
    }
    let mut kept = cursor.stop_capture().unwrap_or_default();
    // Damage among the records cuts the file off as its end would.
    let cut = |error: io::Error| unreadable("truncated", format!("the file ends inside the array: {error}"));
    let mut open = 1;
    while open > 0 {
        match cursor.peek().map_err(cut)? {
            None => return Err(unreadable("truncated", "the file ends inside the array".to_owned())),
            Some(b'"') => cursor.skip_string().map_err(cut)?,
            Some(byte) => {
                match byte {
                    b'[' | b'{' => open += 1,
                    b']' | b'}' => open -= 1,
                    _ => {}
                }
                cursor.skip(1);
            }
        }
    }
    kept.push(b']');
    cursor.mark();
    while cursor.fill().map_err(io)? {
        cursor.take_buffered();
    }
    let rest = cursor.stop_capture();
    let rest = rest.ok_or_else(|| unreadable("too-large", "larger than a record may be".to_owned()))?;
    kept.extend_from_slice(&rest);
    Ok(RawRecord::whole(source, kept))
}

/// A buffered stream with an optional capture of what passes.
struct Cursor {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Bytes passed since the start of the file.
    offset: u64,
    /// 1-based line of the next byte.
    line: u64,
    limit: u64,
    capture: Capture,
    /// Bytes of the last capture: records of one file are of like size.
    expected: usize,
}

enum Capture {
    Off,
    On(Vec<u8>),
    TooLarge,
}

impl Cursor {
    fn new(reader: Box<dyn Read + Send>, limit: u64) -> Self {
        Self {
            reader,
            buffer: vec![0; BUFFER_BYTES],
            at: 0,
            filled: 0,
            offset: 0,
            line: 1,
            limit,
            capture: Capture::Off,
            expected: 0,
        }
    }

    /// Starts a capture; returns the offset and line of its first byte.
    fn mark(&mut self) -> (u64, u64) {
        self.capture = Capture::On(Vec::with_capacity(self.expected.min(BUFFER_BYTES)));
        (self.offset, self.line)
    }

    /// Ends the capture; `None` where it grew beyond the limit (or none was on).
    fn stop_capture(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.capture, Capture::Off) {
            Capture::On(bytes) => {
                self.expected = bytes.len() + bytes.len() / 4;
                Some(bytes)
            }
            Capture::Off | Capture::TooLarge => None,
        }
    }

    /// Makes at least one byte available; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        if self.at < self.filled {
            return Ok(true);
        }
        self.at = 0;
        self.filled = read_some(&mut self.reader, &mut self.buffer)?;
        Ok(self.filled > 0)
    }

    /// Makes `count` bytes available if the file has them; only before anything was read.
    fn fill_at_least(&mut self, count: usize) -> io::Result<()> {
        while self.filled < count {
            let read = read_some(&mut self.reader, &mut self.buffer[self.filled..])?;
            if read == 0 {
                break;
            }
            self.filled += read;
        }
        Ok(())
    }

    fn ahead(&self) -> &[u8] {
        &self.buffer[self.at..self.filled]
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(if self.fill()? { Some(self.buffer[self.at]) } else { None })
    }

    /// Passes `count` buffered bytes.
    fn skip(&mut self, count: usize) {
        let passed = &self.buffer[self.at..self.at + count];
        self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
        if let Capture::On(bytes) = &mut self.capture {
            if bytes.len() as u64 + count as u64 > self.limit {
                self.capture = Capture::TooLarge;
            } else {
                bytes.extend_from_slice(passed);
            }
        }
        self.at += count;
        self.offset += count as u64;
    }

    fn take_buffered(&mut self) {
        self.skip(self.filled - self.at);
    }

    /// Passes everything up to and with the next line feed.
    fn take_line(&mut self) -> io::Result<()> {
        while self.fill()? {
            match memchr::memchr(b'\n', self.ahead()) {
                Some(found) => {
                    self.skip(found + 1);
                    return Ok(());
                }
                None => self.take_buffered(),
            }
        }
        Ok(())
    }

    fn skip_space(&mut self) -> io::Result<()> {
        while self.fill()? {
            let space = self.ahead().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.skip(space);
            if self.at < self.filled {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Passes a string whose opening quote is next. A raw line feed ends it: JSON has none inside, so
    /// the string was never closed.
    fn skip_string(&mut self) -> io::Result<()> {
        self.skip(1);
        while self.fill()? {
            match memchr::memchr3(b'"', b'\\', b'\n', self.ahead()) {
                None => self.take_buffered(),
                Some(found) => {
                    let byte = self.ahead()[found];
                    self.skip(found + 1);
                    match byte {
                        b'\\' if self.fill()? => self.skip(1),
                        b'\\' => {}
                        _ => return Ok(()),
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes one value; false where the file ends first. A closing bracket of the other kind closes
    /// all that stands open above its partner; one without a partner ends the value before it.
    fn skip_value(&mut self) -> io::Result<bool> {
        let mut open: Vec<u8> = Vec::new();
        let mut uncounted = 0u64;
        loop {
            if !self.fill()? {
                return Ok(false);
            }
            let ahead = self.ahead();
            let plain = ahead.iter().take_while(|byte| !b"\"{}[],".contains(byte)).count();
            if plain > 0 {
                let scalar = open.is_empty();
                self.skip(plain);
                if scalar && self.at < self.filled {
                    return Ok(true);
                }
                continue;
            }
            let byte = ahead[0];
            match byte {
                b'"' => {
                    self.skip_string()?;
                    if open.is_empty() {
                        return Ok(true);
                    }
                }
                b'{' | b'[' if open.len() < TYPED_DEPTH_MAX => {
                    open.push(byte);
                    self.skip(1);
                }
                b'{' | b'[' => {
                    uncounted += 1;
                    self.skip(1);
                }
                b'}' | b']' if uncounted > 0 => {
                    uncounted -= 1;
                    self.skip(1);
                }
                b'}' | b']' => {
                    let partner = if byte == b'}' { b'{' } else { b'[' };
                    match open.iter().rposition(|bracket| *bracket == partner) {
                        Some(position) => open.truncate(position),
                        None if byte == b']' => return Ok(true),
                        None => {}
                    }
                    self.skip(1);
                    if open.is_empty() {
                        return Ok(true);
                    }
                }
                _ if open.is_empty() => return Ok(true),
                _ => self.skip(1),
            }
        }
    }

    /// Passes everything up to the next `,` or `]` (or the end).
    fn skip_junk(&mut self) -> io::Result<()> {
        while self.fill()? {
            match self.ahead().iter().position(|byte| b",]".contains(byte)) {
                Some(found) => {
                    self.skip(found);
                    return Ok(());
                }
                None => self.take_buffered(),
            }
        }
        Ok(())
    }

    /// Walks through objects along `path` and past the `[` at its end; false where there is none.
    fn walk_to_array(&mut self, path: &[&str]) -> io::Result<bool> {
        for key in path {
            self.skip_space()?;
            if self.peek()? != Some(b'{') {
                return Ok(false);
            }
            self.skip(1);
            if !self.walk_to_member(key)? {
                return Ok(false);
            }
        }
        self.skip_space()?;
        let found = self.peek()? == Some(b'[');
        if found {
            self.skip(1);
        }
        Ok(found)
    }

    /// Walks past `"key":` among the members of an object.
    fn walk_to_member(&mut self, key: &str) -> io::Result<bool> {
        loop {
            self.skip_space()?;
            match self.peek()? {
                Some(b'"') => {
                    let name = self.key()?;
                    self.skip_space()?;
                    if self.peek()? != Some(b':') {
                        return Ok(false);
                    }
                    self.skip(1);
                    if name.as_deref() == Some(key.as_bytes()) {
                        return Ok(true);
                    }
                    self.skip_space()?;
                    if !self.skip_value()? {
                        return Ok(false);
                    }
                }
                Some(b',') => self.skip(1),
                _ => return Ok(false),
            }
        }
    }

    /// Passes a key and returns its bytes between the quotes; `None` for a long or escaped one.
    fn key(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut name = Vec::new();
        self.skip(1);
        loop {
            match self.peek()? {
                None => return Ok(None),
                Some(b'"') => {
                    self.skip(1);
                    return Ok((name.len() <= 256).then_some(name));
                }
                Some(b'\\') => {
                    self.skip(1);
                    if self.fill()? {
                        self.skip(1);
                    }
                    name.resize(257, 0);
                }
                Some(byte) => {
                    if name.len() <= 256 {
                        name.push(byte);
                    }
                    self.skip(1);
                }
            }
        }
    }
}

/// Reads once, again where a signal interrupted it.
fn read_some(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match reader.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::{any, proptest};

    use super::{Records, header};
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
        let kept = header(&source(nested), &["samples"]).unwrap().bytes;
        assert_eq!(String::from_utf8(kept).unwrap(), r#"{"info":{"samples":[9]},"samples":[],"rest":[3]}"#);
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
