//! Personal data with a shape of its own beside numbers: e-mail and IPv6 addresses.

use std::net::Ipv6Addr;

use super::find::Hit;
use super::kind::Kind;
use super::token::{ends_token, escape_tail, is_word, starts_token};

/// Last labels that are no top-level domain but the ending of a file (`icon@2x.png`).
const FILE_ENDINGS: &[&str] =
    &["png", "jpg", "jpeg", "gif", "svg", "webp", "css", "js", "ts", "json", "html", "ico", "yml", "yaml"];

/// Domains that e-mail is really sent from; two-letter country domains beside them. Others count
/// only after a local part of three characters, because `q@keys` is also a matrix product.
const KNOWN_DOMAINS: &[&str] = &[
    "com", "org", "net", "edu", "gov", "mil", "info", "biz", "app", "dev", "cloud", "online", "email",
    "example", "test",
];

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    for at in memchr::memchr_iter(b'@', bytes) {
        hits.extend(email(text, at, at + 1));
    }
    // In the query of a URL.
    for at in memchr::memmem::find_iter(bytes, b"%40") {
        hits.extend(email(text, at, at + 3));
    }
    for at in memchr::memchr_iter(b':', bytes) {
        hits.extend(ipv6(bytes, at));
    }
}

/// Longest local part of an address (RFC 5321, section 4.5.3.1.1).
const LOCAL_MAX: usize = 64;

/// Where the local part of an address begins that ends at `at`: ASCII words, joints, and letters of the
/// scripts that write words apart (beside others, the sentence would belong to the address).
fn local_start(text: &str, at: usize) -> usize {
    let mut start = word_start(text, at);
    while at - start < LOCAL_MAX
        && let Some(before) = encoded_before(text, start)
    {
        start = word_start(text, before);
    }
    start
}

/// Where the part of a local part begins that ends at `at` and has no escape.
fn word_start(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    let mut start = at;
    for (offset, character) in text[..at].char_indices().rev().take(LOCAL_MAX) {
        let in_local = match character {
            '.' | '+' | '-' | '_' => true,
            // `o'brien`; the `f` of `f'mia@…'` begins a string.
            '\'' => {
                let before = bytes[..offset].last().copied().unwrap_or(b' ');
                let one = !offset
                    .checked_sub(2)
                    .is_some_and(|before| is_word(bytes[before]) || bytes[before] == b'.');
                start < at && before.is_ascii_alphabetic() && !(one && b"fFbBrRuU".contains(&before))
            }
            character if character.is_ascii() => character.is_ascii_alphanumeric(),
            character => character.is_alphabetic() && u32::from(character) < 0x0530,
        };
        if !in_local {
            break;
        }
        start = offset;
    }
    start
}

/// Where the escape begins that a local part goes on before `start` with: `mia%2Bnews`, `o%27brien`,
/// `j%C3%BCrgen`, whose digits the word behind it has taken for its own.
fn encoded_before(text: &str, start: usize) -> Option<usize> {
    let before = start.checked_sub(1).filter(|before| text.as_bytes()[*before] == b'%')?;
    let byte = u8::from_str_radix(text.get(start..start + 2)?, 16).ok()?;
    (byte >= 0x80 || b"+'._-".contains(&byte)).then_some(before)
}

/// Letters that end a terminal's color at `start`: `32m` behind `ESC [`.
fn color_tail(bytes: &[u8], start: usize) -> usize {
    let parameters = bytes[..start]
        .iter()
        .rev()
        .take(8)
        .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
        .count();
    let digits = bytes[start..].iter().take(3).take_while(|byte| byte.is_ascii_digit()).count();
    let colored = bytes[..start - parameters].ends_with(b"\x1b[") && bytes.get(start + digits) == Some(&b'm');
    if colored { digits + 1 } else { 0 }
}

/// The address around `@` (or `%40`) at `at..after`.
fn email(text: &str, at: usize, after: usize) -> Option<Hit> {
    let bytes = text.as_bytes();
    let mut start = local_start(text, at);
    start += color_tail(bytes, start);
    start += escape_tail(start.checked_sub(1).map(|before| bytes[before]), &bytes[start..at]);
    start += bytes[start..at].iter().take_while(|byte| b".-+'".contains(byte)).count();
    let domain_length = bytes[after..]
        .iter()
        .take(255)
        .take_while(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte))
        .count();
    let domain = &bytes[after..after + domain_length];
    let domain = &domain[..=domain.iter().rposition(u8::is_ascii_alphabetic)?];
    let dot = memchr::memrchr(b'.', domain)?;
    let (host, top) = (&domain[..dot], std::str::from_utf8(&domain[dot + 1..]).ok()?);
    let end = after + domain.len();
    let plausible = start < at
        && !host.is_empty()
        && host[0].is_ascii_alphanumeric()
        && !host.windows(2).any(|pair| pair == b"..")
        && (2..=24).contains(&top.len())
        && top.bytes().all(|byte| byte.is_ascii_alphabetic())
        && !FILE_ENDINGS.iter().any(|ending| top.eq_ignore_ascii_case(ending))
        && ends_token(bytes, end)
        // A call (`x@y.mm(z)`) or the remote of a repository (`git@host.org:owner/name`).
        && bytes.get(end) != Some(&b'(')
        && &bytes[start..at] != b"git";
    let known = top.len() == 2 || KNOWN_DOMAINS.iter().any(|known| top.eq_ignore_ascii_case(known));
    (plausible && (known || at - start >= 3)).then_some(Hit { start, end, kind: Kind::Email })
}

/// A global unicast address (`2000::/3`): its first group is the four digits before the first colon.
fn ipv6(bytes: &[u8], colon: usize) -> Option<Hit> {
    let start = colon.checked_sub(4)?;
    let first = &bytes[start..colon];
    if !matches!(first[0], b'2' | b'3')
        || !first.iter().all(u8::is_ascii_hexdigit)
        || !starts_token(bytes, start)
    {
        return None;
    }
    let length =
        bytes[start..].iter().take(40).take_while(|byte| byte.is_ascii_hexdigit() || **byte == b':').count();
    let end = start + length;
    let address: Ipv6Addr = std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?;
    // `2024::` in a list of years, or `2001:db8::/32`, which is set aside for manuals.
    let documentation = address.segments()[..2] == [0x2001, 0x0db8];
    let groups = address.segments().iter().filter(|group| **group != 0).count();
    (groups >= 3 && !documentation && ends_token(bytes, end)).then_some(Hit {
        start,
        end,
        kind: Kind::IpAddress,
    })
}
