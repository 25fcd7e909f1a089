//! One look at all tokens of a record: what stands twice in it, and what Python has written there that JSON has not.

/// Brackets around an object that is looked at for duplicates: a record, and the messages in an array of it.
const DEPTH_MAX: usize = 3;
/// Keys of an object that are compared.
const KEYS_MAX: usize = 128;

/// What a look has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// A key stands twice in a record or in one of its messages: the last one counts and the others are lost. Keys
    /// are compared as written.
    pub(super) duplicate_key: bool,
    /// A number that is none may stand outside strings, or a surrogate inside one.
    pub(super) python: bool,
}

/// Looks at a record. What stands behind a string without an end is not looked at.
pub(super) fn look(bytes: &[u8]) -> Found {
    let mut found = Found::default();
    let mut keys: [Vec<&[u8]>; DEPTH_MAX] = Default::default();
    let mut is_object = [false; DEPTH_MAX];
    let (mut depth, mut at, mut key_next) = (0_usize, 0, false);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'{' | b'[' => {
                if let (Some(keys), Some(is_object)) = (keys.get_mut(depth), is_object.get_mut(depth)) {
                    keys.clear();
                    *is_object = *byte == b'{';
                }
                key_next = *byte == b'{';
                depth += 1;
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' => key_next = depth > 0 && is_object.get(depth - 1) == Some(&true),
            b'"' => {
                let Some(key) = string(&bytes[at..], &mut found.python) else { return found };
                at += key.len() + 1;
                let level = keys.get_mut(depth.wrapping_sub(1)).filter(|_| key_next);
                key_next = false;
                let Some(level) = level else { continue };
                if level.contains(&key) {
                    found.duplicate_key = true;
                } else if level.len() < KEYS_MAX {
                    level.push(key);
                }
            }
            b'N' | b'I' => found.python = true,
            _ => {}
        }
    }
    found
}

/// What stands before the quote that ends a string, and whether it may hold a surrogate.
fn string<'b>(bytes: &'b [u8], surrogate: &mut bool) -> Option<&'b [u8]> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(&bytes[..at]);
        }
        *surrogate |= matches!(bytes.get(at + 1..at + 3), Some([b'u', b'd' | b'D']));
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::look;

    #[test]
    fn duplicates_are_found_in_records_and_messages_only() {
        for (text, expected) in [
            (r#"{"a":1,"b":{"a":2},"c":[{"a":1},{"a":1}]}"#, false),
            (r#"{"a":1,"b":"a","a":2}"#, true),
            (r#"{"m":[{"a":{"x":[1]},"a":"\\"}]}"#, true),
            (r#"{"m":[{"x":"{\"a\":1,\"a\":2}"}],"n":["a","a"]}"#, false),
            (r#"{"m":[{"x":{"a":1,"a":2}}]}"#, false),
            (r#"{"a":1,"a"#, false),
            ("}}]],\"a", false),
        ] {
            assert_eq!(look(text.as_bytes()).duplicate_key, expected, "{text}");
        }
    }

    #[test]
    fn what_python_writes_is_found_where_it_counts() {
        for (text, expected) in [
            (r#"{"a":NaN}"#, true),
            (r#"{"a":[1,-Infinity]}"#, true),
            (r#"{"NaN":"-Infinity","b":null}"#, false),
            (r#"["\uD83d"]"#, true),
            (r#"["\\ud83d","\u00dd"]"#, false),
            (r#"{"a":1,"a":2,"b":NaN}"#, true),
            (r#"{"a":1,"a":2,"b":"\ud83d"}"#, true),
            (r#"["\u"#, false),
        ] {
            assert_eq!(look(text.as_bytes()).python, expected, "{text}");
        }
    }
}
