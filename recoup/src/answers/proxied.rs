//! What `proxy` says when it begins and when it ends.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::models::Amount;

/// Where the proxy listens (`proxy`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Proxying<'a> {
    /// Its address; OpenAI's clients want `/v1` behind it.
    pub url: &'a str,
}

/// What the proxy has done when it ends (`proxy`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Proxied<'a> {
    /// Requests for a turn.
    pub requests: u64,
    /// Requests by how they ended; the counts sum to `requests`.
    pub ended: BTreeMap<&'a str, u64>,
    /// What teachers took.
    pub spent: Amount,
}
