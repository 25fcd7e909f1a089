//! Secrets that show by the name they are assigned to: `api_key = "…"`, `"password": "…"`.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::find::Hit;
use super::kind::Kind;
use super::token::{is_identifier, is_word, looks_random};

/// The last word of a name, up to where the value begins.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(?i-u)(?:key|token|secret|password|passwd|pwd|passphrase|credentials?)["'\\]{0,3}[ \t]{0,4}(?:=>|:=|=|:)[ \t]{0,4}"#,
    )
    .expect("the pattern is well-formed")
});

/// How much a name says about its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    /// `password`: whatever stands there is secret.
    Password,
    /// `api_key`, `client_secret`: random characters are secret, digests and UUIDs too.
    Strong,
    /// `key`, `token`: random characters are, unless they are a digest or a UUID.
    Weak,
}

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    for found in ASSIGNMENT.find_iter(bytes) {
        let name_at = name_start(bytes, found.start());
        let word_length = found.as_bytes().iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let name = &bytes[name_at..found.start() + word_length];
        let Some(name_kind) = judge_name(name, found.start() - name_at) else { continue };
        let quotes = bytes[found.end()..].iter().take_while(|byte| b"\"'\\`".contains(byte)).count();
        let start = found.end() + quotes;
        let end = value_end(bytes, start, quotes > 0, found.as_bytes().contains(&b'='));
        let value = &bytes[start..end];
        let kind = match name_kind {
            Name::Password => {
                let written_out = quotes > 0 || name.iter().all(|byte| !byte.is_ascii_lowercase());
                is_password(value, written_out).then_some(Kind::Password)
            }
            Name::Strong => {
                (looks_random(value) || value.len() >= 32 && is_identifier(value)).then_some(Kind::Secret)
            }
            Name::Weak => {
                (value.len() >= 20 && looks_random(value) && !is_identifier(value)).then_some(Kind::Secret)
            }
        };
        hits.extend(kind.map(|kind| Hit { start, end, kind }));
    }
}

fn name_start(bytes: &[u8], word_at: usize) -> usize {
    let in_name = |byte: &&u8| is_word(**byte) || **byte == b'-';
    word_at - bytes[..word_at].iter().rev().take(64).take_while(in_name).count()
}

/// `None` where the last word is only the end of another one (`monkey`, `turkey`).
fn judge_name(name: &[u8], word_at: usize) -> Option<Name> {
    let lower = name.to_ascii_lowercase();
    let says =
        |words: &[&str]| words.iter().any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some());
    if says(&["passw", "passphrase", "pwd"]) {
        return Some(Name::Password);
    }
    if says(&[
        "secret",
        "credential",
        "apikey",
        "api_key",
        "api-key",
        "accesskey",
        "access_key",
        "private_key",
        "access_token",
        "accesstoken",
        "auth_token",
        "authtoken",
        "refresh_token",
        "auth-token",
        "access-token",
    ]) {
        return Some(Name::Strong);
    }
    let begins_word = match word_at.checked_sub(1).map(|before| name[before]) {
        None => true,
        Some(before) if !before.is_ascii_alphabetic() => true,
        Some(before) => before.is_ascii_lowercase() && name[word_at].is_ascii_uppercase(),
    };
    begins_word.then_some(Name::Weak)
}

/// A quoted value ends at its quote; a bare one at punctuation, and after `=` at the `&` or `;` of a
/// query or a connection string.
fn value_end(bytes: &[u8], start: usize, quoted: bool, in_query: bool) -> usize {
    let in_value = |byte: &&u8| {
        let byte = **byte;
        let bare_end = b",(){}[]|".contains(&byte) || in_query && b"&;".contains(&byte);
        byte.is_ascii_graphic() && !b"\"'\\`<>".contains(&byte) && (quoted || !bare_end)
    };
    start + bytes[start..].iter().take(512).take_while(in_value).count()
}

/// Letters beside digits or signs, and no code, variable, mask or path (`pwd` is also a folder). Bare
/// in a line, only what no identifier looks like.
fn is_password(value: &[u8], written_out: bool) -> bool {
    let has = |class: fn(&u8) -> bool| value.iter().any(class);
    let code = has(|byte| b"(){}[]$<>".contains(byte)) || value.starts_with(b"%");
    let path = value.starts_with(b"/") || value.starts_with(b"~") || value.starts_with(b".");
    let mixed = has(u8::is_ascii_digit)
        && (has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
            || has(|byte| b"!@#^*?".contains(byte)));
    (6..=128).contains(&value.len())
        && !code
        && !path
        && has(u8::is_ascii_alphabetic)
        && (written_out && has(|byte| !byte.is_ascii_alphabetic() && *byte != b'_')
            || mixed && value.len() >= 8)
}

#[cfg(test)]
mod tests {
    use super::find;

    fn secrets(text: &str) -> Vec<&str> {
        let mut hits = Vec::new();
        find(text, &mut hits);
        hits.iter().map(|hit| &text[hit.start..hit.end]).collect()
    }

    #[test]
    fn the_name_decides() {
        assert_eq!(secrets(r#"{"password": "hunter2!"}"#), ["hunter2!"]);
        assert_eq!(secrets("DB_PASSWORD=tr0ub4dor"), ["tr0ub4dor"]);
        assert_eq!(secrets("db:\n  password: Tr0ub4dor&3\n"), ["Tr0ub4dor&3"]);
        assert_eq!(secrets("?user=x&password=Tr0ub4dor&page=3"), ["Tr0ub4dor"]);
        assert_eq!(
            secrets("aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
            ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"]
        );
        assert_eq!(
            secrets(r#"{\"apiKey\": \"0123456789abcdef0123456789abcdef\"}"#),
            ["0123456789abcdef0123456789abcdef"]
        );
        assert_eq!(secrets("monkey = q8Zr2LmX0vTn5KdWq8Zr2LmX"), [""; 0]);
    }

    #[test]
    fn code_and_ids_are_left_alone() {
        for text in [
            "password = request.form['password1']",
            "def login(password: str, token: Token)",
            "max_tokens: 4096, token = tokens[i]",
            r#"{"key": "d41d8cd98f00b204e9800998ecf8427e"}"#,
            r#"{"key": "2f1c1e0a-9f70-4b8e-a9a1-0c2d3e4f5a6b"}"#,
            "key: src/components/Button1/index.js",
            "PASSWORD=$DB_PASSWORD1",
            "password = user_password1",
            "\"pwd\": \"/testbed/build2\"",
            "sort(key=lambda x1: x1)",
        ] {
            assert_eq!(secrets(text), [""; 0], "{text}");
        }
    }
}
