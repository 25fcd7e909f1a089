//! What the detectors saw, each with its clearest findings and what they cite.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::model::{DetectorCount, Example, Rate, Report};
use super::super::wording::{self, counted, number, percent, place, two_decimals};
use super::charts;
use super::text::{Block, Inline, Plain};

/// A row a detector, which opens to its examples.
pub(super) fn detectors(out: &mut String, report: &Report) -> fmt::Result {
    let (fired, silent): (Vec<&DetectorCount>, Vec<&DetectorCount>) =
        report.detectors.iter().partition(|detector| detector.findings > 0);
    if report.detectors.is_empty() {
        return Ok(());
    }
    super::section(
        out,
        "detectors",
        "What the detectors saw",
        "Share of runs with at least one finding. A detector that fires on failures and not on successes tells \
         something; the wider apart, the more. Open one for its clearest findings.",
    )?;
    if !fired.is_empty() {
        out.push_str("<ul class=legend>");
        for (style, name) in
            [("failure", "failed runs"), ("success", "passed runs"), ("unknown", "unknown outcome")]
        {
            let hollow = if style == "failure" { "" } else { " hollow" };
            write!(
                out,
                "<li><svg class=key width=14 height=14 aria-hidden=true><circle class=\"{style}{hollow}\" cx=7 cy=7 r=5></circle></svg>\
                 <span>{name}</span></li>"
            )?;
        }
        out.push_str("<li class=muted>line: 95% interval</li></ul><div class=\"rows detectors\">");
    }
    let listed: BTreeSet<&str> = report.runs.items.iter().map(|run| run.id.as_str()).collect();
    for (index, detector) in fired.iter().enumerate() {
        row(out, detector, index == 0, &listed)?;
    }
    if !fired.is_empty() {
        write!(
            out,
            "<div class=row><div class=what></div><div class=chart>{}</div></div></div>",
            charts::AXIS
        )?;
    }
    if !silent.is_empty() {
        out.push_str("<p class=tags><span class=muted>Looked and found nothing:</span>");
        for detector in silent {
            write!(
                out,
                " <span class=tag title=\"{}\">{}</span>",
                Plain(&detector.description),
                Inline(&detector.name)
            )?;
        }
        out.push_str("</p>");
    }
    out.push_str("</section>");
    Ok(())
}

fn row(out: &mut String, detector: &DetectorCount, open: bool, listed: &BTreeSet<&str>) -> fmt::Result {
    write!(
        out,
        "<details{}><summary class=row><div class=what><b>{}</b><small>{}</small></div><div class=chart>",
        if open { " open" } else { "" },
        Inline(&detector.name),
        Inline(&detector.capability.replace('_', " "))
    )?;
    let shares: Vec<(&'static str, &Rate)> = [
        ("failure", &detector.on_failures),
        ("success", &detector.on_successes),
        ("unknown", &detector.on_unknown),
    ]
    .into_iter()
    .filter_map(|(name, share)| share.as_ref().map(|share| (name, share)))
    .collect();
    charts::marks(out, &shares)?;
    out.push_str("</div><div class=value>");
    for (name, share) in shares {
        let word = match name {
            "failure" => "failed",
            "success" => "passed",
            _ => "unknown",
        };
        write!(out, "<span class=pair><b>{}</b> <small>of {word}</small></span>", percent(share.rate))?;
    }
    out.push_str("</div></summary><div class=opened>");
    if !detector.description.is_empty() {
        write!(out, "<p>{}</p>", Inline(&detector.description))?;
    }
    write!(
        out,
        "<p class=muted>{}, of which {} made up for later. In {} failed, {} passed and {} unknown; decisive in {}.</p>",
        counted(detector.findings, "finding", "findings"),
        number(detector.resolved),
        number(detector.runs.failure),
        number(detector.runs.success),
        number(detector.runs.unknown),
        number(detector.decisive)
    )?;
    detector.examples.iter().try_for_each(|found| example(out, found, listed))?;
    out.push_str("</div></details>");
    Ok(())
}

fn example(out: &mut String, example: &Example, listed: &BTreeSet<&str>) -> fmt::Result {
    out.push_str("<article class=example><p class=meta>");
    super::outcome(out, example.outcome)?;
    write!(out, " <b>{}</b> <span>of run ", place(example.node, example.step))?;
    let short = short_id(&example.run);
    if listed.contains(example.run.as_str()) {
        write!(out, "<a href=\"#run-{0}\"><code>{0}</code></a>", Plain(&short))?;
    } else {
        write!(out, "<code>{}</code>", Inline(&short))?;
    }
    write!(out, "</span> <span>strength {}</span>", two_decimals(example.strength))?;
    if example.decisive {
        out.push_str(" <span class=mark>decisive</span>");
    }
    if example.resolved {
        out.push_str(" <span class=mark>made up for later</span>");
    }
    write!(out, "</p><p>{}</p>", Inline(&example.message))?;
    for quote in &example.quotes {
        write!(
            out,
            "<figure class=quote><figcaption>node {}</figcaption><blockquote dir=auto>{}</blockquote></figure>",
            quote.node,
            Block(&quote.text)
        )?;
    }
    write!(
        out,
        "<p class=source><code class=command>{}</code> <small>{} · {}</small></p></article>",
        Plain(&example.command),
        wording::outcome(example.outcome),
        Inline(&example.uri)
    )
}
