//! Reasoning that stands in the text: `<think>…</think>` before the turn, as open models write it.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// Reasoning at the start of a text, and the rest without the blank lines between.
///
/// Some servers give the end alone, for the template has written the start.
pub(super) fn split(text: &str) -> (Option<&str>, &str) {
    let start = text.trim_start();
    let body = start.strip_prefix(OPEN);
    match body.unwrap_or(start).split_once(CLOSE) {
        Some((reasoning, rest)) if body.is_some() || !reasoning.contains(OPEN) => {
            (Some(reasoning.trim()), rest.trim_start_matches(['\n', '\r']))
        }
        // It was cut before it came to its turn.
        None if body.is_some() => (body.map(str::trim), ""),
        _ => (None, text),
    }
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn reasoning_is_told_from_the_turn() {
        assert_eq!(split("<think>\nwhy\n</think>\n\ngo"), (Some("why"), "go"));
        assert_eq!(split("why</think>\ngo"), (Some("why"), "go"));
        assert_eq!(split("<think>endless"), (Some("endless"), ""));
        assert_eq!(split(" go\n"), (None, " go\n"));
    }
}
