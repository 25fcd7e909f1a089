//! Secrets that show by their own shape: provider keys, tokens, private keys, URLs with passwords.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use super::companions::companion;
use super::find::Hit;
use super::kind::Kind;
use super::token::{ends_token, is_word, looks_random, starts_token};

/// A provider's key: what it begins with and how many characters of the key alphabet follow.
struct Shape {
    prefix: &'static str,
    /// `[A-Za-z0-9_-]`, or with `false` `[A-Za-z0-9_]`.
    dashes: bool,
    least: usize,
}

impl Shape {
    /// One past the last character of the key's alphabet from `from` on.
    fn tail_end(&self, bytes: &[u8], from: usize) -> usize {
        let in_key = |byte: u8| {
            is_word(byte)
                || self.dashes && byte == b'-'
                || self.prefix == "SG." && byte == b'.'
                || self.prefix.starts_with("hooks.") && byte == b'/'
        };
        from + bytes[from..].iter().take(TOKEN_MAX).take_while(|byte| in_key(**byte)).count()
    }

    /// Whether a tail is a key's: `sk-xxxxxxxxxxxxxxxxxxxx` in a manual is none.
    fn fits(&self, tail: &[u8]) -> bool {
        match self.prefix {
            "AKIA" | "ASIA" => {
                tail.len() == self.least
                    && tail.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
            }
            // The one prefix that also ends words: `sk-learn-pipeline-step-12` has no random part.
            "sk-" => tail.len() >= self.least && tail.split(|byte| *byte == b'-').any(looks_random),
            // A Twilio account or key: a digest in lower case, as no constant's name is.
            "AC" | "SK" => {
                tail.len() == self.least
                    && tail.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                    && is_varied(tail)
            }
            // The prefix says it all; one key of thousands has no digit.
            prefix if prefix.starts_with("sk_") || prefix.starts_with("rk_") => {
                tail.len() >= self.least && is_varied(tail)
            }
            _ => {
                tail.len() >= self.least
                    && tail.iter().any(u8::is_ascii_digit)
                    && tail.iter().any(u8::is_ascii_alphabetic)
            }
        }
    }
}

/// Whether a tail is no filler (`xxxxxxxx`, `your_key_here_x`).
fn is_varied(tail: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in tail {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count() >= 6 && !tail.contains(&b'_')
}

const fn shape(prefix: &'static str, dashes: bool, least: usize) -> Shape {
    Shape { prefix, dashes, least }
}

/// Shapes of keys, from the providers' documentation; a longer prefix before its own beginning.
const SHAPES: &[Shape] = &[
    shape("sk-ant-", true, 20),
    shape("sk-", true, 20),
    shape("sk_live_", false, 16),
    shape("sk_test_", false, 16),
    shape("rk_live_", false, 16),
    shape("rk_test_", false, 16),
    shape("whsec_", false, 24),
    shape("ghp_", false, 30),
    shape("gho_", false, 30),
    shape("ghu_", false, 30),
    shape("ghs_", false, 30),
    shape("ghr_", false, 30),
    shape("github_pat_", false, 22),
    shape("glpat-", true, 20),
    shape("AKIA", false, 16),
    shape("ASIA", false, 16),
    shape("AIza", true, 35),
    shape("ya29.", true, 20),
    shape("GOCSPX-", true, 20),
    shape("xoxb-", true, 20),
    shape("xoxp-", true, 20),
    shape("xoxa-", true, 20),
    shape("xoxe-", true, 20),
    shape("xoxr-", true, 20),
    shape("xoxs-", true, 20),
    shape("xapp-", true, 20),
    shape("hf_", false, 30),
    shape("npm_", false, 36),
    shape("pypi-AgE", true, 12),
    shape("gsk_", false, 40),
    shape("xai-", true, 40),
    shape("r8_", false, 36),
    shape("nvapi-", true, 40),
    shape("pplx-", true, 40),
    shape("tvly-", true, 20),
    shape("dop_v1_", false, 60),
    shape("shpat_", false, 32),
    shape("dckr_pat_", true, 20),
    shape("glsa_", false, 32),
    shape("lin_api_", false, 32),
    shape("ATATT3", true, 60),
    shape("hooks.slack.com/services/", false, 8),
    shape("SG.", true, 20),
    shape("sq0atp-", true, 20),
    shape("sq0csp-", true, 20),
    shape("AC", false, 32),
    shape("SK", false, 32),
    shape("AGE-SECRET-KEY-1", false, 50),
];

/// One pass over the text finds every prefix: an alternation of literals is searched with SIMD.
static ANCHORS: LazyLock<Regex> = LazyLock::new(|| {
    let mut literals: Vec<String> = SHAPES.iter().map(|shape| regex::escape(shape.prefix)).collect();
    literals.extend(["eyJ", "-----BEGIN", "earer ", "uthorization", "sig="].map(str::to_owned));
    Regex::new(&literals.join("|")).expect("literals are a pattern")
});

/// No key or header is longer; a bound keeps hostile text (`sk-sk-sk-…`) from costing its square.
const TOKEN_MAX: usize = 2048;

/// A private key's block is no longer than this; where its end is missing, the block is cut there.
const PRIVATE_KEY_MAX: usize = 16 * 1024;

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    // Neither a block nor a tail that was looked at is looked at again from within: what a part of a
    // tail could show, the whole of it shows.
    let (mut block_end, mut tail_end) = (0, 0);
    for anchor in ANCHORS.find_iter(bytes) {
        let at = anchor.start();
        if at < block_end {
            continue;
        }
        let hit = match anchor.as_bytes() {
            b"eyJ" => jwt(bytes, at),
            b"-----BEGIN" => private_key(bytes, at),
            b"earer " => bearer(bytes, at, anchor.end()),
            b"uthorization" => authorization(bytes, anchor.end()),
            b"sig=" => url_signature(bytes, at, anchor.end()),
            prefix if at >= tail_end && starts_token(bytes, at) => {
                let found = SHAPES.iter().find(|shape| shape.prefix.as_bytes() == prefix);
                found.and_then(|shape| {
                    tail_end = shape.tail_end(bytes, anchor.end());
                    shape.fits(&bytes[anchor.end()..tail_end]).then_some(Hit {
                        start: at,
                        end: tail_end,
                        kind: Kind::ApiKey,
                    })
                })
            }
            _ => None,
        };
        if let Some(hit) = hit {
            if hit.kind == Kind::PrivateKey {
                block_end = hit.end;
            }
            hits.push(hit);
            hits.extend(companion(bytes, &hit));
        }
    }
    for at in memmem::find_iter(bytes, b"://") {
        hits.extend(url_password(bytes, at + 3));
    }
}

/// Three base64url parts, the first two JSON objects (`eyJ` is `{"`); the last may be empty.
fn jwt(bytes: &[u8], at: usize) -> Option<Hit> {
    let inside_part = bytes[..at].last() == Some(&b'-');
    if inside_part || !starts_token(bytes, at) {
        return None;
    }
    let part = |from: usize| {
        bytes[from..].iter().take_while(|byte| is_word(**byte) || **byte == b'-').count() + from
    };
    let header = part(at);
    if header - at < 12 || bytes.get(header) != Some(&b'.') || !bytes[header + 1..].starts_with(b"eyJ") {
        return None;
    }
    let mut end = part(header + 1);
    if bytes.get(end) == Some(&b'.') {
        end = part(end + 1);
    }
    Some(Hit { start: at, end, kind: Kind::Jwt })
}

fn private_key(bytes: &[u8], at: usize) -> Option<Hit> {
    let block = &bytes[at..bytes.len().min(at + PRIVATE_KEY_MAX)];
    let line = &block[..block.len().min(64)];
    memmem::find(line, b"PRIVATE KEY")?;
    let end = match memmem::find(block, b"-----END") {
        Some(end) => {
            let label = block[end + 8..].iter().take_while(|byte| is_word(**byte) || **byte == b' ').count();
            let dashes = block[end + 8 + label..].iter().take_while(|byte| **byte == b'-').count();
            end + 8 + label + dashes
        }
        // Cut off: all that could still be the key, escapes of line ends included.
        None => block.iter().take_while(|byte| is_word(**byte) || b"+/=-\\ \r\n:,.".contains(byte)).count(),
    };
    Some(Hit { start: at, end: at + end, kind: Kind::PrivateKey })
}

/// `Bearer` and what looks like a token.
fn bearer(bytes: &[u8], at: usize, value_at: usize) -> Option<Hit> {
    let word_at = at.checked_sub(1)?;
    if !matches!(bytes[word_at], b'B' | b'b') || !starts_token(bytes, word_at) {
        return None;
    }
    let end = header_value(bytes, value_at);
    looks_random(&bytes[value_at..end]).then_some(Hit { start: value_at, end, kind: Kind::Token })
}

/// The credentials of an `Authorization` header, after its scheme.
fn authorization(bytes: &[u8], after: usize) -> Option<Hit> {
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
                && value.iter().any(|byte| byte.is_ascii_digit() || *byte == b'=');
            return real.then_some(Hit { start: at, end, kind: Kind::Token });
        }
    }
    let end = header_value(bytes, at);
    looks_random(&bytes[at..end]).then_some(Hit { start: at, end, kind: Kind::Token })
}

/// The signature of a URL that is its own permission (`?sv=…&sig=…`).
fn url_signature(bytes: &[u8], at: usize, value_at: usize) -> Option<Hit> {
    if !matches!(bytes[..at].last(), Some(b'?' | b'&' | b';')) {
        return None;
    }
    let in_value = |byte: u8| is_word(byte) || b"-+/=%".contains(&byte);
    let end = value_at + bytes[value_at..].iter().take(TOKEN_MAX).take_while(|byte| in_value(**byte)).count();
    let value = &bytes[value_at..end];
    (value.len() >= 20 && looks_random(value)).then_some(Hit { start: value_at, end, kind: Kind::Token })
}

fn header_value(bytes: &[u8], from: usize) -> usize {
    from + bytes[from..]
        .iter()
        .take(TOKEN_MAX)
        .take_while(|byte| is_word(**byte) || b"-._~+/=:".contains(byte))
        .count()
}

/// The password of `scheme://user:password@host`, or the token of `scheme://token@host`.
fn url_password(bytes: &[u8], from: usize) -> Option<Hit> {
    let authority = bytes[from..]
        .iter()
        .take(256)
        .take_while(|byte| byte.is_ascii_graphic() && !b"/?#\"'<>\\`|{}".contains(byte))
        .count();
    let authority = &bytes[from..from + authority];
    let user_info = &authority[..memchr::memrchr(b'@', authority)?];
    let start = match memchr::memchr(b':', user_info) {
        Some(colon) => colon + 1,
        None if looks_random(user_info) => 0,
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
