//! Python's idea of white space, of lines and of characters that can be printed.

use std::sync::LazyLock;

use regex::Regex;

/// What `str.isspace` is true of: Unicode's white space and the four separators of ASCII.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

/// Where `str.splitlines` ends a line; `\r\n` is one end.
pub(crate) fn ends_line(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// What `str.isprintable` is false of: controls, formats, private and unassigned characters, and every
/// separator but the space.
pub(crate) fn is_printable(c: char) -> bool {
    static UNPRINTABLE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^[\p{C}\p{Z}]$").ok());
    if c.is_ascii() {
        return !c.is_ascii_control();
    }
    let mut buffer = [0; 4];
    UNPRINTABLE.as_ref().is_none_or(|regex| !regex.is_match(c.encode_utf8(&mut buffer)))
}

#[cfg(test)]
mod tests {
    use super::{is_printable, is_space};

    #[test]
    fn ascii_separators_are_space_and_zero_width_is_not_printable() {
        assert!(is_space('\u{1f}') && is_space('\u{3000}') && !is_space('\u{200b}'));
        assert!(is_printable('é') && is_printable(' ') && is_printable('日'));
        assert!(!is_printable('\u{200b}') && !is_printable('\u{a0}') && !is_printable('\u{e000}'));
    }
}
