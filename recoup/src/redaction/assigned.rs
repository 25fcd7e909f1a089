//! Secrets that show by the name they are assigned to: `api_key = "…"`, `"password": "…"`.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::find::Hit;
use super::kind::Kind;
use super::token::{is_identifier, is_word, looks_drawn, looks_random, scattered};

/// The last word of a name, and what stands between it and the value: a sign that assigns, the end of an
/// XML tag, the blank behind a flag or in a sentence.
static ASSIGNMENT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i-u)(?:key|token|secret|password|passwd|pwd|passphrase|passcode|credentials?|passwort|kennwort",
        r"|contrase(?:\xc3\xb1|n)a|senha|passe|identified by)",
        r#"(?:["'\\]{0,3}[ \t]{0,4}(?:=>|:=|=|:|\xef\xbc\x9a)[ \t]{0,4}|>|[ \t](?:is|ist|lautet|es|est)(?: ?:)?[ \t]|[ \t])"#,
    ))
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

/// How a value is tied to its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tie {
    /// `name = value`, `<name>value</name>`.
    Assigned,
    /// `--name value`, `NAME 'value'`: one blank, and a flag or a quote that says it is a value.
    Apart,
    /// `the name is value`, `name value`: words follow as often.
    Said,
}

pub(super) fn find(text: &str, hits: &mut Vec<Hit>) {
    let bytes = text.as_bytes();
    for found in ASSIGNMENT.find_iter(bytes) {
        let word = found.as_bytes();
        let word_length =
            word.iter().position(|byte| b"\"'\\ \t=:>\xef".contains(byte)).unwrap_or(word.len());
        let word_length =
            if word[word_length..].starts_with(b" by") || word[word_length..].starts_with(b" BY") {
                word_length + 3
            } else {
                word_length
            };
        let name_at = name_start(bytes, found.start());
        let name = &bytes[name_at..found.start() + word_length];
        let quotes = bytes[found.end()..].iter().take(4).take_while(|byte| b"\"'\\`".contains(byte)).count();
        let start = found.end() + quotes;
        let tied = &word[word_length..];
        let tie = match tied {
            b">" if bytes[..name_at].ends_with(b"<") => Tie::Assigned,
            b">" => continue,
            b" " | b"\t" if quotes > 0 || name.starts_with(b"--") => Tie::Apart,
            tied if tied.iter().any(|byte| b"=:\xef".contains(byte)) => Tie::Assigned,
            _ => Tie::Said,
        };
        let end = value_end(bytes, start, quotes > 0, tied.contains(&b'='));
        let end = if tie == Tie::Said { sentence_end(bytes, start, end) } else { end };
        let value = &bytes[start..end];
        // Most of what follows `key ` is a word; nothing secret is this short or this plain.
        if value.len() < 6 || value[1..].iter().all(u8::is_ascii_lowercase) {
            continue;
        }
        let Some(name_kind) = judge_name(bytes, name_at, name, found.start() - name_at) else { continue };
        let kind = match name_kind {
            Name::Password => {
                let written_out = match tie {
                    Tie::Assigned => {
                        quotes > 0 || tied == b">" || name.iter().all(|byte| !byte.is_ascii_lowercase())
                    }
                    Tie::Apart => true,
                    Tie::Said => false,
                };
                is_password(value, written_out).then_some(Kind::Password)
            }
            Name::Strong => looks_drawn(value).then_some(Kind::Secret),
            Name::Weak => {
                (value.len() >= 20 && (looks_random(value) || scattered(value)) && !is_identifier(value))
                    .then_some(Kind::Secret)
            }
        };
        hits.extend(kind.map(|kind| Hit { start, end, kind }));
    }
}

/// A value in a sentence without its full stop.
fn sentence_end(bytes: &[u8], start: usize, end: usize) -> usize {
    let stops = bytes[start..end].iter().rev().take_while(|byte| b".,;:?!".contains(byte)).count();
    // `Dragon17!` may end with its own sign; only before a blank is a lone dot or comma the sentence's.
    if bytes[start..end].ends_with(b"!") { end } else { end - stops }
}

fn name_start(bytes: &[u8], word_at: usize) -> usize {
    let in_name = |byte: &&u8| is_word(**byte) || **byte == b'-';
    word_at - bytes[..word_at].iter().rev().take(64).take_while(in_name).count()
}

/// Names whose value is secret even where it looks like a digest.
const STRONG: &[&str] = &[
    "secret",
    "credential",
    "apikey",
    "api_key",
    "api-key",
    "api key",
    "accesskey",
    "access_key",
    "access-key",
    "accountkey",
    "account_key",
    "private_key",
    "private-key",
    "encryption_key",
    "encryptionkey",
    "signing_key",
    "signingkey",
    "master_key",
    "session_key",
    "license_key",
];

/// Tokens of this kind turn pages and count words.
const HARMLESS: &[&str] =
    &["page", "next", "continu", "cursor", "sync", "eos", "bos", "pad", "stop", "special", "csrf"];

/// `None` where the last word is only the end of another one (`monkey`, `turkey`).
fn judge_name(bytes: &[u8], name_at: usize, name: &[u8], word_at: usize) -> Option<Name> {
    let lower = name.to_ascii_lowercase();
    let says =
        |words: &[&str]| words.iter().any(|word| memchr::memmem::find(&lower, word.as_bytes()).is_some());
    if says(&["passw", "passphrase", "passcode", "pwd", "kennwort", "contrase", "senha", "identified by"]) {
        return Some(Name::Password);
    }
    if says(&["passe"]) {
        return follows(&bytes[..name_at], b"mot de ").then_some(Name::Password);
    }
    let begins_word = match word_at.checked_sub(1).map(|before| name[before]) {
        None => true,
        Some(before) if !before.is_ascii_alphabetic() => true,
        Some(before) => before.is_ascii_lowercase() && name[word_at].is_ascii_uppercase(),
    };
    let in_query = matches!(bytes[..name_at].last(), Some(b'?' | b'&'));
    let token = says(&["token"]) && begins_word && !says(HARMLESS);
    let api_key = lower == b"key" && follows(&bytes[..name_at], b"api ");
    if says(STRONG) || token || api_key || in_query && lower == b"key" {
        return Some(Name::Strong);
    }
    begins_word.then_some(Name::Weak)
}

/// Whether a text ends with these words, in whatever case.
fn follows(before: &[u8], words: &[u8]) -> bool {
    before.len().checked_sub(words.len()).is_some_and(|start| before[start..].eq_ignore_ascii_case(words))
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
    // `qwerty_1565`: more digits than a numbered name has.
    let letters = value.iter().filter(|byte| byte.is_ascii_alphabetic()).count();
    let numbered = letters >= 4
        && value.iter().filter(|byte| byte.is_ascii_digit()).count() >= 3
        && has(|byte| b"-_.#".contains(byte));
    (6..=128).contains(&value.len())
        && !code
        && !path
        && has(u8::is_ascii_alphabetic)
        && (written_out && has(|byte| !byte.is_ascii_alphabetic() && *byte != b'_')
            || (mixed || numbered) && value.len() >= 8)
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
