//! Who failed, how, and where in the run.

use crate::triage::SEVERITY_MAX_TRAINED;
use std::collections::BTreeMap;
use std::fmt::{self, Write};

use super::super::model::{BlameCount, Report};
use super::super::wording::{self, number, rate, runs, two_decimals};
use super::charts::{self, Part};
use super::text::{Inline, Plain};

/// Blame: a bar of the whole and a row a party.
pub(super) fn blame(out: &mut String, report: &Report) -> fmt::Result {
    let blamed: Vec<&BlameCount> =
        report.blame.iter().filter(|count| count.failures + count.suspected > 0).collect();
    if blamed.is_empty() {
        return Ok(());
    }
    let failures: u64 = blamed.iter().map(|count| count.failures).sum();
    let how = if failures > 0 {
        "Only failures that are the agent’s own teach it anything."
    } else {
        "No failure is scored yet: these are suspicions."
    };
    super::section(out, "blame", "Who failed", how)?;
    let parts: Vec<Part> = blamed
        .iter()
        .map(|count| Part {
            style: count.party.as_str(),
            name: wording::party(count.party).to_owned(),
            value: if failures > 0 { count.failures } else { count.suspected },
        })
        .collect();
    charts::whole(out, if failures > 0 { "Failures by party" } else { "Suspicions by party" }, &parts)?;
    out.push_str("<div class=rows>");
    for count in blamed {
        write!(
            out,
            "<div class=row><div class=what><b>{} {}</b><small>{}</small></div><div class=chart>",
            charts::key(count.party.as_str()),
            wording::party(count.party),
            wording::party_meaning(count.party)
        )?;
        match &count.share {
            Some(share) => charts::bar(out, count.party.as_str(), share)?,
            None => charts::count_bar(
                out,
                count.party.as_str(),
                0,
                count.suspected,
                report.headline.outcomes.unknown,
            )?,
        }
        out.push_str("</div><div class=value>");
        if let Some(share) = &count.share {
            write!(out, "<span><b>{}</b> <small>{}</small></span>", number(count.failures), rate(share))?;
        }
        if count.suspected > 0 {
            write!(out, "<small>{} suspected</small>", number(count.suspected))?;
        }
        out.push_str("</div>");
        counts(out, "By rule", &count.rules)?;
        out.push_str("</div>");
    }
    out.push_str("</div>");
    responsible(out, report)?;
    out.push_str("</section>");
    Ok(())
}

fn responsible(out: &mut String, report: &Report) -> fmt::Result {
    if report.responsible.items.len() < 2 {
        return Ok(());
    }
    out.push_str("<p class=tags><span class=muted>Who took the decisive step:</span>");
    for agent in &report.responsible.items {
        write!(out, " <span class=tag>{} <b>{}</b></span>", Inline(&agent.name), number(agent.runs))?;
    }
    if report.responsible.left_out > 0 {
        write!(out, " <span class=muted>and {} more</span>", number(report.responsible.left_out))?;
    }
    out.push_str("</p>");
    Ok(())
}

/// Failure classes with their severities.
pub(super) fn classes(out: &mut String, report: &Report) -> fmt::Result {
    let found: Vec<_> = report.classes.iter().filter(|count| count.failures + count.suspected > 0).collect();
    let Some(most) = found.iter().map(|count| count.failures + count.suspected).max() else { return Ok(()) };
    super::section(
        out,
        "classes",
        "How they failed",
        &format!(
            "The small columns show severity from 0 to 1; right of the line, above {SEVERITY_MAX_TRAINED}, a failure has no weight in \
             hindsight training."
        ),
    )?;
    out.push_str("<div class=rows>");
    for count in found {
        write!(
            out,
            "<div class=\"row with-severity\"><div class=what><b>{}</b><small>{}</small></div><div class=chart>",
            wording::class(count.class),
            wording::class_meaning(count.class)
        )?;
        charts::count_bar(out, "failure", count.failures, count.suspected, most)?;
        out.push_str("</div><div class=value>");
        if count.failures > 0 {
            write!(out, "<b>{}</b>", number(count.failures))?;
        }
        if count.suspected > 0 {
            write!(out, "<small>{} suspected</small>", number(count.suspected))?;
        }
        out.push_str("</div><div class=spark>");
        if let Some(severity) = &count.severity {
            charts::severities(out, severity)?;
            write!(out, "<small>mean {}</small>", two_decimals(severity.mean))?;
        }
        out.push_str("</div>");
        counts(out, "Modes", &count.modes)?;
        out.push_str("</div>");
    }
    out.push_str("</div></section>");
    Ok(())
}

/// Names with counts, in a line of their own beneath a row.
pub(super) fn counts(out: &mut String, title: &str, counts: &BTreeMap<String, u64>) -> fmt::Result {
    if counts.is_empty() {
        return Ok(());
    }
    write!(out, "<p class=tags><span class=muted>{}:</span>", Plain(title))?;
    for (name, count) in counts {
        write!(out, " <span class=tag>{} <b>{}</b></span>", Inline(name), number(*count))?;
    }
    out.push_str("</p>");
    Ok(())
}

/// Where in the runs the decisive steps stand.
pub(super) fn positions(out: &mut String, report: &Report) -> fmt::Result {
    let positions = &report.positions;
    let (failures, suspected): (u64, u64) =
        (positions.failures.iter().sum(), positions.suspected.iter().sum());
    if failures + suspected == 0 {
        return Ok(());
    }
    super::section(
        out,
        "positions",
        "Where it went wrong",
        "The decisive step of each failed run, by its place among the agent’s steps.",
    )?;
    out.push_str("<figure>");
    charts::histogram(out, positions)?;
    out.push_str("<figcaption><ul class=legend>");
    for (style, name, count) in [("failure", "Failures", failures), ("unknown", "Suspected", suspected)] {
        if count > 0 {
            write!(out, "<li>{}<span>{name}</span> <b>{}</b></li>", charts::key(style), number(count))?;
        }
    }
    for (name, count) in
        [("of a single step, not placed", positions.single_step), ("without a decisive step", positions.none)]
    {
        if count > 0 {
            write!(out, "<li class=muted>{} {name}</li>", runs(count))?;
        }
    }
    out.push_str("</ul></figcaption></figure></section>");
    Ok(())
}
