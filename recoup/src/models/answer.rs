//! What a provider sent, before it is read: is it an answer at all, and if not, what does it say?

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::http::Received;
use super::{ModelError, Secret, Usage, authority};
use crate::visible::visible_line;

/// Characters of a provider's complaint that are shown.
const MESSAGE_MAX: usize = 300;

/// Where a provider is reached and who asks.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    pub(super) host: String,
    pub(super) base_url: String,
    pub(super) key: Option<Secret<String>>,
}

impl Endpoint {
    pub(super) fn new(base_url: &str, key: Option<Secret<String>>) -> Self {
        Self { host: authority(base_url).to_owned(), base_url: base_url.to_owned(), key }
    }
}

/// Reads the JSON of an answer, or makes an error of what is none.
pub(super) fn read<T: DeserializeOwned>(host: &str, received: &Received) -> Result<T, ModelError> {
    let host = host.to_owned();
    if !(200..300).contains(&received.status) {
        let mut refused = refused(&host, received.status, &received.body);
        if let ModelError::Status { message, retry_after_ms, .. } = &mut refused {
            *retry_after_ms = received.retry_after_ms;
            if let Some(place) = &received.location {
                *message = format!("it sends elsewhere ({}), and that is not followed", shown(place));
            }
        }
        return Err(refused);
    }
    let malformed = |message: String| Err(ModelError::Malformed { host: host.clone(), message });
    let kind = received.content_type.to_ascii_lowercase();
    if kind.contains("text/event-stream") {
        return malformed("it is a stream of events, which was not asked for".to_owned());
    }
    if kind.contains("html") || received.body.trim_ascii_start().starts_with(b"<") {
        return malformed(format!("it is a page: {}", complaint(&received.body)));
    }
    serde_json::from_slice(&received.body).or_else(|error| malformed(error.to_string()))
}

/// What a provider says where it refuses.
pub(super) fn refused(host: &str, status: u16, body: &[u8]) -> ModelError {
    ModelError::Status { host: host.to_owned(), status, message: complaint(body), retry_after_ms: None }
}

/// A count of tokens; `None` where it is missing or no count at all.
pub(super) fn count(usage: &Value, key: &str) -> Option<u64> {
    usage.get(key).and_then(Value::as_u64)
}

/// What an answer took, as both of OpenAI's APIs count it, in members of other names; `None` where a count is missing.
pub(super) fn usage(usage: &Value, prompt: &str, completion: &str) -> Option<Usage> {
    let details = usage.get(format!("{prompt}_details"));
    Some(Usage {
        prompt: count(usage, prompt)?,
        cached_prompt: details.and_then(|details| count(details, "cached_tokens")).unwrap_or(0),
        completion: count(usage, completion)?,
    })
}

/// The error that stands where the answer should be, as some routers send it under status 200.
pub(super) fn routed(host: &str, error: &Value) -> ModelError {
    let (host, message) = (host.to_owned(), complaint(error.to_string().as_bytes()));
    match error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok()) {
        Some(status @ 400..600) => ModelError::Status { host, status, message, retry_after_ms: None },
        _ => ModelError::Malformed { host, message },
    }
}

/// What a provider says is wrong, shortened and safe to print.
fn complaint(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let value: Option<Value> = serde_json::from_str(&text).ok();
    let said = value.as_ref().and_then(|value| {
        let error = value.get("error").unwrap_or(value);
        let words = |key: &str| error.get(key).and_then(Value::as_str);
        let message = error.as_str().or_else(|| words("message")).or_else(|| words("detail"))?;
        // The code tells a spent quota from too many requests.
        Some(match words("code").filter(|code| !message.contains(*code)) {
            Some(code) => format!("{message} ({code})"),
            None => message.to_owned(),
        })
    });
    match said {
        Some(said) => shown(&said),
        None if text.trim().is_empty() => "nothing more".to_owned(),
        None => shown(&text),
    }
}

fn shown(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let mut short: String = line.chars().take(MESSAGE_MAX).collect();
    if short.len() < line.len() {
        short.push('…');
    }
    visible_line(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{Received, read, routed};
    use crate::models::ModelError;

    fn received(status: u16, content_type: &str, body: &str) -> Received {
        Received {
            status,
            content_type: content_type.to_owned(),
            location: None,
            retry_after_ms: None,
            body: body.as_bytes().to_vec(),
        }
    }

    #[test]
    fn what_is_no_answer_says_why() {
        for (answer, expected) in [
            (received(401, "", r#"{"error":{"message":"bad\u001b[2J key"}}"#), "h: HTTP 401: bad"),
            (
                received(429, "", r#"{"error":{"message":"no","code":"insufficient_quota"}}"#),
                "insufficient_quota",
            ),
            (received(500, "", r#"{"detail":"broken"}"#), "HTTP 500: broken"),
            (received(502, "text/html", "<h1>Bad\n gateway</h1>"), "HTTP 502: <h1>Bad gateway</h1>"),
            (received(503, "", ""), "HTTP 503: nothing more"),
            (received(200, "text/html", "<html>hello"), "it is a page: <html>hello"),
            (received(200, "text/event-stream", "data: {}"), "stream of events"),
            (received(200, "application/json", "{\"a\":"), "EOF while parsing"),
            (received(200, "application/json", "{}{}"), "trailing characters"),
            (received(200, "application/json", ""), "EOF while parsing"),
        ] {
            let error = read::<serde_json::Value>("h", &answer).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains('\u{1b}'), "{error}");
        }
        let limited = routed("h", &serde_json::json!({ "message": "slow down", "code": 429 }));
        assert!(limited.is_retryable() && limited.to_string().contains("HTTP 429: slow down"), "{limited}");
        let elsewhere = Received { location: Some("http://evil/".to_owned()), ..received(302, "", "") };
        let error = read::<serde_json::Value>("h", &elsewhere).unwrap_err();
        assert!(error.to_string().contains("not followed"), "{error}");
        assert!(matches!(error, ModelError::Status { status: 302, .. }));
    }
}
