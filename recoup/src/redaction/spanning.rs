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

#[cfg(test)]
mod tests {
    use super::across_parts;
    use crate::trajectory::Part;

    #[test]
    fn each_part_gives_its_piece_and_the_value_is_the_whole() {
        let parts = [Part::text("to mia.li@exa"), Part::text("mple"), Part::text(".com, leo@example.com")];
        let pieces = across_parts(&parts);
        let ranges = pieces.iter().flat_map(|(part, edits)| {
            edits.iter().map(move |edit| (*part, edit.start, edit.end, edit.value.as_str()))
        });
        let whole = "mia.li@example.com";
        assert_eq!(ranges.collect::<Vec<_>>(), [(0, 3, 13, whole), (1, 0, 4, whole), (2, 0, 4, whole)]);
    }
}
