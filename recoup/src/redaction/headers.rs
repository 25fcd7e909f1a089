//! What headers and URLs carry: bearer tokens, credentials, cookies, signatures, passwords.

use super::find::Hit;
use super::kind::Kind;
use super::secrets::TOKEN_MAX;
use super::token::{ends_token, is_word, looks_drawn, looks_random, starts_token};

/// `Bearer` and what looks like a token.
pub(super) fn bearer(bytes: &[u8], at: usize, value_at: usize) -> Option<Hit> {
    let word_at = at.checked_sub(1)?;
    if !matches!(bytes[word_at], b'B' | b'b') || !starts_token(bytes, word_at) {
        return None;
    }
    let end = header_value(bytes, value_at);
    looks_drawn(&bytes[value_at..end]).then_some(Hit { start: value_at, end, kind: Kind::Token })
}

/// The credentials of an `Authorization` header, after its scheme.
pub(super) fn authorization(bytes: &[u8], after: usize) -> Option<Hit> {
    let is_separator = |byte: &u8| b"\"'\\ :=".contains(byte);
    let mut at = after + bytes[after..].iter().take(8).take_while(|byte| is_separator(byte)).count();
    if at == after {
        return None;
    }
    for scheme in ["basic ", "bearer ", "token ", "apikey ", "bot "] {
        if bytes[at..].get(..scheme.len()).is_some_and(|word| word.eq_ignore_ascii_case(scheme.as_bytes())) {
            at += scheme.len();
            let end = header_value(bytes, at);
            let value = &bytes[at..end];
            let real = value.len() >= 12
                && value.iter().any(u8::is_ascii_alphabetic)
                && (value.iter().any(|byte| byte.is_ascii_digit() || *byte == b'=') || looks_drawn(value));
            return real.then_some(Hit { start: at, end, kind: Kind::Token });
        }
    }
    let end = header_value(bytes, at);
    looks_drawn(&bytes[at..end]).then_some(Hit { start: at, end, kind: Kind::Token })
}

/// The values of a `Cookie` or `Set-Cookie` header that open a session.
pub(super) fn cookies(bytes: &[u8], after: usize, hits: &mut Vec<Hit>) {
    let separator = bytes[after..].iter().take(6).take_while(|byte| b"\"'\\ :".contains(byte)).count();
    if !bytes[after..after + separator].contains(&b':') {
        return;
    }
    let from = after + separator;
    let line = bytes[from..].iter().take(TOKEN_MAX).take_while(|byte| !b"\r\n\"'\\".contains(byte)).count();
    let mut at = from;
    for pair in bytes[from..from + line].split(|byte| *byte == b';') {
        if let Some(equals) = memchr::memchr(b'=', pair) {
            let value = pair[equals + 1..].trim_ascii_end();
            let start = at + equals + 1;
            let end = start + value.len();
            if looks_drawn(value) && value.iter().all(|byte| is_word(*byte) || b"-._~+/=%:".contains(byte)) {
                hits.push(Hit { start, end, kind: Kind::Token });
            }
        }
        at += pair.len() + 1;
    }
}

/// The signature of a URL that is its own permission (`?sv=…&sig=…`, `&X-Amz-Signature=…`).
pub(super) fn url_signature(bytes: &[u8], at: usize, value_at: usize) -> Option<Hit> {
    let name = bytes[..at].iter().rev().take(12).take_while(|byte| is_word(**byte) || **byte == b'-').count();
    if !matches!(bytes[..at - name].last(), Some(b'?' | b'&' | b';')) {
        return None;
    }
    let in_value = |byte: u8| is_word(byte) || b"-+/=%".contains(&byte);
    let end = value_at + bytes[value_at..].iter().take(TOKEN_MAX).take_while(|byte| in_value(**byte)).count();
    let value = &bytes[value_at..end];
    (value.len() >= 20 && looks_drawn(value)).then_some(Hit { start: value_at, end, kind: Kind::Token })
}

fn header_value(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..]
        .iter()
        .take(TOKEN_MAX)
        .take_while(|byte| is_word(**byte) || b"-._~+/=:".contains(byte))
        .count()
}

/// The password of `scheme://user:password@host`, or the token of `scheme://token@host`.
pub(super) fn url_password(bytes: &[u8], from: usize) -> Option<Hit> {
    let authority = bytes[from..]
        .iter()
        .take(256)
        .take_while(|byte| byte.is_ascii_graphic() && !b"/?\"'<>\\`|{}".contains(byte))
        .count();
    let authority = &bytes[from..from + authority];
    let user_info = &authority[..memchr::memrchr(b'@', authority)?];
    let start = match memchr::memchr(b':', user_info) {
        Some(colon) => colon + 1,
        None if looks_random(user_info) || looks_drawn(user_info) => 0,
        None => return None,
    };
    let password = &user_info[start..];
    // A variable or a mask is no password.
    let written_out = password.first().is_some_and(|first| !b"$%*[(".contains(first));
    (written_out && ends_token(bytes, from + user_info.len())).then_some(Hit {
        start: from + start,
        end: from + user_info.len(),
        kind: Kind::Password,
    })
}
