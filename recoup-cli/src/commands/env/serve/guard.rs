//! Who may ask: checked before a request reaches an environment.

use std::net::IpAddr;

use super::http::{Request, Response};
use crate::guard::{Origin, check_site, is_json, is_token};

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
        let origin = Origin::of(request.has("origin"), request.header("origin"));
        check_site(self.loopback, request.header("host"), origin)
            .map_err(|message| Response::error(403, message))?;
        self.check_token(request)?;
        if request.method == "POST" && !is_json(request.header("content-type")) {
            return Err(Response::error(415, "send application/json"));
        }
        Ok(())
    }

    fn check_token(&self, request: &mut Request) -> Result<(), Response> {
        let Some(token) = &self.token else { return Ok(()) };
        let is_token = |shown: &str| is_token(shown, token);
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
