//! Markdown: text that others wrote, kept within fences that it cannot leave.

use std::fmt::{self, Write};

use crate::visible::{visible_controls, visible_line};

/// This program's own words, which may hold the name of a file or a detector but no trace text.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible_line(text).chars() {
        if r"\`*[]<>|&!#~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A code span on one line.
pub(crate) fn code(text: &str) -> String {
    let text = visible_line(text);
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let fence = "`".repeat(longest_backtick_run(&text) + 1);
    // One space on each side is not part of the span, and keeps a backtick at its edge apart.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span in a table.
pub(crate) fn cell(text: &str) -> String {
    code(&text.replace('|', "│"))
}

/// A fenced block.
pub(crate) fn fenced(out: &mut String, text: &str) -> fmt::Result {
    let text = visible_controls(text);
    let fence = "`".repeat((longest_backtick_run(&text) + 1).max(3));
    writeln!(out, "{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{cell, code, fenced};

    #[test]
    fn a_span_cannot_be_left() {
        assert_eq!(code("a ``` b"), "````a ``` b````");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("x\n\n# heading"), "`x␊␊# heading`");
        assert_eq!(code(""), "` `");
        assert_eq!(cell(r"a\|b"), r"`a\│b`");
    }

    #[test]
    fn a_block_cannot_be_left() {
        let mut out = String::new();
        fenced(&mut out, "```\n![x](https://example.invalid)\n````").unwrap();
        assert_eq!(out, "`````text\n```\n![x](https://example.invalid)\n````\n`````\n\n");
    }
}
