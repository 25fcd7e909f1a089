//! Personal data made of digits: cards, telephone numbers, national ids, IBANs, IPv4 addresses.
//!
//! One pass over the runs of digits. A run inside a word (`mia_li_3668`, `credit_card_4421486`), a
//! fraction or the middle of a hyphenated id begins nothing; only an IBAN and a national insurance
//! number may have letters directly before.

use std::net::Ipv4Addr;

use super::checksums::{is_card, is_cpf, is_iban};
use super::find::Hit;
use super::kind::Kind;
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

fn digits(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Matches `9` as a digit and any other byte as itself; the match must not be followed by a word
/// character, or by a hyphen or dot and a digit.
fn picture(bytes: &[u8], start: usize, picture: &[u8]) -> Option<usize> {
    let end = start + picture.len();
    let found = bytes.get(start..end)?;
    let fits = found.iter().zip(picture).all(|(byte, wanted)| match wanted {
        b'9' => byte.is_ascii_digit(),
        wanted => byte == wanted,
    });
    (fits && ends_number(bytes, end)).then_some(end)
}

fn ends_number(bytes: &[u8], end: usize) -> bool {
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

/// A card's number in one run, or grouped 4-4-4-4 or 4-6-5 by one kind of separator.
fn card(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    let grouped = match bytes.get(end) {
        Some(b'-') => picture(bytes, start, b"9999-9999-9999-9999")
            .or_else(|| picture(bytes, start, b"9999-999999-99999")),
        Some(b' ') => picture(bytes, start, b"9999 9999 9999 9999")
            .or_else(|| picture(bytes, start, b"9999 999999 99999")),
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
        [.., before, b'/'] => before.is_ascii_alphanumeric(),
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

/// International (`+44 20 7946 0958`), British (`020 7946 0958`), North American with separators (`(415) 555-0132`,
/// `415-555-0132`), or any number after a word that says it is one (`"phone": "4155550132"`).
fn phone(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    let before = start.checked_sub(1).map(|before| bytes[before]);
    match before {
        Some(b'+') => international(bytes, start),
        Some(b'(') if end - start == 3 => ["999) 999-9999", "999)999-9999", "999)-999-9999", "999) 999 9999"]
            .iter()
            .find_map(|shape| picture(bytes, start, shape.as_bytes()))
            .filter(|_| north_american(&bytes[start..], &bytes[start..end]))
            .map(|end| Hit { start: start - 1, end, kind: Kind::Phone }),
        _ => {
            let national = start + if bytes[start..].starts_with(b"1-") { 2 } else { 0 };
            ["999-999-9999", "999.999.9999"]
                .iter()
                .find_map(|shape| picture(bytes, national, shape.as_bytes()))
                .filter(|_| {
                    bytes
                        .get(national..national + 3)
                        .is_some_and(|area| north_american(&bytes[national..], area))
                })
                .map(|end| Hit { start, end, kind: Kind::Phone })
                .or_else(|| british(bytes, start))
                .or_else(|| named(bytes, start))
        }
    }
}

/// A number of the United Kingdom with its trunk zero, in the groups that it is written in there.
fn british(bytes: &[u8], start: usize) -> Option<Hit> {
    let more_before = matches!(bytes[..start], [.., b'0'..=b'9', b' ' | b',']);
    if more_before || !matches!(bytes[start..], [b'0', b'1' | b'2' | b'3' | b'7' | b'8', ..]) {
        return None;
    }
    let shapes = ["999 9999 9999", "9999 999 9999", "9999 999 999", "99999 999999", "99999 999 999"];
    let end = shapes.iter().find_map(|shape| {
        let dashed = shape.replace(' ', "-");
        picture(bytes, start, shape.as_bytes()).or_else(|| picture(bytes, start, dashed.as_bytes()))
    })?;
    let more_after = matches!(bytes[end..], [b' ', b'0'..=b'9', ..]);
    (!more_after).then_some(Hit { start, end, kind: Kind::Phone })
}

/// Area code and exchange begin with 2–9; `number` begins with the area code.
fn north_american(number: &[u8], area: &[u8]) -> bool {
    let exchange = number.iter().skip(3).find(|byte| byte.is_ascii_digit());
    matches!(area.first(), Some(b'2'..=b'9')) && matches!(exchange, Some(b'2'..=b'9'))
}

/// E.164: country code and at most 15 digits, grouped by single separators.
fn international(bytes: &[u8], start: usize) -> Option<Hit> {
    let plus = start - 1;
    if bytes[start] == b'0' || !starts_token(bytes, plus) {
        return None;
    }
    // A line that a diff adds begins with `+` too; there only groups tell a telephone number.
    let line_start = plus > 0 && bytes[plus - 1] == b'\n';
    let (end, count, groups) = dialed(bytes, start, if line_start { 2 } else { 1 });
    let least = if groups > 1 { 8 } else { 10 };
    let fits = (least..=15).contains(&count) && !(groups == 1 && line_start) && groups <= 6;
    (fits && ends_number(bytes, end)).then_some(Hit { start: plus, end, kind: Kind::Phone })
}

fn named(bytes: &[u8], start: usize) -> Option<Hit> {
    let gap = bytes[..start].iter().rev().take(8).take_while(|byte| b" \"'\\:=#(".contains(byte)).count();
    if gap == 0 {
        return None;
    }
    let word = &bytes[..start - gap];
    let word = &word[word.len().saturating_sub(12)..];
    let word = word.to_ascii_lowercase();
    let says = [
        "phone",
        "phone_number",
        "phone number",
        "phonenumber",
        "mobile",
        "telephone",
        "whatsapp",
        " tel",
        "\"tel",
        " fax",
        "\"fax",
    ]
    .iter()
    .any(|name| word.ends_with(name.as_bytes()));
    if !says || word.ends_with(b"iphone") {
        return None;
    }
    let (end, count, _) = dialed(bytes, start, 2);
    ((7..=15).contains(&count) && ends_number(bytes, end)).then_some(Hit { start, end, kind: Kind::Phone })
}

/// End, number of digits and number of groups of what could be dialed from `start` on: groups of two
/// to eight digits (an area code may have one: Paris is `1`), joined as people join them (`-` after a
/// space is a minus: `+1234 -5678`); the trunk zero of `+44 (0)20` is part of the joint.
fn dialed(bytes: &[u8], start: usize, area_least: usize) -> (usize, usize, usize) {
    let (mut at, mut count, mut groups) = (start, 0, 0);
    loop {
        let run = digits(&bytes[at..]);
        at += run;
        count += run;
        groups += 1;
        let rest = &bytes[at..];
        let trunk = [&b" (0) "[..], b" (0)", b"(0)"].into_iter().find(|trunk| rest.starts_with(trunk));
        let gap = trunk.map_or_else(
            || rest.iter().take(3).take_while(|byte| b" .-()".contains(byte)).count(),
            <[u8]>::len,
        );
        let joint = trunk.is_some()
            || matches!(&rest[..gap], b" " | b"." | b"-" | b"(" | b")" | b" (" | b") " | b")-");
        let next = digits(&bytes[at + gap..]);
        let least = if groups == 1 { area_least } else { 2 };
        if !joint || !(least..=8).contains(&next) || count + next > 15 {
            return (at, count, groups);
        }
        at += gap;
    }
}
