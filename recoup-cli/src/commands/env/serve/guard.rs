//! Who may ask: checked before a request reaches an environment.
//!
//! A page in the user's browser can send requests to this machine: it cannot forge `Host` or `Origin`,
//! and without CORS it cannot send `application/json`.

use std::net::IpAddr;

use recoup::id::Hash;

use super::http::{Request, Response};

/// What is asked of every request.
pub(super) struct Guard {
    /// True where only this machine can reach the server.
    loopback: bool,
    token: Option<String>,
}

impl Guard {
    pub(super) fn new(host: IpAddr, token: Option<String>) -> Self {
        Self { loopback: host.is_loopback(), token }
    }

    /// Takes a token at the start of the path off, and refuses what must not pass.
    ///
    /// # Errors
    /// The refusal.
    pub(super) fn check(&self, request: &mut Request) -> Result<(), Response> {
        let host = request.header("host").unwrap_or_default().to_owned();
        let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
        let name = name.map_or(host.as_str(), |(name, _)| name);
        if self.loopback && !matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
            return Err(Response::error(403, "the Host header does not name this machine"));
        }
        if request.has("origin") && request.header("origin") != Some(&format!("http://{host}")) {
            return Err(Response::error(403, "requests of other origins are refused"));
        }
        self.check_token(request)?;
        let kind = request.header("content-type").unwrap_or_default();
        let is_json =
            kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"));
        if request.method == "POST" && !is_json {
            return Err(Response::error(415, "send application/json"));
        }
        Ok(())
    }

    fn check_token(&self, request: &mut Request) -> Result<(), Response> {
        let Some(token) = &self.token else { return Ok(()) };
        // Hashes are compared, so that the time taken says nothing about the token.
        let is_token = |shown: &str| Hash::of(shown.as_bytes()) == Hash::of(token.as_bytes());
        if request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "))
            .is_some_and(is_token)
        {
            return Ok(());
        }
        let path = request.path.trim_start_matches('/').split_once('/');
        match path.filter(|(first, _)| is_token(first)).map(|(_, rest)| format!("/{rest}")) {
            Some(rest) => request.path = rest,
            None => return Err(Response::error(401, "show the token").with("WWW-Authenticate", "Bearer")),
        }
        Ok(())
    }
}
