//! Check digits: what tells a card or an account from any other long number.

/// The Luhn check of ISO/IEC 7812-1 over ASCII digits.
pub(super) fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| {
            let value = u32::from(digit - b'0');
            match (index % 2, value * 2) {
                (0, _) => value,
                (_, doubled) if doubled > 9 => doubled - 9,
                (_, doubled) => doubled,
            }
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether digits have the prefix and length of a card network in use.
pub(super) fn is_card(digits: &[u8]) -> bool {
    let prefix = |length: usize| {
        digits.iter().take(length).fold(0_u32, |value, digit| value * 10 + u32::from(digit - b'0'))
    };
    let network = match digits.len() {
        14 => matches!(prefix(2), 36 | 38) || matches!(prefix(3), 300..=305),
        15 => matches!(prefix(2), 34 | 37),
        16 => {
            prefix(1) == 4
                || matches!(prefix(2), 51..=55 | 62 | 65)
                || matches!(prefix(3), 644..=649)
                || matches!(
                    prefix(4),
                    2200..=2204 | 2221..=2720 | 3528..=3589 | 5018 | 5020 | 5038 | 5893 | 6011 | 6304 | 6759 | 6761..=6763
                )
        }
        // A card of UnionPay; with 17 or 18 digits it would be every hundredth id of a message too.
        19 => prefix(2) == 62,
        _ => false,
    };
    network && luhn(digits)
}

/// ISO 13616: the country's length and the mod-97 check of ISO 7064, over `[A-Z0-9]`.
pub(super) fn is_iban(account: &[u8]) -> bool {
    let length = match account.get(..2) {
        Some(b"NO") => 15,
        Some(b"BE") => 16,
        Some(b"DK" | b"FI" | b"FO" | b"GL" | b"NL") => 18,
        Some(b"MK" | b"SI") => 19,
        Some(b"AT" | b"BA" | b"EE" | b"KZ" | b"LT" | b"LU" | b"XK") => 20,
        Some(b"CH" | b"CR" | b"HR" | b"LI" | b"LV") => 21,
        Some(b"BG" | b"BH" | b"DE" | b"GB" | b"GE" | b"IE" | b"ME" | b"RS") => 22,
        Some(b"AE" | b"GI" | b"IL" | b"IQ" | b"TL") => 23,
        Some(b"AD" | b"CZ" | b"ES" | b"MD" | b"PK" | b"RO" | b"SA" | b"SE" | b"SK" | b"TN" | b"VG") => 24,
        Some(b"PT" | b"ST") => 25,
        Some(b"IS" | b"TR") => 26,
        Some(b"FR" | b"GR" | b"IT" | b"MC" | b"MR" | b"SM") => 27,
        Some(b"AL" | b"AZ" | b"CY" | b"DO" | b"GT" | b"HU" | b"LB" | b"PL") => 28,
        Some(b"BR" | b"PS" | b"QA" | b"UA") => 29,
        Some(b"JO" | b"KW" | b"MU") => 30,
        Some(b"MT" | b"SC") => 31,
        _ => return false,
    };
    if account.len() != length {
        return false;
    }
    let (head, body) = account.split_at(4);
    let remainder = body.iter().chain(head).fold(0_u32, |remainder, byte| match byte {
        b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
        _ => (remainder * 100 + u32::from(byte - b'A') + 10) % 97,
    });
    remainder == 1
}

/// The two check digits of a Brazilian CPF, over its eleven ASCII digits.
pub(super) fn is_cpf(digits: &[u8; 11]) -> bool {
    let check = |length: u32| {
        let sum: u32 = digits
            .iter()
            .zip((2..=length + 1).rev())
            .map(|(digit, weight)| u32::from(digit - b'0') * weight)
            .sum();
        match sum * 10 % 11 {
            10 => 0,
            rest => rest,
        }
    };
    check(9) == u32::from(digits[9] - b'0')
        && check(10) == u32::from(digits[10] - b'0')
        && digits.iter().any(|digit| *digit != digits[0])
}

#[cfg(test)]
mod tests {
    use super::{is_card, is_cpf, is_iban};

    #[test]
    fn published_test_numbers_pass_and_a_changed_digit_does_not() {
        for card in
            ["4111111111111111", "378282246310005", "5555555555554444", "6011111111111117", "36227206271667"]
        {
            assert!(is_card(card.as_bytes()), "{card}");
        }
        assert!(!is_card(b"4111111111111112"));
        assert!(!is_card(b"1700000000000000"));
        assert!(is_iban(b"GB82WEST12345698765432"));
        assert!(is_iban(b"DE89370400440532013000"));
        assert!(!is_iban(b"GB83WEST12345698765432"));
        assert!(is_cpf(b"52998224725"));
        assert!(!is_cpf(b"52998224726"));
    }
}
