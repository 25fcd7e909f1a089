//! Personal data made of digits: cards, telephone numbers, national ids, IBANs, IPv4 addresses.
//!
//! One pass over the runs of digits. A run inside a word (`mia_li_3668`, `credit_card_4421486`), a
//! fraction or the middle of a hyphenated id begins nothing; only an IBAN and a national insurance
//! number may have letters directly before.

use std::net::Ipv4Addr;

use super::checksums::{is_card, is_cpf, is_iban};
use super::find::Hit;
use super::kind::Kind;
use super::phones::phone;
use super::token::{ends_token, is_word, starts_token};

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(skip) = bytes[at..].iter().position(u8::is_ascii_digit) {
        let start = at + skip;
        let end = start + digits(&bytes[start..]);
        at = end;
        if let Some(hit) = begin(bytes, start, end) {
            at = hit.end;
            hits.push(hit);
        }
    }
}

/// What begins at the run of digits `start..end`, if anything.
fn begin(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    if let [.., a, b] = bytes[..start]
        && a.is_ascii_uppercase()
        && b.is_ascii_uppercase()
        && starts_token(bytes, start - 2)
    {
        return iban(bytes, start - 2).or_else(|| national_insurance(bytes, start - 2));
    }
    // `QQ 12 34 56 C`
    if let [.., a, b, b' '] = bytes[..start]
        && a.is_ascii_uppercase()
        && b.is_ascii_uppercase()
        && starts_token(bytes, start - 3)
        && let Some(hit) = national_insurance(bytes, start - 3)
    {
        return Some(hit);
    }
    let before = start.checked_sub(1).map(|before| bytes[before]);
    if !starts_token(bytes, start) || before == Some(b'.') {
        return None;
    }
    if before == Some(b'-') && start >= 2 && is_word(bytes[start - 2]) {
        return None;
    }
    let length = end - start;
    let shaped = match (length, bytes.get(end)) {
        (3, Some(b'-')) => social_security(bytes, start),
        (3, Some(b'.')) => cpf(bytes, start),
        _ => None,
    };
    shaped
        .or_else(|| if length <= 3 { ipv4(bytes, start) } else { None })
        .or_else(|| if length >= 4 { card(bytes, start, end) } else { None })
        .or_else(|| phone(bytes, start, end))
}

pub(super) fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Matches `9` as a digit and any other byte as itself; the match must not be followed by a word
/// character, or by a hyphen or dot and a digit.
pub(super) fn picture(bytes: &[u8], start: usize, picture: &[u8]) -> Option<usize> {
    let end = start + picture.len();
    let found = bytes.get(start..end)?;
    let fits = found.iter().zip(picture).all(|(byte, wanted)| match wanted {
        b'9' => byte.is_ascii_digit(),
        wanted => byte == wanted,
    });
    (fits && ends_number(bytes, end)).then_some(end)
}

pub(super) fn ends_number(bytes: &[u8], end: usize) -> bool {
    let goes_on =
        matches!(bytes.get(end), Some(b'-' | b'.')) && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
    ends_token(bytes, end) && !goes_on
}

fn social_security(bytes: &[u8], start: usize) -> Option<Hit> {
    let end = picture(bytes, start, b"999-99-9999")?;
    let number = &bytes[start..end];
    let issued = &number[..3] != b"000"
        && &number[..3] != b"666"
        && number[0] != b'9'
        && &number[4..6] != b"00"
        && &number[7..] != b"0000";
    issued.then_some(Hit { start, end, kind: Kind::NationalId })
}

fn cpf(bytes: &[u8], start: usize) -> Option<Hit> {
    let end = picture(bytes, start, b"999.999.999-99")?;
    let mut number = [b'0'; 11];
    let found = bytes[start..end].iter().filter(|byte| byte.is_ascii_digit());
    for (digit, found) in number.iter_mut().zip(found) {
        *digit = *found;
    }
    is_cpf(&number).then_some(Hit { start, end, kind: Kind::NationalId })
}

/// `QQ123456C`, also in pairs with spaces; the letters are those that are given out.
fn national_insurance(bytes: &[u8], start: usize) -> Option<Hit> {
    let end = ["LL999999S", "LL 99 99 99 S"].iter().find_map(|shape| {
        let end = start + shape.len();
        let found = bytes.get(start..end)?;
        let fits = found.iter().zip(shape.bytes()).all(|(byte, wanted)| match wanted {
            b'9' => byte.is_ascii_digit(),
            b'L' => byte.is_ascii_uppercase() && !b"DFIQUV".contains(byte),
            b'S' => matches!(byte, b'A'..=b'D'),
            wanted => *byte == wanted,
        });
        (fits && ends_token(bytes, end)).then_some(end)
    })?;
    let prefix = &bytes[start..start + 2];
    let given_out = prefix[1] != b'O'
        && ![b"BG", b"GB", b"NK", b"KN", b"TN", b"NT", b"ZZ"].iter().any(|not| *not == prefix);
    given_out.then_some(Hit { start, end, kind: Kind::NationalId })
}

/// Written together or in groups of four.
fn iban(bytes: &[u8], start: usize) -> Option<Hit> {
    let mut account = Vec::with_capacity(34);
    let mut longest = None;
    for (offset, byte) in bytes[start..].iter().take(44).enumerate() {
        match byte {
            b'A'..=b'Z' | b'0'..=b'9' => account.push(*byte),
            b' ' if account.len().is_multiple_of(4) => continue,
            _ => break,
        }
        let end = start + offset + 1;
        if account.len() >= 15 && ends_token(bytes, end) && is_iban(&account) {
            longest = Some(Hit { start, end, kind: Kind::Iban });
        }
    }
    longest
}

/// How the digits of a card's number are grouped, the longest first.
const GROUPS: &[&[u8]] =
    &[b"9999 9999 9999 9999 999", b"9999 9999 9999 9999", b"9999 999999 99999", b"9999 999999 9999"];

/// A card's number in one run, or grouped by one kind of separator.
fn card(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    let grouped = match bytes.get(end) {
        Some(separator @ (b'-' | b' ')) => GROUPS.iter().find_map(|shape| {
            let shape: Vec<u8> =
                shape.iter().map(|byte| if *byte == b' ' { *separator } else { *byte }).collect();
            picture(bytes, start, &shape)
        }),
        _ => None,
    };
    let end = grouped.or_else(|| ends_number(bytes, end).then_some(end))?;
    let number: Vec<u8> = bytes[start..end].iter().copied().filter(u8::is_ascii_digit).collect();
    is_card(&number).then_some(Hit { start, end, kind: Kind::Card })
}

/// A public address. A version or section number (`v1.2.3.4`, `Chrome/120.0.0.0`, `==1.2.3.4`, small
/// parts) is none, and an address that is nobody's (private, loopback, documentation)
/// needs no hiding.
fn ipv4(bytes: &[u8], start: usize) -> Option<Hit> {
    let length =
        bytes[start..].iter().take(16).take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
    let text = bytes[start..start + length].strip_suffix(b".").unwrap_or(&bytes[start..start + length]);
    let end = start + text.len();
    let address: Ipv4Addr = std::str::from_utf8(text).ok()?.parse().ok()?;
    let octets = address.octets();
    let nobody = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        || octets[0] == 0
        || octets[0] >= 240;
    // One address of five hundred has three octets below twenty; nearly every version has.
    let small = octets.iter().filter(|octet| **octet < 20).count() >= 3;
    let version = match &bytes[..start] {
        // `Chrome/120.0.0.0`, but `web.example.com/93.184.216.34` and `/proxy/93.184.216.34`.
        [product @ .., b'/'] => {
            let word =
                product.iter().rev().take(32).take_while(|byte| is_word(**byte) || **byte == b'-').count();
            word > 0 && !matches!(product[..product.len() - word].last(), Some(b'.' | b'/'))
        }
        [.., b'=' | b'>' | b'<' | b'~' | b'!', b'='] | [.., b'^' | b'~'] => true,
        before => {
            let spaces = before.iter().rev().take(4).take_while(|byte| b" :=\"'".contains(byte)).count();
            let word = &before[..before.len() - spaces];
            word.len() >= 7 && word[word.len() - 7..].eq_ignore_ascii_case(b"version")
        }
    };
    (!nobody && !small && !version && ends_number(bytes, end) && bytes.get(end) != Some(&b'-'))
        .then_some(Hit { start, end, kind: Kind::IpAddress })
}
