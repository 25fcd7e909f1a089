//! The JSON twin.

use std::fmt::Write;

use crate::visible::is_invisible;

use super::model::Report;

/// The report as indented JSON with a final line feed. Characters that act on a screen are written as
/// `\u` escapes, so the file may be looked at in a terminal and still holds the exact text.
pub fn json(report: &Report) -> String {
    // Every map has string keys and every number is finite, so this cannot fail.
    let plain = serde_json::to_string_pretty(report).unwrap_or_default();
    let mut out = String::with_capacity(plain.len() + 1);
    for c in plain.chars() {
        if c != '\n' && is_invisible(c) {
            // They stand within strings only; JSON itself is ASCII.
            for unit in c.encode_utf16(&mut [0; 2]) {
                _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out.push('\n');
    out
}
