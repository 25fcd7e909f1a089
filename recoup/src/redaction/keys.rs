//! Keys by their beginning: what providers put in front so that scanners can tell their keys.

use super::kind::Kind;
use super::token::{is_word, looks_random, many_letters, scattered, starts_token};
use super::{find::Hit, secrets::TOKEN_MAX};

/// What follows a prefix.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tail {
    /// `[0-9a-f]`, exactly so many: longer is somebody's digest.
    Hex,
    /// `[A-Z0-9]`, exactly so many.
    Upper,
    /// `[A-Za-z0-9_]`.
    Word,
    /// `[A-Za-z0-9_-]`.
    Dashed,
    /// The same in pieces joined by dots.
    Dotted,
    /// The same in pieces joined by `=`.
    Summed,
    /// A path of a URL.
    Path,
    /// Fourteen characters, a dot and a digest of 64.
    Pair,
    /// `[A-Za-z0-9_-]` behind a prefix that is a word too: only what no name and no blob looks like.
    Drawn,
}

/// A provider's key: what it begins with, and how many characters at least follow.
pub(super) struct Shape {
    pub prefix: &'static str,
    tail: Tail,
    least: usize,
}

const fn shape(prefix: &'static str, tail: Tail, least: usize) -> Shape {
    Shape { prefix, tail, least }
}

/// From the providers' documentation; a longer prefix before its own beginning.
pub(super) const SHAPES: &[Shape] = &[
    shape("sk-ant-", Tail::Dashed, 20),
    shape("sk-proj-", Tail::Dashed, 20),
    shape("sk-svcacct-", Tail::Dashed, 20),
    shape("sk-admin-", Tail::Dashed, 20),
    shape("sk-or-", Tail::Dashed, 20),
    shape("sk-lf-", Tail::Dashed, 36),
    shape("sk-", Tail::Drawn, 20),
    shape("sk_live_", Tail::Word, 16),
    shape("sk_test_", Tail::Word, 16),
    shape("sk_", Tail::Hex, 48),
    shape("rk_live_", Tail::Word, 16),
    shape("rk_test_", Tail::Word, 16),
    shape("whsec_", Tail::Word, 24),
    shape("ghp_", Tail::Word, 30),
    shape("gho_", Tail::Word, 30),
    shape("ghu_", Tail::Word, 30),
    shape("ghs_", Tail::Word, 30),
    shape("ghr_", Tail::Word, 30),
    shape("github_pat_", Tail::Word, 22),
    shape("glpat-", Tail::Dotted, 20),
    shape("gldt-", Tail::Dashed, 20),
    shape("glrt-", Tail::Dashed, 20),
    shape("glcbt-", Tail::Dashed, 20),
    shape("glptt-", Tail::Hex, 40),
    shape("AKIA", Tail::Upper, 16),
    shape("ASIA", Tail::Upper, 16),
    shape("LTAI", Tail::Word, 16),
    shape("AIza", Tail::Dashed, 35),
    shape("ya29.", Tail::Dashed, 20),
    shape("GOCSPX-", Tail::Dashed, 20),
    shape("1//0", Tail::Drawn, 40),
    shape("xoxe.xoxp-", Tail::Dashed, 20),
    shape("xoxe.xoxb-", Tail::Dashed, 20),
    shape("xoxa-", Tail::Dashed, 20),
    shape("xoxb-", Tail::Dashed, 20),
    shape("xoxe-", Tail::Dashed, 20),
    shape("xoxp-", Tail::Dashed, 20),
    shape("xoxr-", Tail::Dashed, 20),
    shape("xoxs-", Tail::Dashed, 20),
    shape("xapp-", Tail::Dashed, 20),
    shape("hooks.slack.com/services/", Tail::Path, 8),
    shape("discord.com/api/webhooks/", Tail::Path, 40),
    shape("discordapp.com/api/webhooks/", Tail::Path, 40),
    shape("hf_", Tail::Word, 30),
    shape("r8_", Tail::Word, 36),
    shape("gsk_", Tail::Word, 40),
    shape("xai-", Tail::Dashed, 40),
    shape("nvapi-", Tail::Dashed, 40),
    shape("pplx-", Tail::Dashed, 40),
    shape("tvly-", Tail::Dashed, 20),
    shape("pcsk_", Tail::Word, 40),
    shape("lsv2_", Tail::Word, 32),
    shape("csk-", Tail::Drawn, 40),
    shape("pa-", Tail::Drawn, 40),
    shape("fc-", Tail::Hex, 32),
    shape("e2b_", Tail::Hex, 40),
    shape("jina_", Tail::Dashed, 40),
    shape("npm_", Tail::Word, 36),
    shape("pypi-AgE", Tail::Dashed, 12),
    shape("rubygems_", Tail::Hex, 48),
    shape("cio", Tail::Drawn, 32),
    shape("CLOJARS_", Tail::Hex, 60),
    shape("dckr_pat_", Tail::Dashed, 20),
    shape("dop_v1_", Tail::Hex, 64),
    shape("doo_v1_", Tail::Hex, 64),
    shape("dor_v1_", Tail::Hex, 64),
    shape("HRKU-", Tail::Dashed, 36),
    shape("nfp_", Tail::Word, 36),
    shape("v1.0-", Tail::Drawn, 120),
    shape("sbp_", Tail::Hex, 40),
    shape("pscale_", Tail::Dashed, 32),
    shape("rnd_", Tail::Drawn, 24),
    shape("hvs.", Tail::Dashed, 60),
    shape("dp.pt.", Tail::Word, 40),
    shape("pul-", Tail::Hex, 40),
    shape("dapi", Tail::Hex, 32),
    shape("glsa_", Tail::Word, 32),
    shape("NRAK-", Tail::Upper, 27),
    shape("sntryu_", Tail::Hex, 64),
    shape("sntrys_", Tail::Dashed, 40),
    shape("dt0c01.", Tail::Dotted, 80),
    shape("phx_", Tail::Word, 40),
    shape("ATATT3", Tail::Summed, 60),
    shape("lin_api_", Tail::Word, 32),
    shape("ntn_", Tail::Word, 40),
    shape("figd_", Tail::Dashed, 40),
    shape("PMAK-", Tail::Dashed, 50),
    shape("CFPAT-", Tail::Dashed, 40),
    shape("shippo_", Tail::Word, 40),
    shape("EZAK", Tail::Drawn, 50),
    shape("duffel_", Tail::Dashed, 40),
    shape("rdme_", Tail::Word, 60),
    shape("sqp_", Tail::Hex, 40),
    shape("AKCp", Tail::Drawn, 60),
    shape("EAA", Tail::Drawn, 57),
    shape("sl.u.", Tail::Drawn, 100),
    shape("sl.", Tail::Drawn, 100),
    shape("pat", Tail::Pair, 79),
    shape("shpat_", Tail::Hex, 32),
    shape("shpca_", Tail::Hex, 32),
    shape("shppa_", Tail::Hex, 32),
    shape("shpss_", Tail::Hex, 32),
    shape("SG.", Tail::Dotted, 40),
    shape("key-", Tail::Hex, 32),
    shape("xkeysib-", Tail::Dashed, 64),
    shape("re_", Tail::Drawn, 32),
    shape("sq0atp-", Tail::Dashed, 20),
    shape("sq0csp-", Tail::Dashed, 20),
    shape("AC", Tail::Hex, 32),
    shape("SK", Tail::Hex, 32),
    shape("AGE-SECRET-KEY-1", Tail::Upper, 58),
];

impl Shape {
    /// One past the last character of the key's alphabet from `from` on.
    fn end(&self, bytes: &[u8], from: usize) -> usize {
        let joint = match self.tail {
            Tail::Dotted | Tail::Pair => b'.',
            Tail::Summed => b'=',
            Tail::Path => b'/',
            _ => b'-',
        };
        let dashed = !matches!(self.tail, Tail::Word | Tail::Hex | Tail::Upper);
        let in_key = |byte: u8| is_word(byte) || dashed && byte == b'-';
        let mut end = from;
        while let Some(byte) = bytes.get(end) {
            // A joint joins: the dot of a sentence's end is none.
            let joins = dashed && *byte == joint && bytes.get(end + 1).is_some_and(|next| in_key(*next));
            if !in_key(*byte) && !joins || end - from == TOKEN_MAX {
                break;
            }
            end += 1;
        }
        end
    }

    /// Whether a tail is a key's: `sk-xxxxxxxxxxxxxxxxxxxx` in a manual is none.
    fn fits(&self, tail: &[u8]) -> bool {
        match self.tail {
            Tail::Hex => {
                tail.len() == self.least
                    && tail.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
                    && is_varied(tail)
            }
            Tail::Upper => {
                tail.len() == self.least
                    && tail.iter().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
                    && is_varied(tail)
            }
            Tail::Pair => {
                tail.len() == self.least
                    && tail[14] == b'.'
                    && tail[..14].iter().all(u8::is_ascii_alphanumeric)
                    && tail[15..].iter().all(u8::is_ascii_hexdigit)
            }
            // `sk-learn-pipeline-step-12` has no random piece.
            Tail::Drawn => {
                let drawn = |piece: &[u8]| looks_random(piece) || scattered(piece);
                tail.len() >= self.least
                    && is_varied(tail)
                    && (tail.split(|byte| *byte == b'-').any(drawn) || self.least >= 40 && looks_random(tail))
            }
            _ => {
                tail.len() >= self.least
                    && (has_both(tail) || many_letters(tail) || self.prefix.contains("k_") && is_varied(tail))
            }
        }
    }

    /// Whether a key may begin in the middle of a word (`run_sk_live_…`): behind a name of one case, as no
    /// blob has it for long. A short prefix ends words itself (`ris` + `k-…`), so a `_` must stand before.
    fn may_be_glued(&self, before: &[u8]) -> bool {
        let name = before.iter().rev().take(NAME_MAX).take_while(|byte| is_word(**byte)).count();
        let name = &before[before.len() - name..];
        let of_one_case =
            !name.iter().any(u8::is_ascii_uppercase) || !name.iter().any(u8::is_ascii_lowercase);
        let apart = name.ends_with(b"_") || self.prefix.len() >= 4 && self.prefix.contains(['_', '-']);
        name.len() < NAME_MAX && name.first().is_some_and(u8::is_ascii_alphabetic) && of_one_case && apart
    }
}

/// A longer name than this is a blob.
const NAME_MAX: usize = 32;

/// The key whose prefix stands at `at..tail_at`, and one past all that was looked at.
pub(super) fn key(bytes: &[u8], at: usize, tail_at: usize) -> (Option<Hit>, usize) {
    let prefix = &bytes[at..tail_at];
    let Some(shape) = SHAPES.iter().find(|shape| shape.prefix.as_bytes() == prefix) else {
        return (None, tail_at);
    };
    // What stands before is looked at first: a tail may be long, and `SKSKSK…` is full of prefixes.
    if !starts_token(bytes, at) && !shape.may_be_glued(&bytes[..at]) {
        return (None, tail_at);
    }
    let end = shape.end(bytes, tail_at);
    let blob = shape.tail == Tail::Drawn && is_in_blob(bytes, at, end);
    let fits = shape.fits(&bytes[tail_at..end]);
    ((fits && !blob).then_some(Hit { start: at, end, kind: Kind::ApiKey }), end)
}

/// Whether base64 stands around: it goes on with what no key has, or has come a long way.
fn is_in_blob(bytes: &[u8], at: usize, end: usize) -> bool {
    let before = &bytes[at.saturating_sub(12)..at];
    let goes_on = matches!(bytes.get(end), Some(b'+' | b'/' | b'='));
    let in_blob = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    goes_on || before.len() == 12 && before.ends_with(b"+") && before.iter().all(in_blob)
}

fn has_both(tail: &[u8]) -> bool {
    tail.iter().any(u8::is_ascii_digit) && tail.iter().any(u8::is_ascii_alphabetic)
}

/// Whether a tail is no filler (`xxxxxxxx`, `your_key_here_x`).
fn is_varied(tail: &[u8]) -> bool {
    let mut seen = [false; 256];
    for byte in tail {
        seen[usize::from(*byte)] = true;
    }
    seen.iter().filter(|seen| **seen).count() >= 6 && !tail.split(|byte| *byte == b'_').all(is_plain_word)
}

fn is_plain_word(piece: &[u8]) -> bool {
    piece.len() < 12 && piece.iter().all(u8::is_ascii_alphabetic)
}
