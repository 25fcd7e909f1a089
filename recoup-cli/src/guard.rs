//! Who may ask a server on this machine: rules over the values of headers, for every server alike.
//!
//! A page in the user's browser can send requests to this machine: it cannot forge `Host` or `Origin`,
//! and without CORS it cannot send `application/json`.

use recoup::id::Hash;

/// What a request says of the page that sent it.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// No header: no page sent it.
    Absent,
    /// One header, text.
    Named(&'a str),
    /// The header twice, or no text.
    Unclear,
}

impl<'a> Origin<'a> {
    /// Of whether the header is there, and of its value where that is one text.
    pub(crate) fn of(is_there: bool, value: Option<&'a str>) -> Self {
        match value {
            Some(origin) => Self::Named(origin),
            None if is_there => Self::Unclear,
            None => Self::Absent,
        }
    }
}

/// Refuses, in words, a request that another site's page has sent, or one that came by another name than this
/// machine's to a server that only this machine can reach.
pub(crate) fn check_site(
    is_loopback: bool,
    host: Option<&str>,
    origin: Origin<'_>,
) -> Result<(), &'static str> {
    let host = host.unwrap_or_default();
    let name = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    let name = name.map_or(host, |(name, _)| name);
    if is_loopback && !matches!(name, "localhost" | "127.0.0.1" | "[::1]") {
        return Err("the Host header does not name this machine");
    }
    let is_ours = match origin {
        Origin::Absent => true,
        Origin::Named(origin) => origin.strip_prefix("http://") == Some(host),
        Origin::Unclear => false,
    };
    if is_ours { Ok(()) } else { Err("requests of other origins are refused") }
}

/// Whether a body of a type is JSON: a page cannot send such without being asked for its origin.
pub(crate) fn is_json(content_type: Option<&str>) -> bool {
    let kind = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}

/// Whether what is shown is the token. Hashes are compared, so that the time taken says nothing about it.
pub(crate) fn is_token(shown: &str, token: &str) -> bool {
    Hash::of(shown.as_bytes()) == Hash::of(token.as_bytes())
}
