//! Commands that take a password without naming it: `sshpass -p …`, `curl -u name:…`.

use memchr::memmem;

use super::find::Hit;
use super::kind::Kind;

/// How far from its command a flag stands, in bytes.
const REACH: usize = 256;

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    for at in memmem::find_iter(bytes, b"sshpass -p") {
        hits.extend(value(bytes, at + 10));
    }
    for at in memmem::find_iter(bytes, b"curl ") {
        let line = bytes[at..].iter().take(REACH).take_while(|byte| **byte != b'\n').count();
        for flag in [&b" -u"[..], b" --user"] {
            let Some(flag_at) = memmem::find(&bytes[at..at + line], flag) else { continue };
            let Some(pair) = value(bytes, at + flag_at + flag.len()) else { continue };
            if let Some(colon) = memchr::memchr(b':', &bytes[pair.start..pair.end]) {
                let start = pair.start + colon + 1;
                hits.extend(written_out(bytes, start, pair.end));
            }
        }
    }
}

/// The value behind a flag, quoted or not.
fn value(bytes: &[u8], after: usize) -> Option<Hit> {
    let gap = bytes[after..].iter().take(4).take_while(|byte| b" ='\"\\".contains(byte)).count();
    let start = after + gap;
    let end = start
        + bytes[start..]
            .iter()
            .take(128)
            .take_while(|byte| byte.is_ascii_graphic() && !b"'\"\\`<>|".contains(byte))
            .count();
    written_out(bytes, start, end)
}

/// A variable is no password, and neither is a short word.
fn written_out(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    let value = &bytes[start..end];
    let variable = value.first().is_none_or(|first| b"$%{[(*-".contains(first));
    (value.len() >= 6 && !variable).then_some(Hit { start, end, kind: Kind::Password })
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn the_value_is_found_and_the_variable_is_not() {
        let found = |text: &'static str| {
            let mut hits = Vec::new();
            find(text, &mut hits);
            hits.iter().map(|hit| &text[hit.start..hit.end]).collect::<Vec<_>>()
        };
        assert_eq!(found("sshpass -p 'hunter2!' ssh root@web"), ["hunter2!"]);
        assert_eq!(found("curl -s -u admin:Tr0ub4dor https://ci.example"), ["Tr0ub4dor"]);
        assert_eq!(found("curl -u \"$USER:$PASS\" https://ci.example"), [""; 0]);
        assert_eq!(found("sort -u names:sorted"), [""; 0]);
    }
}
