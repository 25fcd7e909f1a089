//! The head of the page: the verdict in one sentence, the first figures, and how to attach outcomes.

use std::fmt::{self, Write};

use super::super::command::short_id;
use super::super::model::{Action, Attach, Report};
use super::super::wording::{self, counted, interval, number, percent, runs};
use super::charts::{Part, stacked};
use super::text::{Inline, Plain};

/// Title, verdict, outcome bar and figures.
pub(super) fn opening(out: &mut String, report: &Report) -> fmt::Result {
    let headline = &report.headline;
    write!(
        out,
        "<header><p class=eyebrow>{} <span>·</span> failure report</p><h1>{}</h1>",
        Inline(&report.title),
        Plain(&wording::verdict(headline))
    )?;
    // Where most outcomes are unknown the figures mean little until they are attached.
    if let Some(attach) = report.attach.as_ref().filter(|attach| attach.opens) {
        attach_first(out, report, attach)?;
    }
    let details = wording::verdict_details(report);
    if !details.is_empty() {
        write!(out, "<p class=lead>{}</p>", Plain(&details))?;
    }
    let outcomes = headline.outcomes;
    stacked(
        out,
        "Runs by outcome",
        &[
            Part { style: "failure", name: "Failed".to_owned(), value: outcomes.failure },
            Part { style: "unknown", name: "Outcome unknown".to_owned(), value: outcomes.unknown },
            Part { style: "success", name: "Passed".to_owned(), value: outcomes.success },
        ],
    )?;
    if headline.runs > 0 {
        figures(out, report)?;
    }
    out.push_str("</header>");
    Ok(())
}

fn figures(out: &mut String, report: &Report) -> fmt::Result {
    let headline = &report.headline;
    out.push_str("<dl class=figures>");
    figure(
        out,
        "Runs",
        &number(headline.runs),
        &match &report.import {
            Some(import) => format!("from {}", counted(import.files, "file", "files")),
            None => String::new(),
        },
    )?;
    match &headline.success_rate {
        Some(rate) => {
            figure(out, "Success rate", &percent(rate.rate), &format!("95% interval {}", interval(rate)))?;
        }
        None => figure(out, "Success rate", "–", "nothing is scored yet")?,
    }
    let failures = headline.outcomes.failure;
    if failures > 0 {
        let of = format!("of {}", counted(failures, "failure", "failures"));
        figure(out, "The agent’s own", &number(headline.agent_failures), &of)?;
    } else if headline.outcomes.unknown > 0 {
        figure(out, "Suspected", &number(headline.suspected), "look like failures")?;
    }
    let may_teach = report.learning.successes + report.learning.failures;
    figure(out, "May teach", &number(may_teach), &format!("of {}", runs(headline.runs)))?;
    out.push_str("</dl>");
    Ok(())
}

/// A big number with its name above and its context beneath.
pub(super) fn figure(out: &mut String, name: &str, value: &str, context: &str) -> fmt::Result {
    write!(
        out,
        "<div><dt>{}</dt><dd><b>{}</b><small>{}</small></dd></div>",
        Plain(name),
        Plain(value),
        Plain(context)
    )
}

/// How to attach outcomes, before anything else.
fn attach_first(out: &mut String, report: &Report, attach: &Attach) -> fmt::Result {
    write!(
        out,
        "<section class=callout id=outcomes><h2>First, attach outcomes</h2>\
         <p class=lead>Nothing in the traces of {} of {} says whether they passed. What follows is a suspicion, and no \
         training set learns from these runs until an outcome is attached.</p>",
        number(attach.unknown),
        runs(report.headline.runs)
    )?;
    actions(out, &attach.ways)?;
    ambiguous(out, attach)?;
    out.push_str("</section>");
    Ok(())
}

/// Files with several scorers, of which none was chosen.
pub(super) fn ambiguous(out: &mut String, attach: &Attach) -> fmt::Result {
    if attach.ambiguous.items.is_empty() {
        return Ok(());
    }
    let files = attach.ambiguous.items.len() as u64 + attach.ambiguous.left_out;
    write!(
        out,
        "<details><summary>{} with several scorers, none chosen</summary><ul class=plain>",
        counted(files, "file", "files")
    )?;
    for file in &attach.ambiguous.items {
        write!(
            out,
            "<li><code>{}</code> <span class=muted>{} · {}</span></li>",
            Inline(&file.uri),
            Inline(&file.scorers),
            runs(file.runs)
        )?;
    }
    super::left_out(out, attach.ambiguous.left_out, "files")?;
    out.push_str("</ul></details>");
    Ok(())
}

/// Things to do, each with its commands.
pub(super) fn actions(out: &mut String, actions: &[Action]) -> fmt::Result {
    out.push_str("<ol class=actions>");
    for action in actions {
        write!(out, "<li><h3>{}</h3><p>{}</p>", Plain(&action.title), Inline(&action.why))?;
        if !action.commands.is_empty() {
            out.push_str("<pre class=commands>");
            for command in &action.commands {
                write!(out, "<code>{}</code>", Plain(command))?;
            }
            out.push_str("</pre>");
        }
        out.push_str("</li>");
    }
    out.push_str("</ol>");
    Ok(())
}

/// What wrote the page, from what.
pub(super) fn footer(out: &mut String, report: &Report) -> fmt::Result {
    write!(
        out,
        "<footer><p>{} · project <code>{}</code> · settings <code>{}</code> · inputs <code>{}</code></p>\
         <p>Intervals are Wilson’s, at 95%. Nodes and steps count from 0. Trace text was redacted before it came here.</p></footer>",
        Inline(&report.provenance.producer),
        Inline(&report.project),
        Inline(&short_id(&report.provenance.config_hash)),
        Inline(&short_id(&report.provenance.inputs_hash))
    )
}
