//! Finding: all that must go from one text, as ranges that do not overlap.

use super::kind::Kind;
use super::{assigned, commands, infix, numbers, personal, secrets};

/// A range of a text that must go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What it is.
    pub kind: Kind,
}

/// Rounds after which a text is taken as done; each round but the last finds something that stood
/// hidden beside an earlier hit, which ordinary text never has.
const ROUNDS_MAX: usize = 8;

/// Every hit, in order, disjoint and complete: with each replaced by a placeholder, nothing is found.
///
/// What borders on a hit may only show once that is gone (`4111…1111` glued to an address), so the
/// text is searched again with placeholders in, until nothing new turns up.
pub(super) fn find(text: &str) -> Vec<Hit> {
    let mut hits = scan(text);
    for _ in 0..ROUNDS_MAX {
        if hits.is_empty() {
            break;
        }
        let (replaced, spans) = with_marks(text, &hits);
        let fresh = scan(&replaced);
        if fresh.is_empty() {
            break;
        }
        hits.extend(fresh.into_iter().map(|hit| Hit {
            start: original(&spans, hit.start, false),
            end: original(&spans, hit.end, true),
            kind: hit.kind,
        }));
        hits = disjoint(hits);
    }
    hits
}

fn scan(text: &str) -> Vec<Hit> {
    let mut hits = Vec::new();
    secrets::find(text, &mut hits);
    infix::find(text, &mut hits);
    assigned::find(text, &mut hits);
    commands::find(text, &mut hits);
    personal::find(text, &mut hits);
    numbers::find(text, &mut hits);
    disjoint(hits)
}

/// Merges hits that overlap into one of the kind that begins first.
fn disjoint(mut hits: Vec<Hit>) -> Vec<Hit> {
    hits.sort_unstable_by_key(|hit| (hit.start, hit.kind, hit.end));
    let mut merged: Vec<Hit> = Vec::with_capacity(hits.len());
    for hit in hits {
        match merged.last_mut() {
            Some(last) if hit.start < last.end => {
                // `://user:password@host.org`: the password ends where its finder says.
                if !(last.kind == Kind::Password && hit.kind == Kind::Email) {
                    last.end = last.end.max(hit.end);
                }
            }
            _ => merged.push(hit),
        }
    }
    merged
}

/// The text with marks for the hits, and each mark's range beside the hit's.
fn with_marks(text: &str, hits: &[Hit]) -> (String, Vec<(Hit, usize, usize)>) {
    let mut out = String::with_capacity(text.len());
    let mut spans = Vec::with_capacity(hits.len());
    let mut from = 0;
    for hit in hits {
        out.push_str(&text[from..hit.start]);
        let start = out.len();
        out.push('<');
        out.push_str(hit.kind.word());
        out.push_str("_1>");
        spans.push((*hit, start, out.len()));
        from = hit.end;
    }
    out.push_str(&text[from..]);
    (out, spans)
}

/// Where a byte of the marked text stands in the original; a mark counts as a whole.
fn original(spans: &[(Hit, usize, usize)], at: usize, is_end: bool) -> usize {
    let mut shift_from = (0, 0);
    for (hit, start, end) in spans {
        if at < *start || at == *start && is_end {
            break;
        }
        if at < *end {
            return if is_end { hit.end } else { hit.start };
        }
        shift_from = (hit.end, *end);
    }
    shift_from.0 + (at - shift_from.1)
}

#[cfg(test)]
mod tests {
    use super::find;

    fn found(text: &str) -> Vec<(&'static str, &str)> {
        find(text).iter().map(|hit| (hit.kind.word(), &text[hit.start..hit.end])).collect()
    }

    #[test]
    fn secrets_by_shape() {
        for (word, text) in [
            ("API_KEY", "sk-proj-abcD3fghIjkLmn0pQrsTuv"),
            ("API_KEY", "sk-ant-api03-abcdefgh1jklmnop-qrstuv"),
            ("API_KEY", "ghp_0123456789abcdefABCDEF0123456789abcd"),
            ("API_KEY", "github_pat_11ABCDEFG0abcdefghijkl_0123456789"),
            ("API_KEY", "AKIAIOSFODNN7EXAMPLE"),
            ("API_KEY", "AIzaSyA1234567890abcdefghijklmnopqrstuv"),
            ("API_KEY", "xoxb-123456789012-abcdefABCDEF"),
            ("API_KEY", "hf_abcdefghijklmnopqrstuvwxyz0123456789"),
            ("API_KEY", "npm_abcdefghijklmnopqrstuvwxyz0123456789"),
            ("API_KEY", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"),
            ("JWT", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1g"),
        ] {
            for around in ["{}", "key {}\n", "\"{}\",", "\\n{}\\n", "({})."] {
                let full = around.replace("{}", text);
                assert_eq!(found(&full), [(word, text)], "{full}");
            }
        }
        let block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow/+8=\n-----END RSA PRIVATE KEY-----";
        assert_eq!(found(&format!("a\n{block}\nb")), [("PRIVATE_KEY", block)]);
        assert_eq!(found("-H 'Authorization: Bearer q8Zr2LmX0vTn5KdW'"), [("TOKEN", "q8Zr2LmX0vTn5KdW")]);
        assert_eq!(found("postgres://app:s3cr3t@db.example.com/x"), [("PASSWORD", "s3cr3t")]);
    }

    #[test]
    fn personal_data() {
        for (word, text) in [
            ("EMAIL", "mia.li+x@example.com"),
            ("PHONE", "(415) 555-0132"),
            ("PHONE", "+44 20 7946 0958"),
            ("PHONE", "+14155550132"),
            ("PHONE", "+1 (415) 555-0132"),
            ("PHONE", "415-555-0132"),
            ("PHONE", "020 7946 0958"),
            ("PHONE", "0161 496 0000"),
            ("PHONE", "07700 900123"),
            ("PHONE", "+44 (0)20 7946 0958"),
            ("PHONE", "+33 1 23 45 67 89"),
            ("PHONE", "+49 30 1234567"),
            ("CARD", "4111 1111 1111 1111"),
            ("CARD", "4111111111111111"),
            ("NATIONAL_ID", "078-05-1120"),
            ("NATIONAL_ID", "AB123456C"),
            ("NATIONAL_ID", "529.982.247-25"),
            ("IBAN", "GB82 WEST 1234 5698 7654 32"),
            ("IBAN", "DE89370400440532013000"),
            ("IP", "93.184.216.34"),
            ("IP", "2606:2800:220:1:248:1893:25c8:1946"),
        ] {
            for around in ["at {} today", "\"{}\"", "\\n{}\\n", "{}, and"] {
                let full = around.replace("{}", text);
                assert_eq!(found(&full), [(word, text)], "{full}");
            }
        }
        assert_eq!(found(r#"{"phone": "4155550132"}"#), [("PHONE", "4155550132")]);
    }

    #[test]
    fn ids_hashes_versions_and_times_are_left_alone() {
        for text in [
            "2f1c1e0a-9f70-4b8e-a9a1-0c2d3e4f5a6b",
            "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
            "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "order #W1234567, item 6086499569, user mia_li_3668, credit_card_4421486",
            "2024-05-15T15:00:00.123456Z 1715785200 1715785200123 1715785200123456789",
            "version 10.20.30.40, Chrome/120.0.6099.109, pkg==10.20.30.40, 127.0.0.1 192.168.0.17 0.0.0.0 255.255.255.0",
            "call_oIHaVZ1ZBjKdXqmL0hYc toolu_01A09q90qw90lq917835lq9 chatcmpl-9abcDEF123",
            "git@github.com:owner/name.git icon@2x.png @pytest.mark.skip pkg@1.2.3 x @ y q@k.T",
            "sk-learn-pipeline-step-number-12 sk-xxxxxxxxxxxxxxxxxxxxxxxx task-1234567890abcdefghij",
            "@@ -123,45 +678,9012 @@ def f(x): 3.14159265358979 1e-10 0x7f3a9c",
            "std::net::Ipv6Addr fe80::1 12:34:56 00:1b:44:11:3a:b7",
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
            "numpy  1.26.4.1\nnvidia-cufft  12.3.1.170\n \"iphone\": \"544007664\"",
            "3 files changed +1234 -5678, UTC+1 2024-05-15\n+1234567890",
            "HAT170 JFK-SEA 2024-05-15 $1,234,567.89 tel aviv 5-10 (123) 12-34-56",
            "toolbox-202 200 300 4000 500-600-700 10.1145/3377811.3380364",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    /// Written in two pieces, so that nobody's scanner takes them for real ones.
    #[test]
    fn keys_are_known_by_their_prefix() {
        for (prefix, tail) in [
            ("sk_live_", "aBcDeFgHiJkLmNoPqRsTuVwX"),
            ("rk_live_", "aBcDeFgHiJkLmNoPqRsTuVwX"),
            ("pypi-AgEI", "cHlwaS5vcmcCJDU4NzQ3"),
            ("sq0atp-", "Ab1_cdefghijklmnopqrst"),
            ("sq0csp-", "Ab1cdefghijklmnopqrst-uvwxyz0123456789abcdefg"),
            ("SG.", "abcdefghij0123456789kl.mnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRS"),
            ("glpat-", "abcDEF123ghiJKL456mn"),
            ("xoxb-", "123456789012-abcdefABCDEF"),
            ("dop_v1_", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
            ("AC", "0123456789abcdef0123456789abcdef"),
        ] {
            let key = format!("{prefix}{tail}");
            assert_eq!(found(&format!("at {key}, and")), [("API_KEY", key.as_str())]);
        }
        let signature = "aBc1dEf2gHi3jKl4mNo5pQr6sTu7vWx8%2F%2ByZ90%3D";
        let url = format!("https://a.example/c?sv=2022-11-02&sr=b&sig={signature}&se=2030");
        assert_eq!(found(&url), [("TOKEN", signature)]);
        for text in [
            "sk_live_xxxxxxxxxxxxxxxxxxxxxxxx",
            "rk_test_your_key_goes_here_x",
            "f(x, sig=SIGNATURE_V4_2022_ab)",
        ] {
            assert_eq!(found(text), [], "{text}");
        }
    }

    #[test]
    fn what_borders_on_a_hit_goes_too() {
        for text in
            ["mia@example.com@example.org", "4111111111111111@example.com", "+14155550132-078-05-1120"]
        {
            let (replaced, _) = super::with_marks(text, &find(text));
            assert_eq!(found(&replaced), [], "{text} → {replaced}");
        }
    }
}
