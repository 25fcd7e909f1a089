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
        hits.extend(email(bytes, at));
    }
    for at in memchr::memchr_iter(b':', bytes) {
        hits.extend(ipv6(bytes, at));
    }
}

fn email(bytes: &[u8], at: usize) -> Option<Hit> {
    let local =
        bytes[..at].iter().rev().take(64).take_while(|byte| is_word(**byte) || b".+-".contains(byte)).count();
    let mut start = at - local;
    start += escape_tail(start.checked_sub(1).map(|before| bytes[before]), &bytes[start..at]);
    start += bytes[start..at].iter().take_while(|byte| b".-+".contains(byte)).count();
    let domain_length = bytes[at + 1..]
        .iter()
        .take(255)
        .take_while(|byte| byte.is_ascii_alphanumeric() || b".-".contains(byte))
        .count();
    let domain = &bytes[at + 1..at + 1 + domain_length];
    let domain = &domain[..=domain.iter().rposition(u8::is_ascii_alphabetic)?];
    let dot = memchr::memrchr(b'.', domain)?;
    let (host, top) = (&domain[..dot], std::str::from_utf8(&domain[dot + 1..]).ok()?);
    let end = at + 1 + domain.len();
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
