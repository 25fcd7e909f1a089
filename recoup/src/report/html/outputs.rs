//! What may be learned, what could not be read.

use std::fmt::{self, Write};

use super::super::model::{Capped, ImportSummary, Report};
use super::super::wording::{counted, number};
use super::charts::{self, Part};
use super::opening::figure;
use super::text::{Inline, Plain};

/// Which runs may teach, and what keeps the others out.
pub(super) fn learning(out: &mut String, report: &Report) -> fmt::Result {
    let learning = &report.learning;
    if report.headline.runs == 0 {
        return Ok(());
    }
    super::section(
        out,
        "learning",
        "What may be learned from",
        "Every run stands once, under the first reason that applies. A run without an outcome, or a failure that is \
         not the agent’s, would teach something false.",
    )?;
    let kept_out: u64 = learning.kept_out.iter().map(|kept| kept.runs).sum();
    charts::stacked(
        out,
        "Runs by what they may teach",
        &[
            Part { style: "success", name: "Passed, may teach".to_owned(), value: learning.successes },
            Part {
                style: "failure",
                name: "Failed and diagnosed, may teach".to_owned(),
                value: learning.failures,
            },
            Part { style: "unknown", name: "Kept out".to_owned(), value: kept_out },
        ],
    )?;
    if kept_out > 0 {
        let most = learning.kept_out.iter().map(|kept| kept.runs).max().unwrap_or(0);
        out.push_str("<h3>Kept out, and why</h3><div class=\"rows tight wide\">");
        for kept in &learning.kept_out {
            write!(
                out,
                "<div class=row><div class=what><span>{}</span></div><div class=chart>",
                Plain(&kept.reason)
            )?;
            charts::count_bar(out, "muted-bar", kept.runs, 0, most)?;
            write!(out, "</div><div class=value><b>{}</b></div></div>", number(kept.runs))?;
        }
        out.push_str("</div>");
    }
    out.push_str("</section>");
    Ok(())
}

/// What the import read and could not read.
pub(super) fn import(out: &mut String, report: &Report) -> fmt::Result {
    let Some(import) = &report.import else { return Ok(()) };
    super::section(
        out,
        "import",
        "Import",
        "Nothing is dropped in silence: what could not be read or carried is listed here.",
    )?;
    out.push_str("<dl class=\"figures small\">");
    figure(out, "Files", &number(import.files), "looked at")?;
    figure(out, "New runs", &number(import.new), &format!("of {} read", number(import.trajectories)))?;
    figure(out, "Known already", &number(import.duplicates), "read again, stored once")?;
    let unread = import.quarantined.items.len() as u64 + import.quarantined.left_out;
    figure(out, "Quarantined", &number(unread), if unread == 1 { "record" } else { "records" })?;
    out.push_str("</dl>");
    unreadable(out, import)?;
    out.push_str("</section>");
    Ok(())
}

fn unreadable(out: &mut String, import: &ImportSummary) -> fmt::Result {
    list(out, "Quarantined records", &import.quarantined, |out, record| {
        write!(out, "<code>{}</code>", Inline(&record.uri))?;
        if let Some(line) = record.line {
            write!(out, " <b>line {line}</b>")?;
        }
        if let Some(span) = &record.span {
            write!(out, " <span class=muted>bytes {}–{}</span>", span.start, span.end)?;
        }
        write!(out, " <span class=tag>{}</span> {}", Inline(&record.code), Inline(&record.reason))
    })?;
    list(out, "Files that no importer recognized", &import.unrecognized, |out, uri| {
        write!(out, "<code>{}</code>", Inline(uri))
    })?;
    list(out, "Files that were not read", &import.skipped, |out, file| {
        write!(
            out,
            "<code>{}</code> <span class=tag>{}</span> {}",
            Inline(&file.uri),
            Inline(&file.code),
            Inline(&file.reason)
        )
    })?;
    list(out, "What the records cannot carry", &import.losses, |out, entry| {
        write!(
            out,
            "<b>{}×</b> <span class=tag>{}</span> <code>{}</code> {}",
            number(entry.count),
            Inline(&entry.loss.format),
            Inline(&entry.loss.field),
            Inline(&entry.loss.reason)
        )
    })
}

fn list<T>(
    out: &mut String,
    title: &str,
    items: &Capped<T>,
    mut item: impl FnMut(&mut String, &T) -> fmt::Result,
) -> fmt::Result {
    let total = items.items.len() as u64 + items.left_out;
    if total == 0 {
        return Ok(());
    }
    // A short list is read at once; a long one waits to be asked for.
    let open = if total <= 8 { " open" } else { "" };
    write!(
        out,
        "<details{open}><summary>{} <small>{}</small></summary><ul class=plain>",
        Plain(title),
        counted(total, "entry", "entries")
    )?;
    for entry in &items.items {
        out.push_str("<li>");
        item(out, entry)?;
        out.push_str("</li>");
    }
    super::left_out(out, items.left_out, "entries")?;
    out.push_str("</ul></details>");
    Ok(())
}
