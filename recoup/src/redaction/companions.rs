//! Companions: secrets without a shape of their own that stand beside the id they belong to.
//!
//! An AWS secret is forty characters of base64 and a Twilio token thirty-two of hexadecimal; alone
//! they look like a piece of a picture and a digest.

use super::find::Hit;
use super::kind::Kind;

/// How far from its id a secret stands: the next column, the next line of a file of settings.
const REACH: usize = 96;

/// The secret that stands beside an id, where the id is of a kind that has one.
pub(super) fn companion(bytes: &[u8], id: &Hit) -> Option<Hit> {
    let word = &bytes[id.start..id.end];
    let (length, fits): (usize, fn(&[u8]) -> bool) =
        if word.len() == 20 && (word.starts_with(b"AKIA") || word.starts_with(b"ASIA")) {
            (40, is_aws_secret)
        } else if word.len() == 34 && (word.starts_with(b"AC") || word.starts_with(b"SK")) {
            (32, is_hex)
        } else {
            return None;
        };
    let after = || find(bytes, id.end, bytes.len().min(id.end + REACH), length, fits);
    let before = || find(bytes, id.start.saturating_sub(REACH), id.start, length, fits);
    after().or_else(before)
}

/// The first run of base64 characters in a window that is of this length as a whole.
fn find(bytes: &[u8], from: usize, to: usize, length: usize, fits: fn(&[u8]) -> bool) -> Option<Hit> {
    let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let mut at = from;
    while at < to {
        // One character more than wanted tells that a run is too long.
        let run = bytes[at..].iter().take(REACH).take_while(|byte| in_run(byte)).count();
        let begins = at == 0 || !in_run(&bytes[at - 1]);
        if run == length && begins && fits(&bytes[at..at + run]) {
            return Some(Hit { start: at, end: at + run, kind: Kind::Secret });
        }
        at += run.max(1);
    }
    None
}

fn is_aws_secret(run: &[u8]) -> bool {
    let has = |class: fn(&u8) -> bool| run.iter().any(class);
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit)
}

fn is_hex(run: &[u8]) -> bool {
    run.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::super::find::find;

    /// What is found in a text.
    fn found(text: &str) -> Vec<&str> {
        find(text).iter().map(|hit| &text[hit.start..hit.end]).collect()
    }

    #[test]
    fn a_secret_goes_with_its_id() {
        let (id, secret) = ("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY");
        assert_eq!(found(&format!("{id},{secret}")), [id, secret]);
        assert_eq!(found(&format!("{secret}\n{id} is mine")), [secret, id]);
        assert_eq!(found(secret), [""; 0], "without an id it could be anything");
        let sid = format!("AC{}", "0123456789abcdef".repeat(2));
        let token = "fedcba98".repeat(4);
        assert_eq!(found(&format!("{sid}:{token}")), [sid.as_str(), token.as_str()]);
        assert_eq!(found(&format!("{id} at 9fceb02d0ae598e95dc970b74767f19372d61af8")), [id]);
    }
}
