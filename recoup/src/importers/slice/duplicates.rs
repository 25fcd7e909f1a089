//! Duplicates: keys that stand twice in an object, of which the last one counts and the others are lost.

/// Brackets around an object that is looked at: a record, and the messages in an array of it.
const DEPTH_MAX: usize = 3;
/// Keys of an object that are compared.
const KEYS_MAX: usize = 128;

/// Whether a key stands twice in a record or in one of its messages. Keys are compared as written.
pub(super) fn has_duplicate_keys(bytes: &[u8]) -> bool {
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
                let Some(key) = string(&bytes[at..]) else { return false };
                at += key.len() + 1;
                let level = keys.get_mut(depth.wrapping_sub(1)).filter(|_| key_next);
                key_next = false;
                let Some(level) = level else { continue };
                if level.contains(&key) {
                    return true;
                }
                if level.len() < KEYS_MAX {
                    level.push(key);
                }
            }
            _ => {}
        }
    }
    false
}

/// What stands before the quote that ends a string.
fn string(bytes: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(&bytes[..at]);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::has_duplicate_keys;

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
            assert_eq!(has_duplicate_keys(text.as_bytes()), expected, "{text}");
        }
    }
}
