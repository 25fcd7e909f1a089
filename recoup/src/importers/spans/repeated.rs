//! What a request repeats of the one before it, told from their bytes alone: most of a log is that.

use std::borrow::Cow;

use crate::canonical::decode_string;

/// Bytes that are compared at once.
const CHUNK_BYTES: usize = 1 << 12;

/// A request that was followed.
#[derive(Default)]
pub(super) struct Repeated {
    /// Its text in the log: JSON, perhaps within a string.
    source: String,
    /// The places in the text behind its messages, with the positions that these led to.
    ends: Vec<(usize, usize)>,
    /// Its messages stand in an object.
    pub(super) in_object: bool,
    /// It offers tools.
    pub(super) offers: bool,
}

/// What a request says that the one before it does not.
pub(super) struct Rest<'t> {
    /// Where it begins in the text of the request.
    pub(super) from: usize,
    /// The position that the messages before it led to.
    pub(super) at: usize,
    /// Its JSON, out of the string it may stand in.
    pub(super) text: Cow<'t, str>,
}

impl Repeated {
    /// What stands behind the messages that a request repeats; `None` where it repeats none.
    pub(super) fn rest<'t>(&self, source: &'t str) -> Option<Rest<'t>> {
        let common = common(self.source.as_bytes(), source.as_bytes());
        let count = self.ends.partition_point(|(end, _)| *end <= common);
        let (from, at) = *self.ends.get(count.checked_sub(1)?)?;
        let rest = source.get(from..)?;
        let text = if is_quoted(source) {
            Cow::Owned(decode_string(&format!("\"{rest}"))?.into_owned())
        } else {
            Cow::Borrowed(rest)
        };
        Some(Rest { from, at, text })
    }

    /// Takes the place of the request before: `ends` are the places in its JSON from `from` on behind its
    /// messages, with the positions that these led to.
    pub(super) fn keep(&mut self, source: &str, from: usize, ends: &[(usize, usize)]) {
        // What was repeated stands there already.
        self.source.truncate(from);
        self.source.push_str(source.get(from..).unwrap_or_default());
        self.ends.retain(|(end, _)| *end <= from);
        let quoted = is_quoted(source);
        let mut place = if quoted { from.max(1) } else { from };
        let mut passed = 0;
        for (end, at) in ends {
            let more = end - passed;
            place = if quoted { behind(source.as_bytes(), place, more) } else { place + more };
            passed = *end;
            self.ends.push((place, *at));
        }
    }
}

fn is_quoted(source: &str) -> bool {
    source.starts_with('"')
}

/// How many bytes are the same at the beginning of both.
fn common(one: &[u8], other: &[u8]) -> usize {
    let chunks = one.chunks(CHUNK_BYTES).zip(other.chunks(CHUNK_BYTES));
    let same = chunks.take_while(|(one, other)| one == other).map(|(one, _)| one.len()).sum();
    let rest = one.iter().zip(other).skip(same);
    same + rest.take_while(|(one, other)| one == other).count()
}

/// The place behind so many bytes of what a string stands for, from a place in it on.
fn behind(string: &[u8], mut place: usize, mut bytes: usize) -> usize {
    while bytes > 0 {
        let rest = string.get(place..).unwrap_or_default();
        let plain = memchr::memchr(b'\\', rest).unwrap_or(rest.len()).min(bytes);
        (place, bytes) = (place + plain, bytes - plain);
        if bytes == 0 || rest.len() <= plain {
            break;
        }
        let (escape, stands_for) = match unit(string, place) {
            None => (2, 1),
            Some(0xD800..0xDC00) => (12, 4),
            Some(..0x80) => (6, 1),
            Some(..0x800) => (6, 2),
            Some(_) => (6, 3),
        };
        (place, bytes) = (place + escape, bytes.saturating_sub(stands_for));
    }
    place
}

/// The code unit of an escape `\uXXXX`.
fn unit(string: &[u8], place: usize) -> Option<u32> {
    let digits = string.get(place..place + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::{Repeated, behind, common};
    use crate::json::Json;

    #[test]
    fn a_place_in_a_string_is_found_whatever_its_escapes() {
        let string = br#""a\n\u00e9\ud83d\udc4b\u0041b\u2028c""#;
        let text: String = serde_json::from_slice(string).unwrap();
        for (end, _) in text.char_indices().skip(1) {
            let place = behind(string, 1, end);
            let rest = [b"\"", &string[place..]].concat();
            assert_eq!(serde_json::from_slice::<String>(&rest).unwrap(), text[end..], "{end}");
        }
        assert_eq!(behind(br#""ab"#, 1, 99), 3);
    }

    #[test]
    fn only_whole_messages_are_repeated() {
        let long = "é\n".repeat(5000);
        let messages = [format!("{{\"a\":\"{}\"}}", long.replace('\n', "\\n")), "{\"b\":1}".to_owned()];
        for quoted in [false, true] {
            let source = |last: &str| {
                let list = format!("[{},{last}]", messages[0]);
                if quoted { Json::string(&list).as_str().to_owned() } else { list }
            };
            let first = source(&messages[1]);
            let first_end = 1 + messages[0].len();
            let ends = [(first_end, 7), (first_end + 1 + messages[1].len(), 8)];
            let mut repeated = Repeated::default();
            repeated.keep(&first, 0, &ends);
            let rest = |source: &str| {
                let rest = repeated.rest(source)?;
                Some((rest.at, rest.text.into_owned()))
            };
            assert_eq!(rest(&first), Some((8, "]".to_owned())));
            assert_eq!(rest(&source("{\"b\":1},{}")), Some((8, ",{}]".to_owned())));
            assert_eq!(rest(&source("{\"b\":12}")), Some((7, ",{\"b\":12}]".to_owned())));
            assert_eq!(rest("[{\"c\":1}]"), None);
            // A request that goes on from there is compared with the whole of it.
            let second = source("{\"b\":1},{}");
            let from = repeated.rest(&second).unwrap().from;
            repeated.keep(&second, from, &[(3, 9)]);
            assert_eq!(repeated.rest(&source("{\"b\":1},{},{}")).unwrap().at, 9);
        }
    }

    #[test]
    fn beginnings_are_compared_to_the_byte() {
        let long = vec![b'x'; 10_000];
        let mut other = long.clone();
        other[9_000] = b'y';
        assert_eq!(
            (common(&long, &other), common(&long, &long[..5_000]), common(b"", b"a")),
            (9_000, 5_000, 0)
        );
    }
}
