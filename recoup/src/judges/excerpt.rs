//! An excerpt: which bytes of a long text are shown, what must be seen always among them.

use std::ops::Range;

/// Least bytes kept at each end of a text that is cut.
const END_MIN: usize = 24;
/// Bytes around what must be seen, where there is room.
const AROUND: usize = 240;

/// Ranges of `text` to show, in order and disjoint, of about `cap` bytes. What is in `focus` is shown
/// whatever the cap, up to `focus_max` bytes of each.
pub(super) fn excerpt(text: &str, cap: usize, focus: &[Range<usize>], focus_max: usize) -> Vec<Range<usize>> {
    if text.len() <= cap {
        return std::iter::once(0..text.len()).filter(|range| !range.is_empty()).collect();
    }
    let around = (cap / (2 * focus.len().max(1))).min(AROUND);
    let mut kept: Vec<Range<usize>> = focus
        .iter()
        .filter(|range| range.start < range.end && range.end <= text.len())
        .flat_map(|range| ends(range, focus_max))
        .map(|range| range.start.saturating_sub(around)..(range.end + around).min(text.len()))
        .collect();
    let spent: usize = kept.iter().map(Range::len).sum();
    let end = (cap.saturating_sub(spent) / 2).max(END_MIN);
    kept.push(0..end.min(text.len()));
    kept.push(text.len().saturating_sub(end)..text.len());
    for range in &mut kept {
        *range = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
    }
    merged(kept)
}

/// The whole range, or its two ends where it is too long.
fn ends(range: &Range<usize>, most: usize) -> Vec<Range<usize>> {
    if range.len() <= most {
        return vec![range.clone()];
    }
    vec![range.start..range.start + most / 2, range.end - most / 2..range.end]
}

/// The same bytes in order, ranges that touch or nearly touch made one.
fn merged(mut ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    ranges.sort_by_key(|range| (range.start, range.end));
    let mut out: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match out.last_mut() {
            // To say that forty bytes are left out takes more than the bytes.
            Some(last) if range.start <= last.end + 40 => last.end = last.end.max(range.end),
            _ => out.push(range),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::excerpt;

    fn focus(range: Range<usize>) -> Vec<Range<usize>> {
        std::iter::once(range).collect()
    }

    #[test]
    fn what_fits_is_whole_and_what_must_be_seen_is_seen() {
        assert_eq!(excerpt("short", 10, &[], 100), focus(0..5));
        assert!(excerpt("", 10, &[], 100).is_empty());
        let text = "a".repeat(10_000);
        let shown = excerpt(&text, 400, &focus(5_000..5_020), 100);
        assert_eq!(shown.len(), 3);
        assert!(shown[1].start < 5_000 && shown[1].end > 5_020, "{shown:?}");
        assert!(shown.iter().map(ExactSizeIterator::len).sum::<usize>() < 700, "{shown:?}");
        assert_eq!((shown[0].start, shown[2].end), (0, 10_000));
    }

    #[test]
    fn characters_are_not_split() {
        let text = "é".repeat(5_000);
        for range in excerpt(&text, 101, &focus(3_001..3_003), 100) {
            assert!(text.get(range.clone()).is_some(), "{range:?}");
        }
    }

    #[test]
    fn a_focus_that_is_too_long_shows_its_ends() {
        let text = "a".repeat(10_000);
        let shown = excerpt(&text, 60, &focus(2_000..8_000), 100);
        assert!(shown.iter().map(ExactSizeIterator::len).sum::<usize>() < 400, "{shown:?}");
    }
}
