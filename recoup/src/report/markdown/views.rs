//! What each view teaches: runs in, rows out, why not the others, and an example with what is learned marked.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::super::model::{Preview, Report};
use super::super::wording::{counted, learned, number, size, tokens};
use super::counts;
use crate::fence::{cell, fenced};

/// What stands around a stretch that is learned. A run's own such marks are shown as they are.
const MARKS: (char, char) = ('⟦', '⟧');

pub(super) fn views(out: &mut String, report: &Report) -> fmt::Result {
    if report.exports.is_empty() {
        return Ok(());
    }
    writeln!(out, "## What was written\n")?;
    writeln!(
        out,
        "| View | Format | File | Rows | Runs considered | Excluded | Equal rows | Refused rows | Redacted |"
    )?;
    writeln!(out, "| --- | --- | --- | ---: | ---: | --- | ---: | --- | --- |")?;
    for export in &report.exports {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            cell(&export.view),
            cell(&export.format),
            cell(&export.path),
            number(export.rows),
            number(export.considered),
            counts(export.excluded.iter()),
            number(export.duplicates),
            counts(export.refused.iter()),
            counts(export.redactions.iter())
        )?;
    }
    writeln!(out)?;
    built(out, report)?;
    token_counts(out, report)?;
    for export in &report.exports {
        // One example is enough for a terminal.
        let Some(preview) = export.previews.first() else { continue };
        writeln!(
            out,
            "An example of {}, shortened; what is learned stands in {}{}:\n",
            cell(&export.view),
            MARKS.0,
            MARKS.1
        )?;
        fenced(out, &text(preview))?;
    }
    Ok(())
}

/// What the views built, in numbers.
fn built(out: &mut String, report: &Report) -> fmt::Result {
    if report.exports.iter().all(|export| export.built.examples == 0) {
        return Ok(());
    }
    writeln!(out, "| View | Examples | Text | Learned | Objective | Rests on | Weights | Labels |")?;
    writeln!(out, "| --- | ---: | ---: | --- | --- | --- | --- | --- |")?;
    for export in report.exports.iter().filter(|export| export.built.examples > 0) {
        let built = &export.built;
        let objectives: BTreeMap<String, u64> =
            built.objectives.iter().map(|(key, count)| (key.as_str().to_owned(), *count)).collect();
        let evidence: BTreeMap<String, u64> =
            built.evidence.iter().map(|(key, count)| (key.as_str().to_owned(), *count)).collect();
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            cell(&export.view),
            number(built.examples),
            size(built.bytes),
            learned(built),
            counts(objectives.iter()),
            counts(evidence.iter()),
            counts(built.weights.iter()),
            counts(built.labels.iter())
        )?;
    }
    writeln!(out)
}

/// What the rows count in tokens of the model that they are made for.
fn token_counts(out: &mut String, report: &Report) -> fmt::Result {
    if report.exports.iter().all(|export| export.tokens.is_none()) {
        return writeln!(
            out,
            "Tokens are counted where a model is named: `recoup run … --model DIR` makes and proves every row for it.\n"
        );
    }
    writeln!(out, "In tokens of the model that the rows are made for:\n")?;
    for export in &report.exports {
        if let Some(counts) = &export.tokens {
            writeln!(out, "- {}: {}", cell(&export.view), tokens(counts))?;
        }
    }
    writeln!(out)
}

fn text(preview: &Preview) -> String {
    let mut text = String::new();
    if let Some(word) = &preview.word {
        text.push_str(word);
        text.push('\n');
    }
    for message in &preview.messages {
        if message.left_out > 0 {
            let left_out = counted(message.left_out, "message left out", "messages left out");
            let _ = writeln!(text, "({left_out})");
        }
        let label = message.label.as_ref().map(|label| format!(" ({label})")).unwrap_or_default();
        let _ = write!(text, "{}{label}: ", message.role);
        for (at, piece) in message.pieces.iter().enumerate() {
            if at > 0 && !piece.continues {
                text.push('\n');
            }
            if piece.learned {
                text.extend([MARKS.0.to_string().as_str(), &piece.text, MARKS.1.to_string().as_str()]);
            } else {
                text.push_str(&piece.text);
            }
            if piece.left_out > 0 {
                let _ = write!(text, " … {}", counted(piece.left_out, "character more", "characters more"));
            }
        }
        text.push('\n');
    }
    text
}
