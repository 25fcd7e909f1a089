//! Secrets that show by their own shape: keys, tokens, private keys, what headers and URLs carry.
//!
//! One pass over the text finds everything that one of them begins with or has in its middle.

use std::sync::LazyLock;

use memchr::memmem;
use regex::bytes::Regex;

use super::find::Hit;
use super::keys::SHAPES;
use super::kind::Kind;
use super::token::{is_word, starts_token};
use super::{companions, headers, keys};

/// What the search looks for: an alternation of literals is searched with SIMD or one automaton.
static ANCHORS: LazyLock<Regex> = LazyLock::new(|| {
    let literals = SHAPES
        .iter()
        .map(|shape| shape.prefix)
        .chain(["eyJ", "-----BEGIN", "earer ", "uthorization", "ookie", "sig=", "ignature="])
        .map(regex::escape);
    Regex::new(&literals.collect::<Vec<_>>().join("|")).expect("literals are a pattern")
});

/// No key or header is longer; a bound keeps hostile text (`sk-sk-sk-…`) from costing its square.
pub(super) const TOKEN_MAX: usize = 2048;

/// A private key's block is no longer than this; where its end is missing, the block is cut there.
const PRIVATE_KEY_MAX: usize = 16 * 1024;

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    let first = hits.len();
    // Neither a block nor a tail that was looked at is looked at again from within: what a part of a
    // tail could show, the whole of it shows.
    let (mut block_end, mut tail_end) = (0, 0);
    for anchor in ANCHORS.find_iter(bytes) {
        let (at, after) = (anchor.start(), anchor.end());
        if at < block_end {
            continue;
        }
        let hit = match anchor.as_bytes() {
            b"eyJ" => jwt(bytes, at),
            b"-----BEGIN" => private_key(bytes, at),
            b"earer " => headers::bearer(bytes, at, after),
            b"uthorization" => headers::authorization(bytes, after),
            b"ookie" => {
                headers::cookies(bytes, after, hits);
                None
            }
            b"sig=" | b"ignature=" => headers::url_signature(bytes, at, after),
            _ if at >= tail_end => {
                let (hit, end) = keys::key(bytes, at, after);
                if hit.is_some() || starts_token(bytes, at) {
                    tail_end = end;
                }
                hit
            }
            _ => None,
        };
        if let Some(hit) = hit {
            if hit.kind == Kind::PrivateKey {
                block_end = hit.end;
            }
            hits.push(hit);
        }
    }
    let companions = companions::find(bytes, &hits[first..]);
    hits.extend(companions);
    for at in memmem::find_iter(bytes, b"://") {
        hits.extend(headers::url_password(bytes, at + 3));
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
