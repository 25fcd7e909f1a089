//! A cursor on a stream: reads ahead, counts bytes and lines, and captures what passes.

use std::io::{self, Read};

/// Bytes read at once.
const BUFFER_BYTES: usize = 256 << 10;

/// A buffered stream with an optional capture of what passes.
pub(super) struct Cursor {
    reader: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Bytes passed since the start of the file.
    pub(super) offset: u64,
    /// 1-based line of the next byte.
    pub(super) line: u64,
    pub(super) limit: u64,
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
    pub(super) fn new(reader: Box<dyn Read + Send>, limit: u64) -> Self {
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
    pub(super) fn mark(&mut self) -> (u64, u64) {
        self.capture = Capture::On(Vec::with_capacity(self.expected.min(BUFFER_BYTES)));
        (self.offset, self.line)
    }

    /// Ends the capture; `None` where it grew beyond the limit (or none was on).
    pub(super) fn stop_capture(&mut self) -> Option<Vec<u8>> {
        match std::mem::replace(&mut self.capture, Capture::Off) {
            Capture::On(bytes) => {
                self.expected = bytes.len() + bytes.len() / 4;
                Some(bytes)
            }
            Capture::Off | Capture::TooLarge => None,
        }
    }

    /// Makes at least one byte available; false at the end.
    pub(super) fn fill(&mut self) -> io::Result<bool> {
        if self.at < self.filled {
            return Ok(true);
        }
        self.at = 0;
        self.filled = read_some(&mut self.reader, &mut self.buffer)?;
        Ok(self.filled > 0)
    }

    /// Makes `count` bytes available if the file has them; only before anything was read.
    pub(super) fn fill_at_least(&mut self, count: usize) -> io::Result<()> {
        while self.filled < count {
            let read = read_some(&mut self.reader, &mut self.buffer[self.filled..])?;
            if read == 0 {
                break;
            }
            self.filled += read;
        }
        Ok(())
    }

    pub(super) fn ahead(&self) -> &[u8] {
        &self.buffer[self.at..self.filled]
    }

    pub(super) fn peek(&mut self) -> io::Result<Option<u8>> {
        Ok(if self.fill()? { Some(self.buffer[self.at]) } else { None })
    }

    /// Passes `count` buffered bytes.
    pub(super) fn skip(&mut self, count: usize) {
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

    pub(super) fn take_buffered(&mut self) {
        self.skip(self.filled - self.at);
    }

    /// Passes everything up to and with the next line feed.
    pub(super) fn take_line(&mut self) -> io::Result<()> {
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

    pub(super) fn skip_space(&mut self) -> io::Result<()> {
        while self.fill()? {
            let space = self.ahead().iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            self.skip(space);
            if self.at < self.filled {
                return Ok(());
            }
        }
        Ok(())
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
