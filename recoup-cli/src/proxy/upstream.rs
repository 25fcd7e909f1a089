//! Upstreams: where requests go on, fixed when the proxy starts.
//!
//! A request goes on as it came, without the headers that belong to this connection, with this proxy's
//! own headers taken out, and asking for an answer that is not compressed, so that it can be read on its
//! way. Its key goes to the client's own upstream and nowhere else.

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue,
    TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Version};
use recoup::importers::recoup_proxy::Api;
use recoup::models::Secret;

/// Headers that belong to one connection, or that are made anew for the next.
const OF_A_CONNECTION: [HeaderName; 4] = [CONNECTION, TRANSFER_ENCODING, UPGRADE, HOST];
const OF_A_CONNECTION_TOO: [&str; 6] =
    ["keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer"];
/// What the headers of this proxy start with.
pub(super) const OWN: &str = "x-recoup-";

/// Where requests of a client go.
#[derive(Clone, Debug)]
pub(crate) struct Upstream {
    /// Scheme, host, port and path, without a slash at the end.
    pub base_url: String,
    /// The model to ask for in place of the one that the client names.
    pub model: Option<String>,
    /// The key for clients that show the proxy's token where theirs would stand.
    pub key: Option<Secret<String>>,
}

/// Where all requests go.
#[derive(Clone, Debug)]
pub(crate) struct Upstreams {
    pub openai: Upstream,
    pub anthropic: Upstream,
}

impl Upstreams {
    /// Their addresses.
    pub(super) fn urls(&self) -> [&String; 2] {
        [&self.openai.base_url, &self.anthropic.base_url]
    }

    /// The upstream of an API.
    pub(super) fn of(&self, api: Api) -> &Upstream {
        match api {
            Api::Chat | Api::Responses => &self.openai,
            Api::Messages => &self.anthropic,
        }
    }
}

/// The clients of one thread: one that verifies certificates, one for plain HTTP.
#[derive(Clone)]
pub(super) struct Clients {
    secure: reqwest::Client,
    plain: reqwest::Client,
}

impl Clients {
    /// Makes them; `proxy` is for hosts that are not this machine.
    pub(super) fn new(needs_secure: bool, proxy: Option<&Secret<String>>) -> Result<Self, reqwest::Error> {
        let plain = recoup::models::http_client(false, proxy)?;
        // A machine without certificates can still ask a server of its own.
        let secure = if needs_secure { recoup::models::http_client(true, proxy)? } else { plain.clone() };
        Ok(Self { secure, plain })
    }

    /// Sends a request.
    pub(super) async fn send(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: impl Into<reqwest::Body>,
    ) -> Result<hyper::Response<reqwest::Body>, reqwest::Error> {
        let client = if url.starts_with("https://") { &self.secure } else { &self.plain };
        let response = client.request(method, url).headers(headers).body(body).send().await?;
        Ok(response.into())
    }
}

/// The headers of a request as they go on. `key` stands in for the client's own, where that is the
/// proxy's token.
pub(super) fn onward(headers: &HeaderMap, replaced: bool, key: Option<&Secret<String>>) -> HeaderMap {
    let mut out = passing(headers);
    let own: Vec<HeaderName> = out.keys().filter(|name| name.as_str().starts_with(OWN)).cloned().collect();
    for name in own {
        out.remove(name);
    }
    out.remove(CONTENT_LENGTH);
    out.remove("expect");
    // A cookie is for this address, if for anything.
    out.remove(hyper::header::COOKIE);
    out.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    if replaced {
        let anthropic = out.contains_key("x-api-key");
        out.remove(AUTHORIZATION);
        out.remove("x-api-key");
        if let Some(key) = key {
            set_key(&mut out, if anthropic { Api::Messages } else { Api::Chat }, key);
        }
    }
    out
}

/// Adds a key, as the API's servers read it.
pub(super) fn set_key(headers: &mut HeaderMap, api: Api, key: &Secret<String>) {
    let (name, value) = match api {
        Api::Messages => (HeaderName::from_static("x-api-key"), key.reveal().clone()),
        Api::Chat | Api::Responses => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
    };
    if let Ok(mut value) = HeaderValue::from_str(&value) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}

/// Headers without those that belong to one connection.
pub(super) fn passing(headers: &HeaderMap) -> HeaderMap {
    let mut out = headers.clone();
    let named: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|name| name.trim().to_ascii_lowercase())
        .collect();
    for name in OF_A_CONNECTION.iter().map(HeaderName::as_str).chain(OF_A_CONNECTION_TOO) {
        out.remove(name);
    }
    for name in named {
        out.remove(name);
    }
    out
}

/// A response of the upstream as it goes back, without its body.
pub(super) fn back(response: &hyper::Response<reqwest::Body>) -> hyper::Response<Bytes> {
    let mut out = hyper::Response::new(Bytes::new());
    *out.status_mut() = response.status();
    *out.version_mut() = Version::HTTP_11;
    *out.headers_mut() = passing(response.headers());
    out
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderMap;
    use recoup::models::Secret;

    use super::onward;

    #[test]
    fn what_is_for_this_connection_or_this_proxy_stays_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("host", "localhost"),
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("cookie", "a=b"),
            ("content-length", "3"),
            ("accept-encoding", "gzip"),
            ("x-recoup-session", "s"),
            ("authorization", "Bearer mine"),
            ("openai-organization", "o"),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let sent = onward(&headers, false, None);
        let mut names: Vec<&str> = sent.keys().map(hyper::header::HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["accept-encoding", "authorization", "openai-organization"]);
        assert_eq!(sent["accept-encoding"], "identity");
        let key = Secret::new("theirs".to_owned());
        assert_eq!(onward(&headers, true, Some(&key))["authorization"], "Bearer theirs");
        assert!(!onward(&headers, true, None).contains_key("authorization"));
    }
}
