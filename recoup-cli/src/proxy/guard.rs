//! Who may ask the proxy: checked before anything of a request is read but its head.

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, ORIGIN};
use hyper::{Method, Request, StatusCode};
use recoup::models::Secret;

use crate::guard::{Origin, check_site, is_json, is_token};

/// The header of the proxy's own token.
const TOKEN: &str = "x-recoup-token";

/// What is asked of every request.
pub(super) struct Guard {
    /// True where only this machine can reach the server.
    loopback: bool,
    token: Option<Secret<String>>,
}

/// A refusal, before the request's API is of any matter.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: StatusCode,
    pub code: &'static str,
    pub message: &'static str,
}

/// What the client showed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shown {
    /// Whether its `Authorization` or `x-api-key` is the proxy's token, and so no key for an upstream.
    pub token_as_key: bool,
}

impl Guard {
    pub(super) fn new(host: IpAddr, token: Option<Secret<String>>) -> Self {
        Self { loopback: host.is_loopback(), token }
    }

    /// Refuses what must not pass.
    pub(super) fn check<B>(&self, request: &Request<B>) -> Result<Shown, Refusal> {
        let headers = request.headers();
        let origin = Origin::of(headers.contains_key(ORIGIN), one(headers, &ORIGIN));
        check_site(self.loopback, one(headers, &HOST), origin).map_err(|message| Refusal {
            status: StatusCode::FORBIDDEN,
            code: "forbidden",
            message,
        })?;
        self.token(headers)
    }

    fn token(&self, headers: &HeaderMap) -> Result<Shown, Refusal> {
        let Some(token) = &self.token else { return Ok(Shown::default()) };
        let is_token = |shown: &str| is_token(shown, token.reveal());
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let bearer = text(AUTHORIZATION.as_str()).and_then(|value| value.strip_prefix("Bearer "));
        // Where it stands as a key it must not go on, whatever else shows it.
        let token_as_key = [bearer, text("x-api-key")].into_iter().flatten().any(is_token);
        if token_as_key || text(TOKEN).is_some_and(is_token) {
            return Ok(Shown { token_as_key });
        }
        let message = "show the token, as `x-recoup-token` or in place of the API key";
        Err(Refusal { status: StatusCode::UNAUTHORIZED, code: "no-token", message })
    }
}

/// Refuses a body of another type than JSON: a page can send such without being asked for its origin.
pub(super) fn check_json<B>(request: &Request<B>) -> Result<(), Refusal> {
    let refuse = |status, code, message| Err(Refusal { status, code, message });
    if request.method() != Method::POST {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "method", "the method is another here");
    }
    if !is_json(one(request.headers(), &CONTENT_TYPE)) {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", "send application/json");
    }
    let coded = request.headers().get("content-encoding").is_some_and(|coding| coding != "identity");
    if coded {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "encoding", "send the body uncompressed");
    }
    Ok(())
}

/// The value of a header; `None` where it is absent, there twice, or no text.
fn one<'a>(headers: &'a HeaderMap, name: &hyper::header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok();
    first.filter(|_| values.next().is_none())
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use recoup::models::Secret;

    use super::{Guard, Shown, check_json};

    fn check(token: Option<&str>, headers: &[(&str, &str)]) -> Result<bool, u16> {
        let guard = Guard::new([127, 0, 0, 1].into(), token.map(|token| Secret::new(token.to_owned())));
        let mut request = Request::post("/v1/messages");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let checked = guard.check(&request.body(()).unwrap());
        checked.map(|Shown { token_as_key }| token_as_key).map_err(|refusal| refusal.status.as_u16())
    }

    #[test]
    fn only_this_machine_and_no_page_may_ask() {
        assert_eq!(check(None, &[("host", "localhost:80")]), Ok(false));
        assert_eq!(check(None, &[("host", "evil.example")]), Err(403));
        assert_eq!(check(None, &[]), Err(403));
        assert_eq!(check(None, &[("host", "localhost:80"), ("origin", "http://evil.example")]), Err(403));
        assert_eq!(check(None, &[("host", "[::1]:80"), ("origin", "http://[::1]:80")]), Ok(false));
    }

    #[test]
    fn a_token_is_asked_for() {
        let host = ("host", "localhost");
        assert_eq!(check(Some("t"), &[host]), Err(401));
        assert_eq!(check(Some("t"), &[host, ("authorization", "Bearer x")]), Err(401));
        assert_eq!(check(Some("t"), &[host, ("authorization", "Bearer t")]), Ok(true));
        assert_eq!(check(Some("t"), &[host, ("x-api-key", "t")]), Ok(true));
        assert_eq!(
            check(Some("t"), &[host, ("x-recoup-token", "t"), ("authorization", "Bearer k")]),
            Ok(false)
        );
        let twice = [host, ("x-recoup-token", "t"), ("authorization", "Bearer t")];
        assert_eq!(check(Some("t"), &twice), Ok(true), "the upstream must not see it");
    }

    #[test]
    fn models_are_asked_in_json() {
        let status = |kind: &str| {
            let request = Request::post("/").header("content-type", kind).body(()).unwrap();
            check_json(&request).map_err(|refusal| refusal.status.as_u16())
        };
        assert_eq!(status("application/json; charset=utf-8"), Ok(()));
        assert_eq!(status("text/plain"), Err(415));
    }
}
