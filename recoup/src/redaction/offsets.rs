//! The offset map: where bytes of redacted text stand in the original, and the reverse.
//!
//! Judges see redacted text and quote it; citations point into the original. The map holds ranges
//! only, no values, and is never written: redacting the same run again gives it again.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::trajectory::Citation;

/// The replacements of one trajectory, by part.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffsetMap {
    parts: BTreeMap<(usize, Vec<usize>), Vec<Replaced>>,
}

/// One replacement: the same place in both texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Replaced {
    pub original: Range<usize>,
    pub redacted: Range<usize>,
}

impl OffsetMap {
    pub(super) fn insert(&mut self, node: usize, part_path: Vec<usize>, replaced: Vec<Replaced>) {
        if !replaced.is_empty() {
            self.parts.insert((node, part_path), replaced);
        }
    }

    /// True where nothing was replaced in any part.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// A range of redacted part text, in the original. One that cuts into a placeholder grows to the
    /// whole of what it stands for.
    #[must_use]
    pub fn to_original(&self, citation: &Citation) -> Citation {
        self.translate(citation, |replaced| (&replaced.redacted, &replaced.original))
    }

    /// A range of original part text, in the redacted text. One that cuts into what was replaced
    /// grows to the whole placeholder.
    #[must_use]
    pub fn to_redacted(&self, citation: &Citation) -> Citation {
        self.translate(citation, |replaced| (&replaced.original, &replaced.redacted))
    }

    fn translate(
        &self,
        citation: &Citation,
        sides: impl Fn(&Replaced) -> (&Range<usize>, &Range<usize>),
    ) -> Citation {
        let mut moved = citation.clone();
        // A key of the map is owned, so the look-up clones the path: citations are few.
        let Some(replaced) = self.parts.get(&(citation.node, citation.part_path.clone())) else {
            return moved;
        };
        let sides: Vec<_> = replaced.iter().map(sides).collect();
        let before = |at: usize| {
            let index = sides.partition_point(|(from, _)| from.end <= at);
            let shift = index.checked_sub(1).map_or((0, 0), |last| (sides[last].0.end, sides[last].1.end));
            (sides.get(index), shift.1 + (at.saturating_sub(shift.0)))
        };
        moved.start = match before(citation.start) {
            (Some((from, to)), _) if from.start < citation.start => to.start,
            (_, shifted) => shifted,
        };
        moved.end = match before(citation.end) {
            (Some((from, to)), _) if from.start < citation.end => to.end,
            (_, shifted) => shifted,
        };
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::{OffsetMap, Replaced};
    use crate::trajectory::Citation;

    fn at(start: usize, end: usize) -> Citation {
        Citation { node: 0, part_path: vec![0], start, end }
    }

    #[test]
    fn ranges_move_with_the_text_and_grow_over_placeholders() {
        // "to mia@example.com, now" → "to <EMAIL_1>, now"
        let mut map = OffsetMap::default();
        map.insert(0, vec![0], vec![Replaced { original: 3..18, redacted: 3..12 }]);
        assert_eq!(map.to_original(&at(0, 2)), at(0, 2));
        assert_eq!(map.to_original(&at(3, 12)), at(3, 18));
        assert_eq!(map.to_original(&at(14, 17)), at(20, 23));
        assert_eq!(map.to_original(&at(5, 8)), at(3, 18));
        assert_eq!(map.to_redacted(&at(0, 3)), at(0, 3));
        assert_eq!(map.to_redacted(&at(0, 7)), at(0, 12));
        assert_eq!(map.to_redacted(&at(20, 23)), at(14, 17));
        assert_eq!(map.to_redacted(&Citation { node: 1, ..at(5, 8) }), Citation { node: 1, ..at(5, 8) });
    }
}
