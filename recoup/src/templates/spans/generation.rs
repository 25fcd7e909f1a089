//! Spans that the template names itself.

use std::ops::Range;

use super::Extent;

/// The generated ranges that belong to the message of an extent; `None` where one reaches beyond it, or
/// text of the message lies between two.
pub(crate) fn by_generation(
    generated: &[Range<usize>],
    extent: &Extent,
    written: &[usize],
) -> Option<Vec<Range<usize>>> {
    let overlaps = |range: &&Range<usize>| range.start < extent.core.end && range.end > extent.core.start;
    let ranges: Vec<Range<usize>> = generated.iter().filter(overlaps).cloned().collect();
    let holds = |at: &usize| ranges.iter().any(|range| (range.start..=range.end).contains(at));
    (extent.admits(&ranges) && written.iter().all(holds)).then_some(ranges)
}

/// The generated ranges that hold strings of a message; `None` without any.
///
/// Only for templates whose ranges the golden corpus has proved: no second method says where they begin. A
/// template may write a string once more elsewhere (a call's name above its result); that all of the message
/// stands in the ranges is proved on the finished row.
pub(crate) fn by_corpus(generated: &[Range<usize>], written: &[usize]) -> Option<Vec<Range<usize>>> {
    let is_own = |range: &&Range<usize>| written.iter().any(|at| (range.start..=range.end).contains(at));
    let ranges: Vec<Range<usize>> = generated.iter().filter(is_own).cloned().collect();
    (!ranges.is_empty()).then_some(ranges)
}

#[cfg(test)]
// A list of one range is meant.
#[allow(clippy::single_range_in_vec_init)]
mod tests {
    use super::{by_corpus, by_generation};
    use crate::templates::spans::Extent;

    #[test]
    fn a_range_may_hold_the_prompt_but_no_more() {
        let extent = Extent { core: 10..20, outer: 5..22 };
        assert_eq!(by_generation(&[0..3, 10..20, 30..40], &extent, &[11, 18]), Some(vec![10..20]));
        assert_eq!(by_generation(&[5..22], &extent, &[11, 18]), Some(vec![5..22]));
        assert_eq!(by_generation(&[10..14, 16..21], &extent, &[11, 17]), Some(vec![10..14, 16..21]));
        assert_eq!(by_generation(&[10..14, 16..21], &extent, &[11, 15]), None);
        assert_eq!(by_generation(&[4..20], &extent, &[11]), None);
        assert_eq!(by_generation(&[10..19], &extent, &[11]), None);
        assert_eq!(by_generation(&[], &extent, &[]), None);
    }

    #[test]
    fn a_proved_range_holds_a_string() {
        assert_eq!(by_corpus(&[0..3, 10..20, 30..40], &[11, 18]), Some(vec![10..20]));
        assert_eq!(by_corpus(&[0..3, 10..20], &[11, 25]), Some(vec![10..20]));
        assert_eq!(by_corpus(&[0..3], &[]), None);
    }
}
