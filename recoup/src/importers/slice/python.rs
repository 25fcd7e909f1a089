//! Rewrites the JSON that Python's `json.dumps` writes and JSON parsers refuse.

use super::tokens;

/// The loss where bytes are no text.
const INVALID: &str = "invalid UTF-8 became U+FFFD";
/// The loss where a key stands twice.
const DUPLICATE_KEY: &str = "of a duplicate key the last one counts";

/// Rewrites `NaN`, `Infinity`, `-Infinity` (to `null`) outside strings and lone surrogate escapes (to
/// `\ufffd`) inside them, and replaces invalid UTF-8. `None` where nothing needed it. What is lost, and keys of which
/// only the last one counts, are added to `losses`.
pub(super) fn rewrite(bytes: &[u8], losses: &mut Vec<&'static str>) -> Option<Vec<u8>> {
    if std::str::from_utf8(bytes).is_ok() {
        return rewrite_text(bytes, losses);
    }
    losses.push(INVALID);
    let repaired = String::from_utf8_lossy(bytes).into_owned().into_bytes();
    Some(rewrite_text(&repaired, losses).unwrap_or(repaired))
}

/// Bytes as text, rewritten likewise.
pub(super) fn text(bytes: Vec<u8>, losses: &mut Vec<&'static str>) -> String {
    let text = String::from_utf8(bytes).unwrap_or_else(|error| {
        losses.push(INVALID);
        String::from_utf8_lossy(error.as_bytes()).into_owned()
    });
    match rewrite_text(text.as_bytes(), losses) {
        None => text,
        Some(rewritten) => String::from_utf8_lossy(&rewritten).into_owned(),
    }
}

fn rewrite_text(bytes: &[u8], losses: &mut Vec<&'static str>) -> Option<Vec<u8>> {
    let mut found = tokens::look(bytes);
    let rewritten = if found.python { rewrite_tokens(bytes, losses) } else { None };
    if let Some(rewritten) = &rewritten {
        found = tokens::look(rewritten);
    }
    if found.duplicate_key {
        losses.push(DUPLICATE_KEY);
    }
    rewritten
}

fn rewrite_tokens(bytes: &[u8], losses: &mut Vec<&'static str>) -> Option<Vec<u8>> {
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
    if nonfinite {
        losses.push("NaN or Infinity became null");
    }
    if surrogate {
        losses.push("lone surrogate became U+FFFD");
    }
    (nonfinite || surrogate).then_some(out)
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
        rewrite(input.as_bytes(), &mut Vec::new()).map(|bytes| String::from_utf8(bytes).unwrap())
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
        assert_eq!(rewrite(b"\"\xff\"", &mut Vec::new()), Some("\"\u{fffd}\"".into()));
        for bytes in [&b"[NaN]"[..], b"\"\xff\\ud83d\"", b"{\"a\":1,\"a\":2}", b"{}"] {
            let (mut losses, mut reasons) = (Vec::new(), Vec::new());
            let wanted = rewrite(bytes, &mut reasons).unwrap_or(bytes.to_vec());
            let text = super::text(bytes.to_vec(), &mut losses);
            assert_eq!((text.into_bytes(), losses), (wanted, reasons));
        }
    }

    #[test]
    fn keys_that_are_one_when_rewritten_are_said() {
        let mut losses = Vec::new();
        rewrite(br#"{"\ud800":1,"\ud801":2}"#, &mut losses).unwrap();
        assert_eq!(losses, ["lone surrogate became U+FFFD", "of a duplicate key the last one counts"]);
    }
}
