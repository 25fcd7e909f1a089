//! Rows as they stand in a file, with what is learned highlighted.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use recoup::exporters::trl_tokenized::IGNORED;
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

/// Shows the first rows of a file. Without colors what is learned stands between `⟦` and `⟧`.
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

fn shown(row: &Row, format: &ChatFormat, printer: Printer) -> String {
    let mut out = String::new();
    let tokens: Vec<(u32, bool)> =
        row.input_ids.iter().zip(&row.labels).map(|(id, label)| (*id, *label != IGNORED)).collect();
    for run in tokens.chunk_by(|left, right| left.1 == right.1) {
        let ids: Vec<u32> = run.iter().map(|(id, _)| *id).collect();
        let bytes = format.tokenizer().decode(&ids).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let text = visible_controls(&text);
        let is_learned = run.first().is_some_and(|(_, learned)| *learned);
        match (is_learned, printer.has_colors()) {
            (true, true) => out.push_str(&printer.paint(Look::Green, text)),
            (true, false) => {
                out.push('⟦');
                out.push_str(&text);
                out.push('⟧');
            }
            (false, _) => out.push_str(&printer.paint(Look::Dim, text)),
        }
    }
    out
}
