//! Invisible characters made visible, before text that others wrote reaches a terminal or a page.
//!
//! A terminal obeys control characters (C0, DEL, C1, of which ESC and CSI start sequences that move the
//! cursor, set the title or answer on standard input); bidirectional controls reorder what a person
//! reads; tag and zero-width characters hide text in plain sight. Each becomes a picture or its code
//! point, so the reader sees that something was there. What a reader needs to read a script or an emoji
//! (U+200C, U+200D, variation selectors) stays.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every invisible character but line feed and tab shown as `␛` or `⟨U+202E⟩`.
/// A carriage return is shown too: alone it lets a line overwrite itself.
pub fn visible_controls(text: &str) -> Cow<'_, str> {
    rewrite(text, |c| c != '\n' && c != '\t' && is_invisible(c))
}

/// [`visible_controls`] for a single line: line feed and tab are shown as `␊` and `␉` as well.
pub fn visible_line(text: &str) -> Cow<'_, str> {
    rewrite(text, is_invisible)
}

/// Whether a character acts on the reader's screen instead of appearing on it.
pub fn is_invisible(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn rewrite(text: &str, shown: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&shown) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if shown(c) { push_picture(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

fn push_picture(out: &mut String, c: char) {
    match u32::from(c) {
        // The block "Control Pictures" mirrors C0.
        code @ 0..0x20 => out.extend(char::from_u32(0x2400 + code)),
        0x7f => out.push('␡'),
        // Writing to a string cannot fail.
        code => _ = write!(out, "⟨U+{code:04X}⟩"),
    }
}

#[cfg(test)]
mod tests {
    use super::{visible_controls, visible_line};

    #[test]
    fn plain_text_is_borrowed() {
        assert!(matches!(visible_controls("naïve 👩‍🚀\n\tok"), std::borrow::Cow::Borrowed(_)));
    }

    #[test]
    fn escape_sequences_cannot_start() {
        assert_eq!(visible_controls("\x1b]0;pwned\x07\u{9b}2J\x7f\r"), "␛]0;pwned␇⟨U+009B⟩2J␡␍");
    }

    #[test]
    fn reordering_and_hidden_text_show() {
        assert_eq!(
            visible_controls("a\u{202e}b\u{2066}c\u{200b}\u{e0041}"),
            "a⟨U+202E⟩b⟨U+2066⟩c⟨U+200B⟩⟨U+E0041⟩"
        );
    }

    #[test]
    fn a_line_stays_a_line() {
        assert_eq!(visible_line("a\nb\tc"), "a␊b␉c");
    }
}
