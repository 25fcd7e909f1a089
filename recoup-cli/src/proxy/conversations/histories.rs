//! Fingerprints of how a conversation began and went on.

use recoup::importers::recoup_proxy::Api;

use super::{Asking, Shown};
use crate::proxy::api;
use crate::proxy::fingerprint::Fingerprint;

/// How a conversation began, as the names of those without a session say it.
pub(super) fn opening(origin: Fingerprint) -> u64 {
    (origin.0 >> 80) as u64
}

/// What the name of a conversation without a session says of how it began.
pub(super) fn opening_in(name: &str) -> Option<u64> {
    let (hex, rest) = name.split_once('-')?;
    let is_ours =
        hex.len() == 12 && rest.split_once('-').is_some_and(|(_, number)| number.parse::<u64>().is_ok());
    if is_ours { u64::from_str_radix(hex, 16).ok() } else { None }
}

pub(super) fn mark(scope: Fingerprint, message: Fingerprint) -> Fingerprint {
    Fingerprint::of(&[b"particular", &scope.0.to_le_bytes(), &message.0.to_le_bytes()])
}

pub(super) fn root(scope: Fingerprint, api: Api, session: Option<&str>) -> Fingerprint {
    let api = api::path(api);
    Fingerprint::of(&[&scope.0.to_le_bytes(), api.as_bytes(), session.unwrap_or_default().as_bytes()])
}

/// The fingerprint of the history up to each message.
pub(super) fn histories(asking: &Asking<'_>, shown: &[Shown]) -> Vec<Fingerprint> {
    histories_from(root(asking.scope, asking.api, asking.session), shown)
}

pub(super) fn histories_from(mut history: Fingerprint, shown: &[Shown]) -> Vec<Fingerprint> {
    let mut histories = Vec::with_capacity(shown.len());
    for message in shown {
        history = history.then(message.fingerprint);
        histories.push(history);
    }
    histories
}
