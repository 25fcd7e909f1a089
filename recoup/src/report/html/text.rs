//! Foreign text on a page: escaped, its invisible characters shown, its direction kept to itself.

use std::fmt::{self, Display, Formatter, Write};

use crate::visible::{visible_controls, visible_line};

/// Text of several lines, for an element that keeps white space.
pub(super) struct Block<'a>(pub(super) &'a str);

/// Text on one line, for the inside of an element. Isolated, so that right-to-left words within it do
/// not reorder what stands around it.
pub(super) struct Inline<'a>(pub(super) &'a str);

/// Text for a quoted attribute or a `<title>`.
pub(super) struct Plain<'a>(pub(super) &'a str);

impl Display for Block<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        escape(f, &visible_controls(self.0))
    }
}

impl Display for Inline<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("<bdi>")?;
        escape(f, &visible_line(self.0))?;
        f.write_str("</bdi>")
    }
}

impl Display for Plain<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        escape(f, &visible_line(self.0))
    }
}

fn escape(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        match c {
            '&' => f.write_str("&amp;")?,
            '<' => f.write_str("&lt;")?,
            '>' => f.write_str("&gt;")?,
            '"' => f.write_str("&quot;")?,
            '\'' => f.write_str("&#39;")?,
            c => f.write_char(c)?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Inline, Plain};

    #[test]
    fn nothing_closes_what_is_open() {
        assert_eq!(Plain("\" onload='x' </title>").to_string(), "&quot; onload=&#39;x&#39; &lt;/title&gt;");
        assert_eq!(Inline("</bdi>\x1b[2J").to_string(), "<bdi>&lt;/bdi&gt;␛[2J</bdi>");
    }
}
