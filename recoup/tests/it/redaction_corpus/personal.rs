//! Personal data: addresses, telephone numbers, cards, accounts, national ids, IP addresses.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::carriers::{ANY, EMAIL, IP, PHONE, carried};
use super::draw::Draw;
use super::planted::Planted;
use recoup::redaction::Kind;

const FIRST: &[&str] =
    &["mia", "leo", "Anna", "jürgen", "maria", "wei", "olu", "Priya", "sean", "ines", "yuki", "tom"];
const LAST: &[&str] =
    &["li", "Meyer", "obrien", "garcia", "tanaka", "Okafor", "rossi", "dubois", "novak", "smith", "patel"];
const DOMAINS: &[&str] = &[
    "example.com",
    "example.org",
    "mail.example.net",
    "gmail.com",
    "web.de",
    "orange.fr",
    "uni-example.ac.uk",
    "company.io",
    "studio.photography",
    "example.co.jp",
    "correo.es",
    "sub.dept.example.edu",
    "firma.ch",
    "example.museum",
    "startup.ai",
];

fn email(draw: &mut Draw) -> (&'static str, String) {
    let (first, last, domain) = (draw.pick(FIRST), draw.pick(LAST), draw.pick(DOMAINS));
    let number = draw.between(1, 99_999);
    match draw.below(9) {
        0 => ("first.last", format!("{first}.{last}{number}@{domain}")),
        1 => ("plus", format!("{first}+news{number}@{domain}")),
        2 => ("underscore", format!("{first}_{last}_{number}@{domain}")),
        3 => ("upper case", format!("{first}.{last}{number}@{domain}").to_uppercase()),
        4 => ("digits", format!("{number}{first}@{domain}")),
        5 => ("hyphen", format!("{first}-{last}-{number}@{domain}")),
        6 => ("initial", format!("{}{number}.{last}@{domain}", &last[..1])),
        7 => ("domain of many labels", format!("{last}{number}@a.b-{number}.{domain}")),
        _ => ("apostrophe", format!("{first}.o'{last}{number}@{domain}")),
    }
}

/// Numbers that show by their form, by country.
const DIALED: &[(&str, &str)] = &[
    ("US, E.164", "+1{n:3}{n:3}{d:4}"),
    ("US, international", "+1 {n:3} {n:3} {d:4}"),
    ("US, hyphens", "+1-{n:3}-{n:3}-{d:4}"),
    ("US, +1 and brackets", "+1 ({n:3}) {n:3}-{d:4}"),
    ("US, brackets", "({n:3}) {n:3}-{d:4}"),
    ("US, national", "{n:3}-{n:3}-{d:4}"),
    ("US, dots", "{n:3}.{n:3}.{d:4}"),
    ("US, trunk 1", "1-{n:3}-{n:3}-{d:4}"),
    ("GB, international", "+44 20 {d:4} {d:4}"),
    ("GB, trunk zero", "+44 (0)20 {d:4} {d:4}"),
    ("GB, mobile", "+44 7{d:3} {d:6}"),
    ("GB, E.164", "+447{d:9}"),
    ("GB, national", "020 {d:4} {d:4}"),
    ("GB, national mobile", "07{d:3} {d:6}"),
    ("DE, international", "+49 30 {d:7}"),
    ("DE, mobile", "+49 151 {d:8}"),
    ("DE, hyphen", "+49 89 {d:5}-{d:2}"),
    ("DE, slash", "+49 (0)40 / {d:7}"),
    ("DE, 00", "0049 30 {d:7}"),
    ("FR, international", "+33 6 {d:2} {d:2} {d:2} {d:2}"),
    ("FR, national", "06 {d:2} {d:2} {d:2} {d:2}"),
    ("FR, dots", "01.{d:2}.{d:2}.{d:2}.{d:2}"),
    ("ES", "+34 6{d:2} {d:3} {d:3}"),
    ("IT", "+39 06 {d:4} {d:4}"),
    ("NL", "+31 6 {d:8}"),
    ("CH", "+41 44 {d:3} {d:2} {d:2}"),
    ("SE", "+46 70-{d:3} {d:2} {d:2}"),
    ("PL", "+48 5{d:2} {d:3} {d:3}"),
    ("PT", "+351 91{d:1} {d:3} {d:3}"),
    ("IE", "+353 87 {d:3} {d:4}"),
    ("UA", "+380 44 {d:3} {d:4}"),
    ("RU", "+7 (495) {d:3}-{d:2}-{d:2}"),
    ("TR", "+90 532 {d:3} {d:2} {d:2}"),
    ("JP", "+81 3-{d:4}-{d:4}"),
    ("JP, mobile", "+81 90 {d:4} {d:4}"),
    ("CN", "+86 138 {d:4} {d:4}"),
    ("IN", "+91 98{d:3} {d:5}"),
    ("IN, hyphen", "+91-98{d:8}"),
    ("KR", "+82 10-{d:4}-{d:4}"),
    ("SG", "+65 9{d:3} {d:4}"),
    ("AU", "+61 4{d:2} {d:3} {d:3}"),
    ("BR", "+55 11 9{d:4}-{d:4}"),
    ("BR, brackets", "+55 (11) 9{d:4}-{d:4}"),
    ("MX", "+52 55 {d:4} {d:4}"),
    ("ZA", "+27 82 {d:3} {d:4}"),
    ("NG", "+234 803 {d:3} {d:4}"),
    ("IL", "+972 54-{d:3}-{d:4}"),
    ("AE", "+971 50 {d:3} {d:4}"),
];

/// Numbers that need a word in front.
const NAMED: &[(&str, &str)] = &[
    ("US, bare", "{n:3}{n:3}{d:4}"),
    ("US, spaces", "{n:3} {n:3} {d:4}"),
    ("DE, national", "030 {d:7}"),
    ("DE, slash", "030/{d:7}"),
    ("DE, mobile", "0151 {d:8}"),
    ("DE, bare", "0171{d:7}"),
    ("ES, national", "6{d:2} {d:3} {d:3}"),
    ("IT, mobile", "33{d:1} {d:7}"),
    ("CH, national", "044 {d:3} {d:2} {d:2}"),
    ("JP, national", "03-{d:4}-{d:4}"),
    ("CN, mobile", "138{d:8}"),
    ("IN, mobile", "98{d:3} {d:5}"),
    ("AU, national", "04{d:2} {d:3} {d:3}"),
    ("BR, national", "(11) 9{d:4}-{d:4}"),
];

fn dialed(draw: &mut Draw, picture: &str) -> String {
    // `{n:3}` is an area code or exchange: 2–9, and no service code such as 911.
    let mut picture = picture.to_owned();
    while picture.contains("{n:3}") {
        let code =
            format!("{}{}{}", draw.between(2, 9), draw.between(2, 9), draw.pick(&[0, 3, 4, 5, 6, 7, 8, 9]));
        picture = picture.replacen("{n:3}", &code, 1);
    }
    draw.picture(&picture)
}

/// Networks, the issuer's first digits, and the length of a number.
const CARDS: &[(&str, &str, usize)] = &[
    ("Visa", "4", 16),
    ("Mastercard", "51", 16),
    ("Mastercard", "55", 16),
    ("Mastercard 2", "2221", 16),
    ("Mastercard 2", "2720", 16),
    ("American Express", "34", 15),
    ("American Express", "37", 15),
    ("Discover", "6011", 16),
    ("Discover", "65", 16),
    ("Diners Club", "36", 14),
    ("Diners Club", "3005", 14),
    ("JCB", "3528", 16),
    ("JCB", "3589", 16),
    ("UnionPay", "62", 16),
    ("UnionPay 19", "62", 19),
    ("Maestro", "6759", 16),
    ("Maestro", "5018", 16),
    ("Mir", "2200", 16),
    ("RuPay", "6521", 16),
];

fn card(draw: &mut Draw) -> (&'static str, String) {
    let (network, prefix, length) = draw.pick(CARDS);
    let mut number = prefix.to_owned() + &draw.picture(&format!("{{d:{}}}", length - prefix.len() - 1));
    // Luhn: the digit that makes the sum a multiple of ten.
    let doubled = |digit: u32| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let digits = number.chars().rev().filter_map(|digit| digit.to_digit(10));
    let sum: u32 =
        digits.enumerate().map(|(at, digit)| if at % 2 == 0 { doubled(digit) } else { digit }).sum();
    number.push_str(&((10 - sum % 10) % 10).to_string());
    let groups: &[usize] = match length {
        14 => &[4, 6, 4],
        15 => &[4, 6, 5],
        16 => &[4, 4, 4, 4],
        _ => &[4, 4, 4, 4, 3],
    };
    let separator = draw.pick(&["", "", " ", "-"]);
    let mut from = 0;
    let grouped = groups.iter().map(|group| {
        from += group;
        &number[from - group..from]
    });
    (network, grouped.collect::<Vec<_>>().join(separator))
}

/// Countries and their accounts as the registry of ISO 13616 pictures them.
const ACCOUNTS: &[(&str, &str)] = &[
    ("DE", "{d:18}"),
    ("GB", "{u:4}{d:14}"),
    ("FR", "{d:10}{U:11}{d:2}"),
    ("ES", "{d:20}"),
    ("IT", "{u:1}{d:10}{U:12}"),
    ("NL", "{u:4}{d:10}"),
    ("BE", "{d:12}"),
    ("CH", "{d:5}{U:12}"),
    ("AT", "{d:16}"),
    ("PL", "{d:24}"),
    ("SE", "{d:20}"),
    ("NO", "{d:11}"),
    ("DK", "{d:14}"),
    ("PT", "{d:21}"),
    ("IE", "{u:4}{d:14}"),
    ("TR", "{d:5}0{U:16}"),
    ("BR", "{d:23}{u:1}{U:1}"),
];

fn iban(draw: &mut Draw) -> (&'static str, String) {
    let (country, picture) = draw.pick(ACCOUNTS);
    let body = draw.picture(picture);
    let value = |text: &str| {
        text.bytes().fold(0_u32, |rest, byte| match byte {
            b'0'..=b'9' => (rest * 10 + u32::from(byte - b'0')) % 97,
            letter => (rest * 100 + u32::from(letter - b'A') + 10) % 97,
        })
    };
    let whole = format!("{country}{:02}{body}", 98 - value(&format!("{body}{country}00")));
    if draw.chance(2) {
        return (country, whole);
    }
    let groups: Vec<&str> =
        whole.as_bytes().chunks(4).map(|group| std::str::from_utf8(group).expect("ASCII")).collect();
    (country, groups.join(" "))
}

fn national_id(draw: &mut Draw) -> (&'static str, String) {
    match draw.below(4) {
        0 => {
            let (area, group, serial) = (draw.between(1, 665), draw.between(1, 99), draw.between(1, 9999));
            ("US social security", format!("{area:03}-{group:02}-{serial:04}"))
        }
        1 => {
            let (pair, spaced) = (draw.pick(&["AB", "CE", "JK", "PL", "WM", "SH"]), draw.chance(2));
            let picture = if spaced { " {d:2} {d:2} {d:2} " } else { "{d:6}" };
            let suffix = draw.pick(&["A", "B", "C", "D"]);
            ("GB national insurance", format!("{pair}{}{suffix}", draw.picture(picture)))
        }
        _ => {
            let mut digits: Vec<u32> = (0..9).map(|_| draw.below(10) as u32).collect();
            for _ in 0..2 {
                let length = digits.len() as u32;
                let sum: u32 =
                    digits.iter().zip((2..=length + 1).rev()).map(|(digit, weight)| digit * weight).sum();
                digits.push(if sum % 11 < 2 { 0 } else { 11 - sum % 11 });
            }
            let text: String = digits.iter().filter_map(|digit| char::from_digit(*digit, 10)).collect();
            ("BR CPF", format!("{}.{}.{}-{}", &text[..3], &text[3..6], &text[6..9], &text[9..]))
        }
    }
}

/// An address that somebody has: none of the blocks that are set aside.
fn ip(draw: &mut Draw) -> (&'static str, String) {
    if draw.chance(3) {
        let mut groups = [0_u16; 8];
        groups[0] = draw.pick(&[0x2a00, 0x2600, 0x2a02, 0x2404, 0x2003, 0x2606]);
        let tail = draw.pick(&[3, 7]);
        for group in groups.iter_mut().skip(1).take(tail) {
            *group = draw.between(1, 0xffff) as u16;
        }
        groups[7] = draw.between(1, 0xffff) as u16;
        let text = Ipv6Addr::from(groups).to_string();
        return if draw.chance(4) { ("IPv6, upper case", text.to_uppercase()) } else { ("IPv6", text) };
    }
    let first = draw.pick(&[5, 8, 23, 34, 52, 78, 80, 93, 104, 142, 151, 176, 185, 212, 217]);
    let address =
        Ipv4Addr::new(first, draw.below(256) as u8, draw.below(256) as u8, draw.between(1, 254) as u8);
    ("IPv4", address.to_string())
}

/// `count` of each kind; telephone numbers by form.
pub fn planted(draw: &mut Draw, count: usize) -> Vec<Planted> {
    let mut out = Vec::new();
    let around = |draw: &mut Draw, own: &[super::carriers::Carrier]| {
        if draw.chance(2) { ANY.to_vec() } else { own.to_vec() }
    };
    for _ in 0..count {
        let (form, value) = email(draw);
        let carriers = around(draw, EMAIL);
        out.push(carried(draw, ("e-mail addresses", form, Kind::Email), &carriers, &value));
        let (form, value) = card(draw);
        out.push(carried(draw, ("payment cards", form, Kind::Card), ANY, &value));
        let (form, value) = ip(draw);
        let carriers = around(draw, IP);
        out.push(carried(draw, ("IP addresses", form, Kind::IpAddress), &carriers, &value));
        let (form, value) = iban(draw);
        out.push(carried(draw, ("bank accounts (IBAN)", form, Kind::Iban), ANY, &value));
        let (form, value) = national_id(draw);
        out.push(carried(draw, ("national ids", form, Kind::NationalId), ANY, &value));
    }
    for (form, picture) in DIALED {
        for _ in 0..count.div_ceil(DIALED.len()) {
            let value = dialed(draw, picture);
            let carriers = around(draw, PHONE);
            out.push(carried(draw, ("telephone numbers", form, Kind::Phone), &carriers, &value));
        }
    }
    for (form, picture) in NAMED {
        for _ in 0..count.div_ceil(DIALED.len()) {
            let value = dialed(draw, picture);
            out.push(carried(
                draw,
                ("telephone numbers", &format!("{form}, named"), Kind::Phone),
                PHONE,
                &value,
            ));
        }
    }
    out
}
