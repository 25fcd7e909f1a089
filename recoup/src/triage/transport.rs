//! What providers and networks say when they, not the agent, fail.

use super::failure_text;
use crate::trajectory::{Citation, Node, Role};

/// What providers and networks say when they, not the agent, fail. Each stands at the start of a
/// message or of a provider's error, or it is not counted.
const TRANSPORT_ERRORS: &[&str] = &[
    "429",
    "500 internal server error",
    "502 bad gateway",
    "503 service unavailable",
    "504 gateway",
    "529",
    "rate limit",
    "ratelimiterror",
    "rate_limit",
    "too many requests",
    "overloaded",
    "insufficient_quota",
    "service unavailable",
    "internal server error",
    "internalservererror",
    "serviceunavailableerror",
    "bad gateway",
    "gateway timeout",
    "apiconnectionerror",
    "apitimeouterror",
    "apierror",
    "connection refused",
    "connection reset",
    "connection error",
    "connecterror",
    "read timed out",
    "request timed out",
    "container is not running",
    "cannot connect to the docker daemon",
    "error code: 429",
    "error code: 5",
    "status code: 429",
    "status code: 5",
];

/// A message that *is* a transport error: its first line opens with one.
pub(super) fn transport_text(node: &Node, position: usize) -> Option<Citation> {
    if node.role == Role::User {
        return None;
    }
    node.texts().find_map(|(part_path, text)| {
        let range = failure_text::first_line(text)?;
        let short = text.len() < 2_000;
        (short && transport_form(&text[range.clone()])).then_some(Citation {
            node: position,
            part_path,
            start: range.start,
            end: range.end,
        })
    })
}

/// Whether a line opens with the report of such an error.
pub(super) fn transport_form(line: &str) -> bool {
    let line = line.chars().take(160).collect::<String>().to_lowercase();
    let mut rest = line.as_str();
    loop {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        if TRANSPORT_ERRORS.iter().any(|form| opens_with_word(rest, form)) {
            return true;
        }
        // `litellm.RateLimitError: …`, `Error: HTTP 503 …`: names in front of the report.
        let prefixes =
            ["error: ", "error calling llm: ", "exception: ", "http error ", "http ", "litellm.", "openai."];
        match prefixes.iter().find_map(|prefix| rest.strip_prefix(prefix)) {
            Some(inner) => rest = inner,
            None => return false,
        }
    }
}

/// `429` opens `429 Too Many Requests` and not `4290 items`; `error code: 5` opens `error code: 503`.
fn opens_with_word(text: &str, form: &str) -> bool {
    text.strip_prefix(form).is_some_and(|rest| {
        let next = rest.chars().next();
        match form.chars().last() {
            Some('5') if form.len() > 1 => next.is_some_and(|c| c.is_ascii_digit()),
            Some(last) if last.is_ascii_digit() => {
                // A bare status needs words behind it: `429: …` or `529 overloaded`.
                next.is_some_and(|c| !c.is_ascii_digit() && c != '.' && c != ',')
                    && rest.chars().take(24).any(char::is_alphabetic)
                    && !rest.starts_with(" is")
            }
            _ => true,
        }
    })
}
