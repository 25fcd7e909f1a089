//! Success by task, agent, model, harness and format.

use std::fmt::{self, Write};

use super::super::model::{Breakdown, Group, Report};
use super::super::wording::{self, number, rate};
use super::charts;
use super::text::{Inline, Plain};

/// A block an attribute.
pub(super) fn breakdowns(out: &mut String, report: &Report) -> fmt::Result {
    if report.breakdowns.is_empty() {
        return Ok(());
    }
    let how = if report.headline.outcomes.scored() > 0 {
        "Success rate among scored runs, the groups with the most failures first. Where two intervals overlap widely, \
         the groups may well be equal."
    } else {
        "No run is scored yet: the bars show how many runs each group has."
    };
    super::section(out, "breakdowns", "Who does well, at what", how)?;
    out.push_str("<div class=blocks>");
    report.breakdowns.iter().try_for_each(|breakdown| block(out, breakdown))?;
    out.push_str("</div></section>");
    Ok(())
}

fn block(out: &mut String, breakdown: &Breakdown) -> fmt::Result {
    write!(
        out,
        "<div class=block><h3>{} <small>{}</small></h3><div class=\"rows tight\">",
        wording::dimension(breakdown.by),
        wording::distinct(breakdown)
    )?;
    let all = || breakdown.groups.iter().chain(&breakdown.rest);
    let scored = all().any(|group| group.success_rate.is_some());
    // Bars of counts beside bars of rates would be read as rates.
    let greatest = if scored { None } else { all().map(|group| group.outcomes.total()).max() };
    for group in &breakdown.groups {
        row(out, group, None, greatest)?;
    }
    if let Some(rest) = &breakdown.rest {
        row(out, rest, Some((breakdown.pooled, breakdown.by)), greatest)?;
    }
    if scored {
        charts::axis(out, 1.0)?;
    }
    out.push_str("</div></div>");
    Ok(())
}

fn row(out: &mut String, group: &Group, pooled: Option<(u64, &str)>, greatest: Option<u64>) -> fmt::Result {
    let outcomes = group.outcomes;
    out.push_str("<div class=row><div class=what>");
    if let Some(words) = wording::unnamed(group, pooled) {
        write!(out, "<span class=muted>{}</span>", Plain(&words))?;
    } else {
        let name = group.name.as_deref().unwrap_or_default();
        write!(out, "<b title=\"{}\">{}</b>", Plain(name), Inline(name))?;
    }
    write!(
        out,
        "<small title=\"the agent’s own failures: {}\">{} passed · {} failed",
        number(group.agent_failures),
        number(outcomes.success),
        number(outcomes.failure)
    )?;
    if outcomes.unknown > 0 {
        write!(out, " · {} unknown", number(outcomes.unknown))?;
    }
    out.push_str("</small></div><div class=chart>");
    if let Some(share) = &group.success_rate {
        charts::bar(out, "success", share)?;
        return write!(out, "</div><div class=value><small>{}</small></div></div>", rate(share));
    }
    if let Some(greatest) = greatest {
        charts::count_bar(out, "unknown", 0, outcomes.unknown, greatest)?;
    }
    out.push_str("</div><div class=value><small>not scored</small></div></div>");
    Ok(())
}
