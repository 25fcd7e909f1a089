//! Walking over JSON without parsing it: strings and brackets are all that a cursor follows.

use std::io;

use super::cursor::Cursor;

/// Nesting up to which brackets are matched by kind; deeper ones are only counted.
const TYPED_DEPTH_MAX: usize = 4096;

/// What comes next in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Element,
    /// The array's closing bracket, not passed yet.
    Close,
    /// The end of the file.
    Cut,
}

impl Cursor {
    /// Passes white space and commas up to the next element of an array.
    pub(super) fn walk_to_element(&mut self) -> io::Result<Next> {
        loop {
            self.skip_space()?;
            match self.peek()? {
                None => return Ok(Next::Cut),
                Some(b']') => return Ok(Next::Close),
                Some(b',') => self.skip(1),
                Some(_) => return Ok(Next::Element),
            }
        }
    }

    /// Passes a string whose opening quote is next. A raw line feed ends it: JSON has none inside, so
    /// the string was never closed.
    pub(super) fn skip_string(&mut self) -> io::Result<()> {
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
    pub(super) fn skip_value(&mut self) -> io::Result<bool> {
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
                if scalar && !self.ahead().is_empty() {
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
    pub(super) fn skip_junk(&mut self) -> io::Result<()> {
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
    pub(super) fn walk_to_array(&mut self, path: &[&str]) -> io::Result<bool> {
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
