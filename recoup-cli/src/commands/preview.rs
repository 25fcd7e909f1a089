//! Rows, or the examples that they were made of, with what is learned highlighted.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use recoup::exporters::trl_tokenized::IGNORED;
use recoup::report::Preview;
use recoup::templates::ChatFormat;
use recoup::visible::visible_controls;
use serde::Deserialize;

use crate::failure::Failure;
use crate::printer::{Look, Printer};

/// What of a row is shown.
#[derive(Deserialize)]
struct Row {
    input_ids: Vec<u32>,
    labels: Vec<i64>,
}

/// Shows the first rows of a file of tokens.
pub(super) fn rows(path: &Path, format: &ChatFormat, count: usize, printer: Printer) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::machine("cannot read", &error).within(path);
    let lines = BufReader::new(File::open(path).map_err(failed)?).lines();
    for (index, line) in lines.take(count).enumerate() {
        let line = line.map_err(failed)?;
        let row: Row = serde_json::from_str(&line).map_err(|error| failed(error.into()))?;
        let learned = row.labels.iter().filter(|label| **label != IGNORED).count();
        let head = format!("row {}: {} tokens, {learned} learned", index + 1, row.input_ids.len());
        printer.line(printer.paint(Look::Bold, head));
        printer.line(shown(&row, format, printer));
    }
    Ok(())
}

/// Shows examples that rows of text were made of, shortened as the report has them.
pub(super) fn examples(previews: &[Preview], printer: Printer) {
    for (index, example) in previews.iter().enumerate() {
        let word = example.word.as_ref().map(|word| format!(", {word}")).unwrap_or_default();
        let head = format!("example {} of run {}{word}", index + 1, example.run);
        printer.line(printer.paint(Look::Bold, head));
        for message in &example.messages {
            if message.left_out > 0 {
                printer.line(format_args!("({} messages)", message.left_out));
            }
            let mut out = format!("{}: ", message.role);
            for (index, piece) in message.pieces.iter().enumerate() {
                if index > 0 && !piece.continues {
                    out.push('\n');
                }
                out.push_str(&highlighted(&piece.text, piece.learned, printer));
                if piece.left_out > 0 {
                    out.push('…');
                }
            }
            printer.line(out);
        }
    }
}

fn shown(row: &Row, format: &ChatFormat, printer: Printer) -> String {
    let mut out = String::new();
    let tokens: Vec<(u32, bool)> =
        row.input_ids.iter().zip(&row.labels).map(|(id, label)| (*id, *label != IGNORED)).collect();
    for run in tokens.chunk_by(|left, right| left.1 == right.1) {
        let ids: Vec<u32> = run.iter().map(|(id, _)| *id).collect();
        let bytes = format.tokenizer().decode(&ids).unwrap_or_default();
        let is_learned = run.first().is_some_and(|(_, learned)| *learned);
        out.push_str(&highlighted(&String::from_utf8_lossy(&bytes), is_learned, printer));
    }
    out
}

/// A stretch of text. Without colors what is learned stands between `⟦` and `⟧`.
fn highlighted(text: &str, is_learned: bool, printer: Printer) -> String {
    let text = visible_controls(text);
    match (is_learned, printer.has_colors()) {
        (true, true) => printer.paint(Look::Green, text),
        (true, false) => format!("⟦{text}⟧"),
        (false, _) => printer.paint(Look::Dim, text),
    }
}
