//! The exact forms in which tools, shells and harnesses report that something failed.
//!
//! A form must stand where a report stands (at the start of the text or of a line), so that a page
//! or a file which merely speaks of errors is not taken for one.

use std::ops::Range;

use crate::trajectory::{Citation, Part, ToolResult};

/// Forms that open a whole observation.
const OPENINGS: &[&str] = &[
    "Error:",
    "ERROR:",
    "error:",
    "Error executing",
    "Error calling",
    "Error invoking",
    "Error during",
    "Exception:",
    "Traceback (most recent call last)",
    "Execution failed",
    "<error>",
    "<tool_use_error>",
    "[ERROR]",
    "Your proposed edit has introduced",
    "No such function name",
];

/// Forms that open a line anywhere in an observation.
const LINES: &[&str] = &["Traceback (most recent call last):", "bash: line ", "/bin/sh: 1: "];

/// Words before a process's exit code.
const EXIT_CODES: &[&str] = &[
    "exitcode: ",
    "exit code: ",
    "Exit code: ",
    "Exit code ",
    "<returncode>",
    "finished with exit code ",
    "completed with exit code ",
    "failed with exit code ",
];

/// Bytes of an observation that are searched for a report, at each end: reports open or close one.
const REACH: usize = 4_096;

/// The failure that a tool result reports: its structured fields first, then its text.
///
/// Returns the bytes that report it. A result that failed by its fields alone (its content says
/// nothing) is cited whole.
pub(crate) fn in_result(result: &ToolResult, node: usize, part: usize) -> Option<Citation> {
    let flagged = result.is_error == Some(true) || result.exit_code.is_some_and(|code| code != 0);
    let cleared = result.is_error == Some(false) || result.exit_code == Some(0);
    if cleared && !flagged {
        return None;
    }
    for (inner, text) in result.parts.iter().enumerate().filter_map(|(at, part)| Some((at, part.as_text()?)))
    {
        let range = in_text(text).or_else(|| flagged.then(|| first_line(text)).flatten());
        if let Some(range) = range {
            return Some(Citation { node, part_path: vec![part, inner], start: range.start, end: range.end });
        }
    }
    None
}

/// Whether a result failed, even where no byte of it says so.
pub(crate) fn is_failure(result: &ToolResult) -> bool {
    result.is_error == Some(true)
        || result.exit_code.is_some_and(|code| code != 0)
        || (result.is_error.is_none()
            && result.exit_code.is_none()
            && result.parts.iter().filter_map(Part::as_text).any(|text| in_text(text).is_some()))
}

/// The range of a report in an observation's text, or `None` where it reports no failure.
pub(crate) fn in_text(text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    let head = &text[start..];
    if OPENINGS.iter().any(|form| head.starts_with(form)) {
        return if head.starts_with(LINES[0].trim_end_matches(':')) { named_error(text) } else { None }
            .or_else(|| first_line(text));
    }
    if let Some(range) = json_error(head) {
        return Some(start + range.start..start + range.end);
    }
    let (front, back) = ends(text);
    for region in [front, back].into_iter().flatten() {
        for form in EXIT_CODES {
            if let Some(range) = failed_exit(text, region.clone(), form) {
                return Some(named_error(text).unwrap_or(range));
            }
        }
        for form in LINES {
            if let Some(at) = line_start(text, region.clone(), form) {
                return Some(named_error(text).unwrap_or(at..line_end(text, at)));
            }
        }
    }
    None
}

/// The first line that holds something, without surrounding white space.
pub(crate) fn first_line(text: &str) -> Option<Range<usize>> {
    let start = text.len() - text.trim_start().len();
    (start < text.len()).then(|| start..line_end(text, start))
}

/// The first and the last [`REACH`] bytes; one region where they meet.
fn ends(text: &str) -> (Option<Range<usize>>, Option<Range<usize>>) {
    if text.len() <= 2 * REACH {
        return (Some(0..text.len()), None);
    }
    (Some(0..text.floor_char_boundary(REACH)), Some(text.ceil_char_boundary(text.len() - REACH)..text.len()))
}

/// The last line that names an exception (`ValueError: …`), near the end or else near the start: what a
/// reader wants of a failed program.
fn named_error(text: &str) -> Option<Range<usize>> {
    let (front, back) = ends(text);
    [back, front].into_iter().flatten().find_map(|region| {
        let mut offset = region.end;
        for line in text[region].rsplit('\n') {
            let start = offset - line.len();
            offset = start.saturating_sub(1);
            let name = line.split(':').next().unwrap_or_default();
            let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            if is_name && line.len() > name.len() && (name.ends_with("Error") || name.ends_with("Exception"))
            {
                return Some(start..start + line.trim_end().len());
            }
        }
        None
    })
}

fn line_end(text: &str, start: usize) -> usize {
    let line = &text[start..];
    let line = &line[..memchr::memchr(b'\n', line.as_bytes()).unwrap_or(line.len())];
    start + line.trim_end().len()
}

fn line_start(text: &str, region: Range<usize>, form: &str) -> Option<usize> {
    let offset = region.start;
    memchr::memmem::find_iter(&text.as_bytes()[region], form)
        .map(|at| offset + at)
        .find(|at| *at == 0 || text.as_bytes()[at - 1] == b'\n')
}

/// `form` at the start of a line (or after `[`), followed by a number that is not 0.
fn failed_exit(text: &str, region: Range<usize>, form: &str) -> Option<Range<usize>> {
    let offset = region.start;
    for at in memchr::memmem::find_iter(&text.as_bytes()[region], form).map(|at| offset + at) {
        let line = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let before = text[line..at].trim_start();
        if !before.is_empty() && !before.starts_with('[') {
            continue;
        }
        let digits_at = at + form.len();
        let digits = &text[digits_at..];
        let sign = usize::from(digits.starts_with('-'));
        let len = sign + digits[sign..].bytes().take_while(u8::is_ascii_digit).count();
        let code: Option<i64> = digits[..len].parse().ok();
        if code.is_some_and(|code| code != 0) {
            return Some(line + (text[line..at].len() - before.len())..digits_at + len);
        }
    }
    None
}

/// `{"error": "…"` with something in it, as wrapped tools answer.
fn json_error(head: &str) -> Option<Range<usize>> {
    let inside = head.strip_prefix('{')?.trim_start();
    let value = inside.strip_prefix("\"error\"").or_else(|| inside.strip_prefix("'error'"))?;
    let value = value.trim_start().strip_prefix(':')?.trim_start();
    let start = head.len() - value.len();
    let empty = ["\"\"", "''", "null", "None", "false", "False", "{}", "[]"];
    if value.is_empty() || empty.iter().any(|nothing| value.starts_with(nothing)) {
        return None;
    }
    let quote = value.as_bytes().first().copied().filter(|byte| matches!(byte, b'"' | b'\''))?;
    let text = &value[1..];
    let len = memchr::memchr(quote, text.as_bytes()).unwrap_or(text.len());
    (len > 0).then(|| start + 1..start + 1 + len)
}

#[cfg(test)]
mod tests {
    use super::{in_result, in_text, is_failure};
    use crate::trajectory::{Part, ToolResult};

    fn quoted(text: &str) -> Option<&str> {
        in_text(text).map(|range| &text[range])
    }

    #[test]
    fn reports_of_failure_are_found_and_cited() {
        assert_eq!(quoted("Error: no seats\nmore"), Some("Error: no seats"));
        assert_eq!(quoted("exitcode: 1 (execution failed)\nCode output: x"), Some("exitcode: 1"));
        assert_eq!(quoted("<returncode>127</returncode>"), Some("<returncode>127"));
        assert_eq!(quoted("[Command finished with exit code 2]"), Some("[Command finished with exit code 2"));
        assert_eq!(
            quoted("out\nTraceback (most recent call last):\n  File"),
            Some("Traceback (most recent call last):")
        );
        assert_eq!(
            quoted("exitcode: 1 (execution failed)\nTraceback …\nValueError: no column\n"),
            Some("ValueError: no column")
        );
        assert_eq!(quoted(r#"{"error": "no such city", "response": ""}"#), Some("no such city"));
    }

    #[test]
    fn text_about_errors_is_no_error() {
        for text in [
            "exitcode: 0 (execution succeeded)\nCode output: 1",
            "<returncode>0</returncode>",
            r#"{"error": "", "response": "fine"}"#,
            "The page explains Error: handling and why a Traceback (most recent call last) is printed",
            "see exit code: 1 in the manual",
            "",
        ] {
            assert_eq!(quoted(text), None, "{text}");
        }
    }

    #[test]
    fn fields_go_before_text() {
        let mut result = ToolResult {
            call_id: None,
            parts: vec![Part::text("Error: a line of the log it was asked for")],
            is_error: Some(false),
            exit_code: None,
        };
        assert!(!is_failure(&result) && in_result(&result, 3, 0).is_none());
        (result.is_error, result.parts) = (Some(true), vec![Part::text("not allowed")]);
        assert!(is_failure(&result));
        assert_eq!(in_result(&result, 3, 0).map(|at| (at.node, at.end)), Some((3, 11)));
    }
}
