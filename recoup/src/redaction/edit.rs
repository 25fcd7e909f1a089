//! Edits: what is replaced in a text, and the text with placeholders in.

use super::find::{Hit, find};
use super::kind::Kind;
use super::offsets::Replaced;
use super::placeholders::Placeholders;

/// One replacement to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Edit {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
    /// What stands there.
    pub kind: Kind,
    /// Its decoded value, by which it gets its number.
    pub value: String,
    /// Whether the placeholder needs JSON quotes: it takes the place of a number.
    pub quoted: bool,
}

/// The edits of plain text.
pub(super) fn edits(text: &str) -> Vec<Edit> {
    let edit = |hit: Hit| Edit {
        start: hit.start,
        end: hit.end,
        kind: hit.kind,
        value: text[hit.start..hit.end].to_owned(),
        quoted: false,
    };
    find(text).into_iter().map(edit).collect()
}

/// Makes edits, which are in order and disjoint.
pub(super) fn apply(text: &str, edits: &[Edit], placeholders: &mut Placeholders) -> (String, Vec<Replaced>) {
    let mut out = String::with_capacity(text.len());
    let mut replaced = Vec::with_capacity(edits.len());
    let mut from = 0;
    for edit in edits {
        out.push_str(&text[from..edit.start]);
        let start = out.len();
        let placeholder = placeholders.of(edit.kind, &edit.value);
        if edit.quoted {
            out.push('"');
        }
        out.push_str(&placeholder);
        if edit.quoted {
            out.push('"');
        }
        replaced.push(Replaced { original: edit.start..edit.end, redacted: start..out.len() });
        from = edit.end;
    }
    out.push_str(&text[from..]);
    (out, replaced)
}
