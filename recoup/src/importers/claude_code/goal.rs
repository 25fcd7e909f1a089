//! The goal of a session: what its user asked first.

use super::line::Line;

/// The first request, passing over what the harness wrote in the user's name. A summary of what came
/// before says it where nobody asks anything.
pub(super) fn goal(lines: &[Line]) -> Option<&str> {
    const HARNESS: [&str; 3] = ["<command-", "<local-command-", "Caveat: The messages below"];
    let main = lines.iter().any(|line| line.message.is_some() && !line.sidechain);
    let first = |summary: bool| {
        let asked =
            lines.iter().filter(|line| line.kind == "user" && !line.meta && !(main && line.sidechain));
        let asked = asked.filter(|line| line.is_compact_summary() == summary);
        let mut texts = asked.filter_map(|line| line.message.as_ref()?.parts.first()?.as_text());
        texts.find(|text| !HARNESS.iter().any(|start| text.starts_with(start)))
    };
    first(false).or_else(|| first(true))
}
