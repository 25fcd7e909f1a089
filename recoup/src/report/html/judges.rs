//! What judges say: yield by gate, agreement with the rules, how far they can be believed.

use std::fmt::{self, Write};

use super::super::command::show;
use super::super::judges::{self, Line};
use super::super::model::{Judges, Report};
use super::super::wording::number;
use super::charts;
use super::text::{Block, Inline, Plain};

const HOW: &str = "Models cite the trace before they conclude. Their quotes are checked byte for byte, and every \
    other member of the panel must admit a diagnosis before it stands.";

/// The section, where a panel has judged.
pub(super) fn judges(out: &mut String, report: &Report) -> fmt::Result {
    let Some(judges) = &report.judges else { return Ok(()) };
    super::section(out, "judges", "What the judges say", HOW)?;
    write!(out, "<p class=muted>{}</p>", Plain(&judges::panels(judges)))?;
    out.push_str("<div class=\"rows tight\">");
    judges::lines(judges).iter().try_for_each(|line| row(out, line))?;
    charts::axis(out, 1.0)?;
    out.push_str("</div>");
    if let Some(missing) = judges::unmeasured(judges) {
        write!(out, "<p class=muted>{}</p>", Plain(missing))?;
    }
    gates(out, judges)?;
    disagreements(out, judges, &report.project)?;
    out.push_str("</section>");
    Ok(())
}

fn row(out: &mut String, line: &Line) -> fmt::Result {
    write!(
        out,
        "<div class=row><div class=what><b>{}</b><small>{}</small></div><div class=chart>",
        Inline(&line.name),
        Plain(line.what)
    )?;
    if let Some(share) = line.share {
        charts::mark(out, &line.value, (share.rate, Some(share.low), Some(share.high)))?;
    }
    write!(out, "</div><div class=value><small>{}</small></div></div>", Plain(&line.value))
}

fn gates(out: &mut String, judges: &Judges) -> fmt::Result {
    let most = judges.gates.values().map(|gate| gate.admitted + gate.rejected).max().unwrap_or(0);
    if most == 0 {
        return Ok(());
    }
    out.push_str("<h3>Gates <small>refused, of the last answers</small></h3><div class=\"rows tight wide\">");
    for (name, gate) in &judges.gates {
        write!(out, "<div class=row><div class=what><b>{}</b></div><div class=chart>", Inline(name))?;
        charts::count_bar(out, "muted-bar", gate.rejected, 0, most)?;
        write!(
            out,
            "</div><div class=value><b>{}</b> <small>of {}, {} abstained</small></div></div>",
            number(gate.rejected),
            number(gate.admitted + gate.rejected),
            number(gate.abstained)
        )?;
    }
    out.push_str("</div>");
    Ok(())
}

fn disagreements(out: &mut String, judges: &Judges, project: &str) -> fmt::Result {
    if judges.disagreements.items.is_empty() {
        return Ok(());
    }
    out.push_str("<h3>Runs to look at <small>where rules and judges name different steps</small></h3><ul>");
    for found in &judges.disagreements.items {
        write!(
            out,
            "<li>{} <small>{}{}</small><pre>{}</pre></li>",
            Inline(&found.task),
            Plain(&judges::steps(found)),
            if found.admitted { "" } else { ", not admitted" },
            Block(&show(&found.run, project))
        )?;
    }
    super::left_out(out, judges.disagreements.left_out, "runs")?;
    out.push_str("</ul>");
    Ok(())
}
