//! What the detectors saw, each with its clearest findings and what they cite.

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::model::{DetectorCount, Example, Rate, Report};
use super::super::wording::{self, counted, number, percent, place, two_decimals};
use super::charts;
use super::text::{Block, Inline, Plain};
use crate::trajectory::Status;

const HOW: &str = "Share of runs with at least one finding. A detector that fires on failures and not on successes \
    tells something; the wider apart, the more. Open one for its clearest findings.";

/// A row a detector, which opens to its examples.
pub(super) fn detectors(out: &mut String, report: &Report) -> fmt::Result {
    let (fired, silent): (Vec<&DetectorCount>, Vec<&DetectorCount>) =
        report.detectors.iter().partition(|detector| detector.findings > 0);
    if report.detectors.is_empty() || report.headline.runs == 0 {
        return Ok(());
    }
    super::section(out, "detectors", "What the detectors saw", if fired.is_empty() { "" } else { HOW })?;
    if !fired.is_empty() {
        let shown = Shown::of(report, &fired);
        legend(out, &shown)?;
        out.push_str("<div class=\"rows detectors\">");
        for (index, detector) in fired.iter().enumerate() {
            row(out, detector, index == 0, &shown)?;
        }
        charts::axis(out, shown.scale_end)?;
        out.push_str("</div>");
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

/// What all rows share.
struct Shown<'a> {
    /// Outcomes compared. Unknown ones only where they are most, or there is nothing else.
    outcomes: Vec<Status>,
    scale_end: f64,
    /// Runs in the table below, which can be linked to.
    listed: BTreeSet<&'a str>,
}

impl<'a> Shown<'a> {
    fn of(report: &'a Report, fired: &[&DetectorCount]) -> Self {
        let most_unknown = report.attach.as_ref().is_some_and(|attach| attach.opens);
        let known = report.headline.outcomes;
        let outcomes: Vec<Status> = [
            (Status::Failure, known.failure > 0),
            (Status::Success, known.success > 0),
            (Status::Unknown, known.unknown > 0 && (most_unknown || known.failure == 0)),
        ]
        .into_iter()
        .filter_map(|(status, shown)| shown.then_some(status))
        .collect();
        let shares = outcomes.iter().flat_map(|&status| fired.iter().filter_map(move |d| share(d, status)));
        Self {
            scale_end: charts::scale_end(shares),
            listed: report.runs.items.iter().map(|entry| entry.run.id.as_str()).collect(),
            outcomes,
        }
    }
}

fn share(detector: &DetectorCount, status: Status) -> Option<&Rate> {
    match status {
        Status::Failure => detector.on_failures.as_ref(),
        Status::Success => detector.on_successes.as_ref(),
        Status::Unknown => detector.on_unknown.as_ref(),
    }
}

fn legend(out: &mut String, shown: &Shown<'_>) -> fmt::Result {
    out.push_str("<ul class=legend>");
    for &status in &shown.outcomes {
        write!(
            out,
            "<li><svg class=key width=14 height=14 aria-hidden=true><circle class=\"{}{}\" cx=7 cy=7 r=5></circle></svg>\
             <span>{} runs</span></li>",
            if status == Status::Failure { "" } else { "hollow " },
            status.as_str(),
            wording::outcome(status)
        )?;
    }
    out.push_str("<li class=muted>line: 95% interval</li></ul>");
    Ok(())
}

fn row(out: &mut String, detector: &DetectorCount, open: bool, shown: &Shown<'_>) -> fmt::Result {
    write!(
        out,
        "<details{}><summary class=row><div class=what><b>{}</b><small>{}</small></div><div class=chart>",
        if open { " open" } else { "" },
        Inline(&detector.name),
        Inline(&detector.capability.replace('_', " "))
    )?;
    let shares: Vec<(Status, &Rate)> =
        shown.outcomes.iter().filter_map(|&status| Some((status, share(detector, status)?))).collect();
    charts::marks(out, &shares, shown.scale_end)?;
    out.push_str("</div><div class=value>");
    for (status, share) in shares {
        write!(
            out,
            "<span class=pair><b>{}</b> <small>of {}</small></span>",
            percent(share.rate),
            wording::outcome(status)
        )?;
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
    detector.examples.iter().try_for_each(|found| example(out, found, &shown.listed))?;
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
        "<p class=source><code class=command>{}</code> <small>{}</small></p></article>",
        Plain(&example.command),
        Inline(&example.uri)
    )
}
