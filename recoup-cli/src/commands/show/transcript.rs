//! The messages of a run, for a person, with what a diagnosis cites marked.

use std::fmt::Write as _;

use recoup::trajectory::{Citation, Node, Part, Trajectory};
use recoup::verdict::Diagnosis;
use recoup::visible::visible_controls;

use crate::printer::{Look, Printer};

/// Characters of one part that are shown without `--full`, around citations whole.
const PART_CHARS_MAX: usize = 1200;

/// The messages of a run's main branch, what a diagnosis names marked in them.
pub(in crate::commands) fn transcript(
    out: &mut String,
    run: &Trajectory,
    diagnosis: Option<&Diagnosis>,
    full: bool,
    printer: Printer,
) {
    let branch = run.main_branch();
    let citations: Vec<&Citation> = diagnosis
        .map(|diagnosis| diagnosis.citations.iter().map(|quote| &quote.at).collect())
        .unwrap_or_default();
    let mut step = 0;
    for (index, (position, node)) in branch.nodes().enumerate() {
        let decisive = diagnosis.is_some_and(|diagnosis| diagnosis.decisive_node == position);
        let mut title = format!("node {index}");
        if node.occurrence.sampled {
            let _ = write!(title, " · step {step}");
            step += 1;
        }
        let _ = write!(title, " · {}", node.role.as_str());
        if node.agent != node.role.as_str() {
            let _ = write!(title, " · {}", visible_controls(&node.agent));
        }
        if node.occurrence.copied_context {
            title.push_str(" · copied context");
        }
        if decisive {
            title.push_str("  ◀ decisive step");
        }
        let look = if decisive { Look::Red } else { Look::Bold };
        let _ = writeln!(out, "\n{}", printer.paint(look, title));
        body(out, position, node, &citations, full, printer);
    }
    let hidden = run.nodes.len() - branch.len();
    if hidden > 0 {
        let text = format!("\n{hidden} more nodes on {} other branches", run.leaves.len() - 1);
        let _ = writeln!(out, "{}", printer.paint(Look::Dim, text));
    }
}

fn body(
    out: &mut String,
    position: usize,
    node: &Node,
    citations: &[&Citation],
    full: bool,
    printer: Printer,
) {
    for (index, part) in node.parts.iter().enumerate() {
        show_part(out, position, &[index], part, citations, full, printer);
    }
}

fn show_part(
    out: &mut String,
    position: usize,
    path: &[usize],
    part: &Part,
    citations: &[&Citation],
    full: bool,
    printer: Printer,
) {
    let cited: Vec<(usize, usize)> = citations
        .iter()
        .filter(|citation| citation.node == position && citation.part_path == path)
        .map(|citation| (citation.start, citation.end))
        .collect();
    match part {
        Part::Text(text) => indented(out, "", &marked(&text.text, &cited, full, printer)),
        Part::Reasoning { text, .. } => indented(out, "reasoning: ", &marked(text, &cited, full, printer)),
        Part::ToolCall(call) => {
            let name = printer.paint(Look::Bold, visible_controls(&call.name));
            indented(out, "call ", &format!("{name} {}", marked(&call.arguments_raw, &cited, full, printer)));
        }
        Part::ToolResult(result) => {
            let mut label = "result".to_owned();
            if result.is_error == Some(true) {
                label.push_str(" (error)");
            }
            if let Some(code) = result.exit_code {
                let _ = write!(label, " (exit code {code})");
            }
            if result.parts.is_empty() {
                indented(out, &format!("{label}: "), "(empty)");
            }
            for (inner, part) in result.parts.iter().enumerate() {
                let path = [path[0], inner];
                let mut text = String::new();
                show_part(&mut text, position, &path, part, citations, full, printer);
                indented(out, &format!("{label}: "), text.trim_start());
            }
        }
        Part::Media(media) => {
            let reference = media.reference.as_deref().unwrap_or("stored");
            indented(out, "", &visible_controls(&format!("[{}: {reference}]", media.mime)));
        }
        Part::Opaque { kind, raw } => {
            indented(out, &format!("[{}] ", visible_controls(kind)), &marked(raw, &cited, full, printer));
        }
    }
}

fn indented(out: &mut String, label: &str, text: &str) {
    for (number, line) in text.trim_end_matches('\n').split('\n').enumerate() {
        let label = if number == 0 { label } else { "" };
        let _ = writeln!(out, "  {label}{line}");
    }
}

/// The text with its citations marked (`⟦…⟧` where there are no colors), shortened around them.
fn marked(text: &str, cited: &[(usize, usize)], full: bool, printer: Printer) -> String {
    let mut cited: Vec<(usize, usize)> =
        cited.iter().copied().filter(|(start, end)| text.get(*start..*end).is_some()).collect();
    cited.sort_unstable();
    let mut out = String::new();
    let mut at = 0;
    for (start, end) in cited {
        if start < at {
            continue;
        }
        out.push_str(&shortened(&text[at..start], full));
        let quote = visible_controls(&text[start..end]);
        if printer.has_colors() {
            out.push_str(&printer.paint(Look::Mark, quote));
        } else {
            let _ = write!(out, "⟦{quote}⟧");
        }
        at = end;
    }
    out.push_str(&shortened(&text[at..], full));
    out
}

fn shortened(text: &str, full: bool) -> String {
    let count = text.chars().count();
    if full || count <= PART_CHARS_MAX {
        return visible_controls(text).into_owned();
    }
    let head: String = text.chars().take(PART_CHARS_MAX / 2).collect();
    let tail: String = text.chars().skip(count - PART_CHARS_MAX / 2).collect();
    let left_out = count - PART_CHARS_MAX;
    format!(
        "{} […{left_out} characters, `--full` shows them…] {}",
        visible_controls(&head),
        visible_controls(&tail)
    )
}
