//! Attachments: Inspect moves long texts and images out of a sample's messages and leaves
//! `attachment://<hash>` (`tc://<hash>` before 2025) in their place.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::canonical::write_string;
use crate::importers::object::Object;
use crate::importers::value::text;
use crate::json::Json;

/// Schemes of a reference.
const SCHEMES: [&str; 2] = ["attachment://", "tc://"];
/// Hexadecimal digits of a reference.
const HASH_DIGITS: usize = 32;

/// The attachments of one sample.
pub(super) struct Attachments<'a> {
    texts: BTreeMap<String, &'a RawValue>,
    limit: usize,
    /// Bytes that may still be filled in: a few references to one large attachment must not fill the
    /// memory.
    budget: Cell<usize>,
    dangling: Cell<bool>,
}

impl<'a> Attachments<'a> {
    /// Attachments by hash, of which at most `budget` bytes are filled in.
    pub(super) fn new(texts: BTreeMap<String, &'a RawValue>, budget: usize) -> Self {
        Self { texts, limit: budget, budget: Cell::new(budget), dangling: Cell::new(false) }
    }

    /// The same attachments, of which nothing is filled in yet.
    pub(super) fn again(&self) -> Self {
        Self::new(self.texts.clone(), self.limit)
    }

    /// A decoded text with its references filled in. An attachment's own text is not searched again.
    pub(super) fn resolve<'t>(&self, source: &'t str) -> Cow<'t, str> {
        self.fill(source, String::push_str)
    }

    /// The same for the source text of a JSON value, where a reference stands inside a string.
    pub(super) fn resolve_json<'t>(&self, source: &'t str) -> Cow<'t, str> {
        self.fill(source, |out, attachment| {
            let mut quoted = String::with_capacity(attachment.len() + 2);
            write_string(&mut quoted, attachment);
            out.push_str(&quoted[1..quoted.len() - 1]);
        })
    }

    /// What was not taken of an object and is not empty, with its references filled in.
    pub(super) fn filled_rest(&self, object: Object<'_>) -> BTreeMap<String, Json> {
        let mut rest = object.filled_rest();
        for value in rest.values_mut() {
            if let Cow::Owned(resolved) = self.resolve_json(value.as_str()) {
                *value = Json::from_foreign(&resolved);
            }
        }
        rest
    }

    /// True where a reference led nowhere or over the budget, and stayed as it was.
    pub(super) fn left_some(&self) -> bool {
        self.dangling.get()
    }

    fn fill<'t>(&self, source: &'t str, mut write: impl FnMut(&mut String, &str)) -> Cow<'t, str> {
        let mut out = String::new();
        let mut rest = source;
        while let Some((at, end, hash)) = reference(rest) {
            // The source text is never shorter than what it says.
            let affordable = self.texts.get(hash).and_then(|raw| {
                self.budget.set(self.budget.get().checked_sub(raw.get().len())?);
                text(raw)
            });
            if let Some(text) = affordable {
                out.push_str(&rest[..at]);
                write(&mut out, &text);
            } else {
                self.dangling.set(true);
                out.push_str(&rest[..end]);
            }
            rest = &rest[end..];
        }
        if rest.len() == source.len() {
            return Cow::Borrowed(source);
        }
        out.push_str(rest);
        Cow::Owned(out)
    }
}

/// The first reference in a text: where it starts and ends, and its hash. After `attachment://` any word
/// is one; it leads nowhere unless it is a key.
fn reference(text: &str) -> Option<(usize, usize, &str)> {
    let mut from = 0;
    while let Some(found) = text.get(from..)?.find("://") {
        let colon = from + found;
        from = colon + 3;
        let hash = text.get(from..from + HASH_DIGITS);
        let hash = hash.filter(|hash| hash.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(scheme) = SCHEMES.iter().find(|scheme| text[..from].ends_with(*scheme)) else { continue };
        let word = || {
            let is_end = |character: char| !(character.is_ascii_alphanumeric() || "-_".contains(character));
            let word = text[from..].split(is_end).next()?;
            (*scheme == SCHEMES[0] && !word.is_empty()).then_some(word)
        };
        if let Some(hash) = hash.or_else(word) {
            return Some((from - scheme.len(), from + hash.len(), hash));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::value::RawValue;

    use super::Attachments;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    fn with<T>(text: &str, budget: usize, check: impl FnOnce(&Attachments) -> T) -> T {
        let raw = RawValue::from_string(serde_json::to_string(text).unwrap()).unwrap();
        check(&Attachments::new(BTreeMap::from([(HASH.to_owned(), &*raw)]), budget))
    }

    #[test]
    fn references_are_filled_in_wherever_they_stand() {
        with("a \"long\"\ntext", 100, |attachments| {
            let source = format!("see attachment://{HASH}, tc://{HASH}; https://x/{HASH}");
            let filled = attachments.resolve(&source);
            assert_eq!(filled, format!("see a \"long\"\ntext, a \"long\"\ntext; https://x/{HASH}"));
            let json = format!("{{\"code\": \"attachment://{HASH}\"}}");
            assert_eq!(attachments.resolve_json(&json), r#"{"code": "a \"long\"\ntext"}"#);
            assert!(!attachments.left_some());
        });
    }

    #[test]
    fn what_leads_nowhere_or_is_too_much_stays() {
        let other = format!("attachment://{}", "f".repeat(32));
        with("x", 100, |attachments| {
            assert_eq!(attachments.resolve(&other), other);
            assert!(attachments.left_some());
        });
        for (unknown, is_reference) in
            [("attachment://short é", true), ("see attachment:// and tc://x", false)]
        {
            with("x", 100, |attachments| {
                assert_eq!(attachments.resolve(unknown), unknown);
                assert_eq!(attachments.left_some(), is_reference, "{unknown}");
            });
        }
        let twice = format!("attachment://{HASH}attachment://{HASH}");
        with("abc", 9, |attachments| {
            assert_eq!(attachments.resolve(&twice), format!("abcattachment://{HASH}"));
        });
    }

    #[test]
    fn an_attachment_that_names_itself_is_filled_in_once() {
        let own = format!("attachment://{HASH}");
        with(&own, 1000, |attachments| assert_eq!(attachments.resolve(&own), own));
    }
}
