//! Spanning secrets: what a source cut into two text parts of one message reads as one.

use std::collections::BTreeMap;

use super::edit::Edit;
use super::find::find;
use crate::trajectory::Part;

/// The pieces, by part, of what only shows when adjacent text parts are read together. Each has the
/// whole for its value, so that all of them get one placeholder.
pub(super) fn across_parts(parts: &[Part]) -> BTreeMap<usize, Vec<Edit>> {
    let mut pieces: BTreeMap<usize, Vec<Edit>> = BTreeMap::new();
    let mut first = 0;
    for group in parts.chunk_by(|a, b| matches!((a, b), (Part::Text(_), Part::Text(_)))) {
        let texts: Vec<&str> = group.iter().filter_map(Part::cited_text).collect();
        if group.len() > 1 && texts.len() == group.len() {
            let joined = texts.concat();
            for hit in find(&joined) {
                let mut from = 0;
                for (index, text) in texts.iter().enumerate() {
                    let (start, end) = (hit.start.max(from), hit.end.min(from + text.len()));
                    let spans = hit.start < from || hit.end > from + text.len();
                    if spans && start < end {
                        pieces.entry(first + index).or_default().push(Edit {
                            start: start - from,
                            end: end - from,
                            kind: hit.kind,
                            value: joined[hit.start..hit.end].to_owned(),
                            quoted: false,
                        });
                    }
                    from += text.len();
                }
            }
        }
        first += group.len();
    }
    pieces
}
