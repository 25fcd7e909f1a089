//! Telephone numbers: international, national in the groups that only telephone numbers have, or any after
//! a word that says that one follows.

use super::dialing::{dialed, longest, longest_of};
use super::find::Hit;
use super::kind::Kind;
use super::numbers::{digits, ends_number, picture};
use super::token::starts_token;

/// The number that begins at the run of digits `start..end`.
pub(super) fn phone(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    let before = start.checked_sub(1).map(|before| bytes[before]);
    match before {
        Some(b'+') => international(bytes, start),
        _ => bracketed(bytes, start, end)
            .or_else(|| north_american(bytes, start))
            .or_else(|| british(bytes, start))
            .or_else(|| french(bytes, start))
            .or_else(|| prefixed(bytes, start, end))
            .or_else(|| named(bytes, start)),
    }
}

/// `(415) 555-0132`
fn bracketed(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    if end - start != 3 || bytes[..start].last() != Some(&b'(') {
        return None;
    }
    ["999) 999-9999", "999)999-9999", "999)-999-9999", "999) 999 9999"]
        .iter()
        .find_map(|shape| picture(bytes, start, shape.as_bytes()))
        .filter(|_| is_north_american(&bytes[start..]))
        .map(|end| Hit { start: start - 1, end, kind: Kind::Phone })
}

/// `415-555-0132`, `1-415-555-0132`
fn north_american(bytes: &[u8], start: usize) -> Option<Hit> {
    let national = start + if bytes[start..].starts_with(b"1-") { 2 } else { 0 };
    ["999-999-9999", "999.999.9999"]
        .iter()
        .find_map(|shape| picture(bytes, national, shape.as_bytes()))
        .filter(|_| is_north_american(&bytes[national..]))
        .map(|end| Hit { start, end, kind: Kind::Phone })
}

/// Area code and exchange begin with 2–9; `number` begins with the area code.
fn is_north_american(number: &[u8]) -> bool {
    let exchange = number.iter().skip(3).find(|byte| byte.is_ascii_digit());
    matches!(number.first(), Some(b'2'..=b'9')) && matches!(exchange, Some(b'2'..=b'9'))
}

/// A number of the United Kingdom with its trunk zero, in the groups that it is written in there.
fn british(bytes: &[u8], start: usize) -> Option<Hit> {
    // `1,020 8783` is one number; `17,07700 900123` are two columns.
    let thousands = digits(&bytes[start..]) == 3;
    let more_before = match bytes[..start] {
        [.., b'0'..=b'9', b' '] => true,
        [.., b'0'..=b'9', b','] => thousands,
        _ => false,
    };
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

/// A French number: five pairs of which the first is a zone. A longer row of pairs, or one that counts up,
/// is a table.
fn french(bytes: &[u8], start: usize) -> Option<Hit> {
    let separator = *bytes.get(start + 2).filter(|byte| b" .-".contains(byte))?;
    let shape = "99 99 99 99 99".replace(' ', &char::from(separator).to_string());
    let end = picture(bytes, start, shape.as_bytes())?;
    let zone = bytes[start] == b'0' && bytes[start + 1] != b'0';
    let pair = |at: usize| (bytes[at] - b'0') * 10 + bytes[at + 1] - b'0';
    let counts_up = (0..4).all(|index| pair(start + 3 * index) + 1 == pair(start + 3 * index + 3));
    let is_pair = |a: u8, b: u8| {
        (a.is_ascii_digit() || b.is_ascii_digit()) && a.is_ascii_hexdigit() && b.is_ascii_hexdigit()
    };
    let more_before = matches!(bytes[..start], [.., a, b, before] if before == separator && is_pair(a, b));
    let more_after = matches!(bytes[end..], [after, a, b, ..] if after == separator && is_pair(a, b));
    (zone && !counts_up && !more_before && !more_after).then_some(Hit { start, end, kind: Kind::Phone })
}

/// E.164: a country's code and at most fifteen digits, grouped by single separators.
fn international(bytes: &[u8], start: usize) -> Option<Hit> {
    let plus = start - 1;
    if bytes[start] == b'0' || !starts_token(bytes, plus) {
        return None;
    }
    // A line that a diff adds begins with `+` too; there only groups tell a telephone number.
    let added = is_added_line(bytes, plus);
    let found = dialed(bytes, start, if added { 2 } else { 1 }, longest(&bytes[start..]));
    let least = match (bytes[start], found.groups) {
        (b'1', _) => 11,
        (_, 1) => 10,
        _ => 8,
    };
    let fits = (least..=15).contains(&found.count) && !(found.groups == 1 && added) && found.groups <= 7;
    (fits && ends_number(bytes, found.end)).then_some(Hit { start: plus, end: found.end, kind: Kind::Phone })
}

/// Whether the `+` at `plus` begins a line that has lines of a diff before or behind it.
fn is_added_line(bytes: &[u8], plus: usize) -> bool {
    let Some(newline) = plus.checked_sub(1).filter(|before| bytes[*before] == b'\n') else { return false };
    let of_diff = |line: Option<&u8>| line.is_some_and(|first| b"+-@ ".contains(first));
    let previous = memchr::memrchr(b'\n', &bytes[..newline]).map_or(0, |before| before + 1);
    let next = memchr::memchr(b'\n', &bytes[plus..]).map(|length| plus + length + 1);
    of_diff(bytes.get(previous)) || of_diff(next.and_then(|next| bytes.get(next)))
}

/// The same behind `00`: a known country, and groups as no dump of memory has them.
fn prefixed(bytes: &[u8], start: usize, end: usize) -> Option<Hit> {
    let code = bytes[start..end].strip_prefix(b"00")?;
    let found = dialed(bytes, start, 1, longest_of(code)? + 2);
    let fits = found.count >= 11 && found.groups >= 3 && (code.len() != 2 || found.shortest < 4);
    (fits && ends_number(bytes, found.end)).then_some(Hit { start, end: found.end, kind: Kind::Phone })
}

/// Words that a number follows; each ends a word itself.
const WORDS: &[&str] = &[
    "phone",
    "telephone",
    "cellphone",
    "mobile",
    "cell",
    "tel",
    "fax",
    "whatsapp",
    "handy",
    "telefon",
    "telefono",
    "teléfono",
    "téléphone",
    "telefone",
    "celular",
    "móvil",
    "電話",
    "携帯",
    "电话",
    "手机",
];

/// What may stand between the word and its colon.
const BETWEEN: &[&str] =
    &[" number", "_number", "-number", "number", " no", " nr", "番号", "号码", " is", "_no"];

fn named(bytes: &[u8], start: usize) -> Option<Hit> {
    let window = &bytes[start.saturating_sub(48)..start];
    let gap = window.iter().rev().take(8).take_while(|byte| b" \"'\\:=#(.".contains(byte)).count();
    if gap == 0 || !says_phone(&window[..window.len() - gap]) {
        return None;
    }
    let bracket = usize::from(window.ends_with(b"("));
    let ten = ["999 999 9999", "999-999-9999", "999.999.9999", "999) 999-9999", "9999999999"];
    let north_american = ten
        .iter()
        .find_map(|shape| picture(bytes, start, shape.as_bytes()))
        .filter(|_| is_north_american(&bytes[start..]));
    let end = north_american.or_else(|| {
        let found = dialed(bytes, start, 2, 12);
        ((7..=12).contains(&found.count) && ends_number(bytes, found.end)).then_some(found.end)
    })?;
    Some(Hit { start: start - bracket, end, kind: Kind::Phone })
}

/// Whether a text ends with a word that a telephone number follows.
fn says_phone(before: &[u8]) -> bool {
    let lower = String::from_utf8_lossy(before).to_lowercase();
    let mut word = lower.as_str();
    while let Some(shorter) = BETWEEN.iter().find_map(|between| word.strip_suffix(between)) {
        word = shorter.trim_end_matches(['.', ' ', '"', '\'']);
    }
    WORDS.iter().any(|name| {
        word.strip_suffix(name).is_some_and(|rest| {
            !name.is_ascii() || !rest.ends_with(|before: char| before.is_ascii_alphabetic())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::find::find;

    fn found(text: &str) -> Vec<&str> {
        find(text).iter().map(|hit| &text[hit.start..hit.end]).collect()
    }

    #[test]
    fn neighbors_stay_apart() {
        for (one, other) in [
            ("+44 20 7946 0958", "(415) 555-0132"),
            ("+44 20 7946 0958", "415-555-0132"),
            ("+1 415 555 0132", "+1 415 555 0199"),
            ("+33 6 12 34 56 78", "020 7946 0958"),
        ] {
            assert_eq!(found(&format!("{one} {other}")), [one, other]);
        }
        assert_eq!(found("phone: 415 555 0132 415 555 0199")[0], "415 555 0132");
    }

    #[test]
    fn words_in_several_languages_name_a_number() {
        for text in [
            "Tel.: 030 1234567",
            "電話番号: 03-1234-5678",
            "\"mobile\": \"(11) 91234-5678\"",
            "My phone number is 4155550132",
        ] {
            assert_eq!(found(text).len(), 1, "{text}");
        }
        for text in [
            "hotel: 0301234567",
            "\"iphone\": \"4155550132\"",
            "01 02 03 04 05",
            "04 11 23 35 42 51",
            "0049 4c46 0201 0100",
        ] {
            assert_eq!(found(text), [""; 0], "{text}");
        }
    }
}
