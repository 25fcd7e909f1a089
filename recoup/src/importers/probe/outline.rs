//! The outline of a JSON value: keys, first elements and starts of strings, read without ever failing.

/// Members of an object that an outline keeps.
const MEMBERS_MAX: usize = 128;
/// Elements of an array that an outline keeps.
pub(super) const ELEMENTS_MAX: usize = 4;
/// Nesting that an outline follows.
const DEPTH_MAX: usize = 8;
/// Bytes of a string that an outline keeps.
pub(super) const STRING_BYTES_MAX: usize = 256;

/// A JSON value as far as a probe looks: keys, first elements, starts of strings.
#[derive(Clone, Debug, PartialEq)]
pub enum Outline {
    /// Members in source order.
    Object(Vec<(String, Outline)>),
    /// The first elements.
    Array(Vec<Outline>),
    /// The start of a string, its escapes undone only for `\"`, `\\`, `\/` and `\n`.
    String(String),
    /// A number's source text.
    Number(String),
    /// `true` or `false`.
    Bool(bool),
    /// `null`.
    Null,
    /// Cut off by the end of the head or by the nesting limit.
    Unseen,
}

impl Outline {
    /// The member of that name.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// True for an object that has all these keys.
    pub fn has_all(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.get(key).is_some())
    }

    /// The first element of an array.
    pub fn first(&self) -> Option<&Self> {
        self.elements().first()
    }

    /// The first elements of an array; empty for anything else.
    pub fn elements(&self) -> &[Self] {
        match self {
            Self::Array(elements) => elements,
            _ => &[],
        }
    }

    /// The start of a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// True for an object.
    pub fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// True for an array.
    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_))
    }
}

/// Reads outlines; never fails, only stops seeing.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    /// Bytes passed.
    pub(super) at: usize,
    /// Set where a value does not go on as JSON does.
    pub(super) broken: bool,
}

impl<'a> Scanner<'a> {
    /// Before the first byte.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, broken: false }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// The next top-level object or array; anything else is skipped to the end of its line.
    pub(super) fn top_level(&mut self) -> Option<Outline> {
        self.skip_space();
        if matches!(self.peek(), Some(b'{' | b'[')) {
            let start = self.at;
            self.broken = false;
            let value = self.value(0);
            if self.broken && value.is_array() && self.bytes[..start].iter().all(u8::is_ascii_whitespace) {
                // A bad element ends what is seen of the array, not the array.
                self.at = self.bytes.len();
            }
            if self.at > start + 1 && !matches!(value, Outline::Unseen) {
                return Some(value);
            }
        }
        while self.peek().is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
        None
    }

    fn value(&mut self, depth: usize) -> Outline {
        self.skip_space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Outline::String(self.string()),
            Some(b'-' | b'0'..=b'9') => Outline::Number(self.word()),
            Some(_) => match self.word().as_str() {
                "true" => Outline::Bool(true),
                "false" => Outline::Bool(false),
                "null" => Outline::Null,
                _ => Outline::Unseen,
            },
            None => Outline::Unseen,
        }
    }

    fn word(&mut self) -> String {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte)) {
            self.at += 1;
        }
        String::from_utf8_lossy(&self.bytes[start..self.at]).into_owned()
    }

    fn object(&mut self, depth: usize) -> Outline {
        if depth >= DEPTH_MAX {
            self.skip_nested();
            return Outline::Unseen;
        }
        self.at += 1;
        let mut members = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b'"') => {
                    let key = self.string();
                    self.skip_space();
                    if self.peek() != Some(b':') {
                        self.broken = true;
                        break;
                    }
                    self.at += 1;
                    let before = self.at;
                    let value = self.value(depth + 1);
                    if members.len() < MEMBERS_MAX {
                        members.push((key, value));
                    }
                    if self.at == before {
                        self.broken = true;
                        break;
                    }
                }
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    break;
                }
                _ => {
                    self.broken = true;
                    break;
                }
            }
        }
        Outline::Object(members)
    }

    fn array(&mut self, depth: usize) -> Outline {
        if depth >= DEPTH_MAX {
            self.skip_nested();
            return Outline::Unseen;
        }
        self.at += 1;
        let mut elements = Vec::new();
        loop {
            self.skip_space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    break;
                }
                None => break,
                Some(_) => {
                    let before = self.at;
                    let value = self.value(depth + 1);
                    if elements.len() < ELEMENTS_MAX {
                        elements.push(value);
                    }
                    if self.at == before {
                        self.broken = true;
                        break;
                    }
                }
            }
        }
        Outline::Array(elements)
    }

    /// Skips a bracketed value without looking into it.
    fn skip_nested(&mut self) {
        let mut open = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open = open.saturating_sub(1),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return;
            }
        }
    }

    fn string(&mut self) -> String {
        self.at += 1;
        let mut kept = Vec::new();
        while let Some(byte) = self.peek() {
            self.at += 1;
            let byte = match byte {
                b'"' => break,
                b'\\' => {
                    let Some(escaped) = self.peek() else { break };
                    self.at += 1;
                    if escaped == b'n' { b'\n' } else { escaped }
                }
                byte => byte,
            };
            if kept.len() < STRING_BYTES_MAX {
                kept.push(byte);
            }
        }
        String::from_utf8_lossy(&kept).into_owned()
    }
}
