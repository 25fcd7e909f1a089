//! Messages that were seen before: a client sends its history again at every turn, and a long message is
//! not read again each time.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use recoup::importers::recoup_proxy::Api;
use serde_json::value::RawValue;

use super::conversations::Shown;
use super::fingerprint::{Fingerprint, show};

/// Bytes from which on a message is looked up.
const LONG: usize = 256;
/// Messages that are kept; then all are let go of.
const KEPT_MAX: usize = 1 << 17;

/// What long messages were found to show, by the hash of their bytes.
#[derive(Default)]
pub(super) struct Seen(Mutex<HashMap<Fingerprint, Shown>>);

impl Seen {
    /// What each message of a history shows.
    pub(super) fn show<'a>(&self, api: Api, messages: impl Iterator<Item = &'a RawValue>) -> Vec<Shown> {
        messages.map(|raw| self.look(api, raw)).collect()
    }

    fn look(&self, api: Api, raw: &RawValue) -> Shown {
        let text = raw.get();
        if text.len() < LONG {
            return show(api, raw);
        }
        let key = Fingerprint::of(&[super::api::path(api).as_bytes(), text.as_bytes()]);
        if let Some(shown) = self.known().get(&key) {
            return *shown;
        }
        // Nobody waits while a long message is read; two that read the same one find the same.
        let shown = show(api, raw);
        let mut known = self.known();
        if known.len() >= KEPT_MAX {
            known.clear();
        }
        known.insert(key, shown);
        shown
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Fingerprint, Shown>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{Api, Seen, show};

    #[test]
    fn what_was_seen_is_what_is_seen() {
        let seen = Seen::default();
        let text = format!(r#"{{"role":"assistant","content":"{}"}}"#, "x".repeat(400));
        let raw: &serde_json::value::RawValue = serde_json::from_str(&text).unwrap();
        for api in [Api::Chat, Api::Messages, Api::Responses] {
            let fresh = show(api, raw);
            for _ in 0..2 {
                let found = seen.show(api, [raw].into_iter())[0];
                assert_eq!((found.fingerprint, found.answer), (fresh.fingerprint, fresh.answer));
            }
        }
    }
}
