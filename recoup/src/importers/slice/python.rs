//! Rewrites the JSON that Python's `json.dumps` writes and JSON parsers refuse.

/// The loss where bytes are no text.
const INVALID: &str = "invalid UTF-8 became U+FFFD";

/// Rewrites `NaN`, `Infinity`, `-Infinity` (to `null`) outside strings and lone surrogate escapes (to
/// `\ufffd`) inside them, and replaces invalid UTF-8. `None` where nothing needed it.
pub(super) fn rewrite(bytes: &[u8]) -> Option<(Vec<u8>, Vec<&'static str>)> {
    let mut losses = Vec::new();
    let mut repaired;
    let mut bytes = bytes;
    if std::str::from_utf8(bytes).is_err() {
        losses.push(INVALID);
        repaired = String::from_utf8_lossy(bytes).into_owned().into_bytes();
        bytes = &repaired;
    } else {
        repaired = Vec::new();
    }
    if let Some((rewritten, mut more)) = rewrite_tokens(bytes) {
        losses.append(&mut more);
        return Some((rewritten, losses));
    }
    if losses.is_empty() { None } else { Some((std::mem::take(&mut repaired), losses)) }
}

/// Bytes as text, rewritten likewise.
pub(super) fn text(bytes: Vec<u8>, losses: &mut Vec<&'static str>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        losses.push(INVALID);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    let Some((rewritten, mut more)) = rewrite_tokens(text.as_bytes()) else { return text };
    losses.append(&mut more);
    String::from_utf8_lossy(&rewritten).into_owned()
}

fn rewrite_tokens(bytes: &[u8]) -> Option<(Vec<u8>, Vec<&'static str>)> {
    // Both need one of these: no capital N or I outside strings and no `\ud` escape means no rewriting,
    // and most records are told apart by these two searches alone.
    let suspicious = memchr::memmem::find(bytes, b"NaN").is_some()
        || memchr::memmem::find(bytes, b"Infinity").is_some()
        || memchr::memmem::find(bytes, b"\\ud").is_some()
        || memchr::memmem::find(bytes, b"\\uD").is_some();
    if !suspicious {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len());
    let (mut nonfinite, mut surrogate) = (false, false);
    let mut in_string = false;
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        if in_string {
            if rest[0] == b'\\' {
                let taken = match surrogate_escape(rest) {
                    Some(Escape::Pair) => 12,
                    Some(Escape::Lone) => {
                        surrogate = true;
                        out.extend_from_slice(b"\\ufffd");
                        at += 6;
                        continue;
                    }
                    None => 2,
                };
                let taken = taken.min(rest.len());
                out.extend_from_slice(&rest[..taken]);
                at += taken;
                continue;
            }
            in_string = rest[0] != b'"';
        } else {
            let word = ["-Infinity", "Infinity", "NaN"].iter().find(|word| rest.starts_with(word.as_bytes()));
            if let Some(word) = word {
                nonfinite = true;
                out.extend_from_slice(b"null");
                at += word.len();
                continue;
            }
            in_string = rest[0] == b'"';
        }
        out.push(rest[0]);
        at += 1;
    }
    let mut losses = Vec::new();
    if nonfinite {
        losses.push("NaN or Infinity became null");
    }
    if surrogate {
        losses.push("lone surrogate became U+FFFD");
    }
    if losses.is_empty() { None } else { Some((out, losses)) }
}

enum Escape {
    Pair,
    Lone,
}

fn surrogate_escape(rest: &[u8]) -> Option<Escape> {
    let first = unit(rest)?;
    match first {
        0xD800..0xDC00
            if rest.get(6..).and_then(unit).is_some_and(|next| (0xDC00..0xE000).contains(&next)) =>
        {
            Some(Escape::Pair)
        }
        0xD800..0xE000 => Some(Escape::Lone),
        _ => None,
    }
}

/// The code unit of a `\uXXXX` at the start of `rest`.
fn unit(rest: &[u8]) -> Option<u32> {
    if rest.get(..2)? != b"\\u" {
        return None;
    }
    let digits = std::str::from_utf8(rest.get(2..6)?).ok()?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::rewrite;

    fn text(input: &str) -> Option<String> {
        rewrite(input.as_bytes()).map(|(bytes, _)| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn only_what_a_parser_refuses_is_rewritten() {
        assert_eq!(
            text(r#"{"a":NaN,"b":-Infinity,"c":"NaN"}"#).as_deref(),
            Some(r#"{"a":null,"b":null,"c":"NaN"}"#)
        );
        assert_eq!(text(r#"["\ud83d\ude00"]"#), None);
        assert_eq!(text(r#"["\ud83d x","\\ud83d"]"#).as_deref(), Some(r#"["\ufffd x","\\ud83d"]"#));
        assert_eq!(text(r#"{"NaN":"Infinity"}"#), None);
        assert_eq!(rewrite(b"\"\xff\"").map(|(bytes, _)| bytes), Some("\"\u{fffd}\"".into()));
        for bytes in [&b"[NaN]"[..], b"\"\xff\\ud83d\"", b"{}"] {
            let (mut losses, rewritten) = (Vec::new(), rewrite(bytes));
            let text = super::text(bytes.to_vec(), &mut losses);
            let (wanted, reasons) = rewritten.unwrap_or((bytes.to_vec(), Vec::new()));
            assert_eq!((text.into_bytes(), losses), (wanted, reasons));
        }
    }
}
