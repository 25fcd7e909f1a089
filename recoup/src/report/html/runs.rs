//! The table of the most informative runs; on a narrow screen each row is a card.

use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::model::{Report, RunEntry};
use super::super::wording::{self, counted, number, place, two_decimals};
use super::charts;
use super::text::{Inline, Plain};

/// The table.
pub(super) fn runs(out: &mut String, report: &Report) -> fmt::Result {
    let runs = &report.runs;
    if runs.items.is_empty() {
        return Ok(());
    }
    super::section(
        out,
        "runs",
        "Runs",
        "The agent’s own diagnosed failures first, the severest on top. Nodes and steps count from 0; a short id is \
         enough for recoup show.",
    )?;
    if runs.left_out > 0 {
        write!(
            out,
            "<p class=muted>{} of {} runs are listed, the most informative first; recoup ls lists all.</p>",
            number(runs.items.len() as u64),
            number(report.headline.runs)
        )?;
    }
    out.push_str(
        "<table class=runs><thead><tr><th scope=col>Run<th scope=col>Task<th scope=col>Outcome\
         <th scope=col>Failure<th scope=col>Decisive step<th scope=col>Why</tr></thead><tbody>",
    );
    runs.items.iter().try_for_each(|run| row(out, run))?;
    out.push_str("</tbody></table></section>");
    Ok(())
}

fn row(out: &mut String, entry: &RunEntry) -> fmt::Result {
    let run = &entry.run;
    let short = short_id(&run.id);
    write!(
        out,
        "<tr id=\"run-{0}\"><td data-name=Run><code title=\"{1}\">{0}</code><small>{2}</small></td>",
        Plain(&short),
        Plain(&run.uri),
        Inline(&run.format)
    )?;
    write!(
        out,
        "<td data-name=Task><span class=clip>{}</span><small>{}",
        Inline(&run.task),
        Inline(&run.agent)
    )?;
    if let Some(model) = &run.model {
        write!(out, " · {}", Inline(model))?;
    }
    out.push_str("</small></td><td data-name=Outcome>");
    super::outcome(out, run.outcome)?;
    out.push_str("</td><td data-name=Failure>");
    if let Some(party) = run.blame {
        write!(out, "<span>{}</span>", wording::party(party))?;
    }
    if run.suspected {
        out.push_str(" <span class=mark>suspected</span>");
    }
    if let Some(class) = run.class {
        write!(out, "<small>{}", wording::class(class))?;
        if let Some(severity) = run.severity {
            write!(out, " · severity {}", two_decimals(severity))?;
        }
        out.push_str("</small>");
    }
    out.push_str("</td><td data-name=\"Decisive step\">");
    if let Some(step) = run.decisive_step {
        charts::position(out, step, run.steps)?;
    }
    if let Some(node) = run.decisive_node {
        write!(out, "<small>{}</small>", place(node, run.decisive_step))?;
    }
    let of = if run.decisive_node.is_some() { "of " } else { "" };
    write!(out, "<small>{of}{}</small>", counted(run.steps as u64, "step", "steps"))?;
    out.push_str("</td><td data-name=Why>");
    if let Some(why) = &run.explanation {
        write!(out, "<details class=why><summary>{0}</summary></details>", Inline(why))?;
    }
    if run.decisive_node.is_some() && !run.admitted {
        out.push_str(" <span class=mark>not admitted</span>");
    }
    if !entry.detectors.is_empty() {
        write!(out, "<small>{}</small>", Inline(&entry.detectors.join(", ")))?;
    }
    out.push_str("</td></tr>");
    Ok(())
}
