//! What each view teaches: runs in, rows out, why not the others, and a few examples with what is learned marked.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::super::input::ExportRow;
use super::super::model::{Piece, Preview, PreviewMessage, Report};
use super::super::wording::{counted, learned, number, runs, size, tokens};
use super::failures::counts;
use super::text::{Block, Inline, Plain};

/// Digits of a run's id that are shown.
const ID_DIGITS: usize = 16;

/// A card a view, then the examples.
pub(super) fn views(out: &mut String, report: &Report) -> fmt::Result {
    if report.exports.is_empty() {
        return Ok(());
    }
    super::section(
        out,
        "exports",
        "What was written",
        "A training file for each view, redacted. A view looks at every run, takes what it can learn from and says why \
         not the others; equal examples are written once.",
    )?;
    out.push_str("<div class=cards>");
    for export in &report.exports {
        card(out, export)?;
    }
    out.push_str("</div>");
    if report.exports.iter().all(|export| export.tokens.is_none()) {
        out.push_str(
            "<p class=how>Tokens are counted where a model is named: <code>recoup run … --model DIR</code> makes and \
             proves every row for it.</p>",
        );
    }
    if report.exports.iter().any(|export| !export.previews.is_empty()) {
        out.push_str(
            "<h3>Examples</h3><p class=how>The first ones of each view, shortened. What a trainer learns is marked \
             <mark>like this</mark>; the rest is context.</p>",
        );
    }
    for export in report.exports.iter().filter(|export| !export.previews.is_empty()) {
        let shown = export.previews.len() as u64;
        write!(
            out,
            "<details><summary>{} <small>{} of {}</small></summary><div class=opened>",
            Inline(&export.view),
            number(shown),
            counted(export.built.examples.max(shown), "example", "examples")
        )?;
        for preview in &export.previews {
            example(out, preview)?;
        }
        out.push_str("</div></details>");
    }
    out.push_str("</section>");
    Ok(())
}

fn card(out: &mut String, export: &ExportRow) -> fmt::Result {
    write!(
        out,
        "<article class=card><h3>{}</h3><p class=big><b>{}</b> {}</p><p class=muted>from {} considered, as {}</p>\
         <p><code>{}</code></p>",
        Inline(&export.view),
        number(export.rows),
        if export.rows == 1 { "row" } else { "rows" },
        runs(export.considered),
        Inline(&export.format),
        Inline(&export.path)
    )?;
    let built = &export.built;
    if built.examples > 0 {
        write!(
            out,
            "<p class=muted>{} of {}, {}</p>",
            counted(built.examples, "example", "examples"),
            size(built.bytes),
            learned(built)
        )?;
    }
    if let Some(counts) = &export.tokens {
        write!(out, "<p class=muted>{}</p>", Plain(&tokens(counts)))?;
    }
    let named = |words: &mut dyn Iterator<Item = (&'static str, u64)>| -> BTreeMap<String, u64> {
        words.map(|(word, count)| (word.to_owned(), count)).collect()
    };
    counts(
        out,
        "Objective",
        &named(&mut built.objectives.iter().map(|(key, count)| (key.as_str(), *count))),
    )?;
    counts(out, "Rests on", &named(&mut built.evidence.iter().map(|(key, count)| (key.as_str(), *count))))?;
    counts(out, "Weights", &built.weights)?;
    counts(out, "Labels", &built.labels)?;
    reasons(out, "Runs left out", &export.excluded)?;
    let equal = BTreeMap::from([("equal to an earlier one".to_owned(), export.duplicates)]);
    if export.duplicates > 0 {
        reasons(out, "Rows dropped", &equal)?;
    }
    reasons(out, "Rows refused", &export.refused)?;
    counts(out, "Redacted", &export.redactions)?;
    out.push_str("</article>");
    Ok(())
}

fn reasons(out: &mut String, title: &str, reasons: &BTreeMap<String, u64>) -> fmt::Result {
    if reasons.is_empty() {
        return Ok(());
    }
    write!(out, "<h4>{}</h4><ul class=tally>", Plain(title))?;
    for (reason, count) in reasons {
        write!(out, "<li><b>{}</b> <span>{}</span></li>", number(*count), Inline(reason))?;
    }
    out.push_str("</ul>");
    Ok(())
}

fn example(out: &mut String, preview: &Preview) -> fmt::Result {
    out.push_str("<article class=example><div class=meta>");
    if let Some(word) = &preview.word {
        write!(out, "<b>{}</b>", Plain(word))?;
    }
    write!(
        out,
        "<span>rests on {}</span><code>{}</code></div>",
        Plain(&preview.evidence),
        Inline(preview.run.get(..ID_DIGITS).unwrap_or(&preview.run))
    )?;
    for message in &preview.messages {
        said(out, message)?;
    }
    out.push_str("</article>");
    Ok(())
}

fn said(out: &mut String, message: &PreviewMessage) -> fmt::Result {
    if message.left_out > 0 {
        write!(
            out,
            "<small>{}</small>",
            Plain(&counted(message.left_out, "message left out", "messages left out"))
        )?;
    }
    write!(out, "<div class=said><div><b>{}</b>", Plain(&message.role))?;
    if let Some(label) = &message.label {
        write!(out, " <span class=tag>{}</span>", Plain(label))?;
    }
    out.push_str("</div><pre>");
    for (at, piece) in message.pieces.iter().enumerate() {
        if at > 0 && !piece.continues {
            out.push('\n');
        }
        stretch(out, piece)?;
    }
    out.push_str("</pre></div>");
    Ok(())
}

fn stretch(out: &mut String, piece: &Piece) -> fmt::Result {
    let (open, close) = if piece.learned { ("<mark>", "</mark>") } else { ("", "") };
    write!(out, "{open}{}{close}", Block(&piece.text))?;
    if piece.left_out > 0 {
        write!(out, " <i>… {}</i>", Plain(&counted(piece.left_out, "character more", "characters more")))?;
    }
    Ok(())
}
