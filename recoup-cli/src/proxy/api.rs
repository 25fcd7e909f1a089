//! The APIs that clients speak: where each is spoken, and how each says that something is wrong.

use recoup::importers::recoup_proxy::Api;
use serde_json::{Value, json};

/// The API whose models are asked at a path; none where the path is another's.
pub(super) fn at(path: &str) -> Option<Api> {
    match path.strip_prefix("/v1").unwrap_or(path) {
        "/chat/completions" => Some(Api::Chat),
        "/responses" => Some(Api::Responses),
        "/messages" => Some(Api::Messages),
        _ => None,
    }
}

/// The path below an API's address at which models are asked.
pub(super) fn path(api: Api) -> &'static str {
    match api {
        Api::Chat => "/chat/completions",
        Api::Responses => "/responses",
        Api::Messages => "/messages",
    }
}

/// Where a request to a path of this server goes on an upstream: both start with `/v1`, once.
pub(super) fn upstream_url(base: &str, path: &str, query: Option<&str>) -> String {
    let below = match path.strip_prefix("/v1") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        _ => path,
    };
    match query {
        Some(query) => format!("{base}{below}?{query}"),
        None => format!("{base}{below}"),
    }
}

/// An error in the form that an API's clients read; they raise it as their own kind of error.
pub(super) fn error_body(api: Option<Api>, status: u16, code: &str, message: &str) -> Value {
    if api == Some(Api::Messages) {
        let kind = match status {
            400 | 415 | 422 => "invalid_request_error",
            401 => "authentication_error",
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            _ => "api_error",
        };
        return json!({ "type": "error", "error": { "type": kind, "message": format!("recoup: {message}") } });
    }
    let kind = match status {
        402 => "insufficient_quota",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    json!({ "error": { "message": format!("recoup: {message}"), "type": kind, "param": null, "code": code } })
}

#[cfg(test)]
mod tests {
    use super::{Api, at, error_body, upstream_url};

    #[test]
    fn paths_meet_their_upstream() {
        assert_eq!(at("/v1/chat/completions"), Some(Api::Chat));
        assert_eq!(at("/messages"), Some(Api::Messages));
        assert_eq!(at("/v1/messages/count_tokens"), None);
        let url = |base, path| upstream_url(base, path, None);
        assert_eq!(url("https://a.example/v1", "/v1/models"), "https://a.example/v1/models");
        assert_eq!(url("http://a.example/api", "/models"), "http://a.example/api/models");
        assert_eq!(url("http://a.example/v1", "/v1beta"), "http://a.example/v1/v1beta");
        assert_eq!(upstream_url("http://a/v1", "/v1/files", Some("limit=1")), "http://a/v1/files?limit=1");
    }

    #[test]
    fn each_api_reads_its_own_errors() {
        let error = error_body(Some(Api::Messages), 413, "too-large", "too long");
        assert_eq!((&error["type"], &error["error"]["type"]), (&"error".into(), &"request_too_large".into()));
        let error = error_body(Some(Api::Chat), 400, "bad-request", "no JSON");
        assert_eq!(error["error"]["message"], "recoup: no JSON");
    }
}
