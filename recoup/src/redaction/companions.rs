//! Companions: secrets without a shape of their own that stand beside the id they belong to.
//!
//! An AWS secret is forty characters of base64 and a Twilio token thirty-two of hexadecimal; alone
//! they look like a piece of a picture and a digest.

use super::find::Hit;
use super::kind::Kind;

/// How far from its id a secret stands, in bytes: elsewhere in the same table or file of settings.
const REACH: usize = 4096;

/// What belongs to ids that were found, which are in order: runs of base64 characters that have the
/// length of a secret as a whole, near an id of the kind that has one.
pub(super) fn find(bytes: &[u8], ids: &[Hit]) -> Vec<Hit> {
    let of = |has: fn(&[u8]) -> bool| -> Vec<Hit> {
        ids.iter().filter(|id| has(&bytes[id.start..id.end])).copied().collect()
    };
    let mut found = Vec::new();
    secrets(bytes, &of(is_aws_id), 40, is_aws_secret, &mut found);
    secrets(bytes, &of(is_twilio_id), 32, is_hex, &mut found);
    found
}

/// One walk over what lies within reach, however many ids there are.
fn secrets(bytes: &[u8], ids: &[Hit], length: usize, fits: fn(&[u8]) -> bool, found: &mut Vec<Hit>) {
    let in_run = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let mut walked = 0;
    for id in ids {
        let mut at = id.start.saturating_sub(REACH).max(walked);
        // A run that was cut by the reach's beginning is longer than it looks.
        if at > walked {
            at += bytes[at..].iter().take_while(|byte| in_run(byte)).count();
        }
        let to = bytes.len().min(id.end + REACH);
        while at < to {
            let run = bytes[at..].iter().take_while(|byte| in_run(byte)).count();
            if run == length && fits(&bytes[at..at + run]) {
                found.push(Hit { start: at, end: at + run, kind: Kind::Secret });
            }
            at += run.max(1);
        }
        walked = walked.max(at);
    }
}

fn is_aws_id(word: &[u8]) -> bool {
    word.len() == 20 && (word.starts_with(b"AKIA") || word.starts_with(b"ASIA"))
}

fn is_twilio_id(word: &[u8]) -> bool {
    word.len() == 34 && (word.starts_with(b"AC") || word.starts_with(b"SK"))
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
        let far = format!("{id}\n{}\n{secret}", "region = eu-central-1\n".repeat(20));
        assert_eq!(found(&far), [id, secret]);
        assert_eq!(found(secret), [""; 0], "without an id it could be anything");
        let sid = format!("AC{}", "0123456789abcdef".repeat(2));
        let token = "fedcba98".repeat(4);
        assert_eq!(found(&format!("{sid}:{token}")), [sid.as_str(), token.as_str()]);
        assert_eq!(found(&format!("{id} at 9fceb02d0ae598e95dc970b74767f19372d61af8")), [id]);
    }
}
