//! Text as a judge reads it: what hides from a person is written out, and every byte knows its source.
//!
//! Zero-width, tag and bidirectional characters carry orders that nobody sees. They are shown by their
//! code points ([`crate::visible`]); a quote that runs over one is translated back to the bytes it stands
//! for.

use std::ops::Range;

use crate::visible::{is_invisible, visible_line};

/// Characters that a text replaced: the same place in both.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Replaced {
    source: Range<usize>,
    shown: Range<usize>,
}

/// Where bytes of a shown text stand in its source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shifts(Vec<Replaced>);

/// Appends a text to `out` with what is invisible written out. Line ends and tabs stay.
pub(super) fn push_visible(out: &mut String, text: &str) -> Shifts {
    let start = out.len();
    let mut shifts = Vec::new();
    let mut from = 0;
    for (at, c) in text.char_indices().filter(|(_, c)| !matches!(c, '\n' | '\r' | '\t') && is_invisible(*c)) {
        out.push_str(&text[from..at]);
        let shown = out.len() - start;
        from = at + c.len_utf8();
        out.push_str(&visible_line(&text[at..from]));
        shifts.push(Replaced { source: at..from, shown: shown..out.len() - start });
    }
    out.push_str(&text[from..]);
    Shifts(shifts)
}

impl Shifts {
    /// A range of the shown text, in the source. One that cuts into a written-out character grows over
    /// it.
    pub(super) fn to_source(&self, range: &Range<usize>) -> Range<usize> {
        let before = |at: usize| {
            let index = self.0.partition_point(|replaced| replaced.shown.end <= at);
            let (shown, source) =
                index.checked_sub(1).map_or((0, 0), |last| (self.0[last].shown.end, self.0[last].source.end));
            (self.0.get(index), source + (at - shown))
        };
        let start = match before(range.start) {
            (Some(replaced), _) if replaced.shown.start < range.start => replaced.source.start,
            (_, shifted) => shifted,
        };
        let end = match before(range.end) {
            (Some(replaced), _) if replaced.shown.start < range.end => replaced.source.end,
            (_, shifted) => shifted,
        };
        start..end
    }
}

#[cfg(test)]
mod tests {
    use super::push_visible;

    #[test]
    fn hidden_characters_show_and_quotes_translate() {
        let text = "a\u{200b}b\u{1b}[0m\r\nc";
        let mut out = "> ".to_owned();
        let shifts = push_visible(&mut out, text);
        assert_eq!(out, "> a⟨U+200B⟩b␛[0m\r\nc");
        let shown = &out[2..];
        for (quote, source) in
            [("a", "a"), ("b", "b"), ("⟨U+200B⟩b", "\u{200b}b"), ("200B", "\u{200b}"), ("c", "c")]
        {
            let at = shown.find(quote).unwrap();
            assert_eq!(&text[shifts.to_source(&(at..at + quote.len()))], source, "{quote}");
        }
    }
}
