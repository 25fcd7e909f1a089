//! The Markdown twin: for a terminal, a pull request or an issue.
//!
//! Trace text stands only in code spans and fenced blocks, where nothing is a link, an image, a mention
//! or markup. Neither can be left from within: each is fenced by more backticks than the text holds in a
//! row, line ends in a span are shown as `␊`, and in a table a pipe becomes `│`, because no escape of it
//! is safe after a backslash.

mod failures;
mod judges;
mod outputs;
mod replay;
mod shared;
mod views;

use std::fmt::{self, Write};

use super::command::short_id;
use super::model::{Action, Attach, Group, Rate, Report, RunEntry};
use super::wording::{self, number, place, rate_or_none, runs, two_decimals};
use crate::fence::{cell, code, fenced, prose};

/// Runs shown; the page and the JSON have more.
const RUNS: usize = 40;

/// The report as GitHub-flavored Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = sections(&mut out, report);
    out
}

fn sections(out: &mut String, report: &Report) -> fmt::Result {
    writeln!(out, "# {}\n", prose(&report.title))?;
    writeln!(out, "**{}**\n", wording::verdict(&report.headline))?;
    let attach = report.attach.as_ref();
    if let Some(attach) = attach.filter(|attach| attach.opens) {
        writeln!(out, "## First, attach outcomes\n")?;
        writeln!(
            out,
            "Nothing in the traces of {} of {} says whether they passed. What follows is a suspicion, and no training \
             set learns from these runs until an outcome is attached.\n",
            number(attach.unknown),
            runs(report.headline.runs)
        )?;
        attach.ways.iter().try_for_each(|way| action(out, way))?;
        ambiguous(out, attach)?;
    }
    writeln!(out, "{}\n", wording::verdict_details(report))?;
    outcomes(out, report)?;
    failures::blame(out, report)?;
    failures::classes(out, report)?;
    failures::detectors(out, report)?;
    failures::positions(out, report)?;
    judges::judges(out, report)?;
    replay::replay(out, report)?;
    shared::shared(out, report)?;
    breakdowns(out, report)?;
    outputs::learning(out, report)?;
    views::views(out, report)?;
    if let Some(summary) = &report.import {
        outputs::import(out, summary)?;
    }
    if !report.next.is_empty() {
        writeln!(out, "## What to do next\n")?;
        report.next.iter().try_for_each(|step| action(out, step))?;
        if let Some(attach) = attach.filter(|attach| !attach.opens) {
            ambiguous(out, attach)?;
        }
    }
    listed(out, report)?;
    writeln!(
        out,
        "---\n\n{} · settings {} · inputs {}",
        code(&report.provenance.producer),
        code(&short_id(&report.provenance.config_hash)),
        code(&short_id(&report.provenance.inputs_hash))
    )
}

fn ambiguous(out: &mut String, attach: &Attach) -> fmt::Result {
    if attach.ambiguous.items.is_empty() {
        return Ok(());
    }
    writeln!(out, "Files with several scorers, none chosen:\n")?;
    for file in &attach.ambiguous.items {
        writeln!(out, "- {}: {} ({})", code(&file.uri), code(&file.scorers), runs(file.runs))?;
    }
    left_out(out, attach.ambiguous.left_out, "files")?;
    writeln!(out)
}

fn outcomes(out: &mut String, report: &Report) -> fmt::Result {
    let outcomes = report.headline.outcomes;
    writeln!(out, "| Runs | Passed | Failed | Unknown | Success rate (95% interval) |")?;
    writeln!(out, "| ---: | ---: | ---: | ---: | --- |")?;
    writeln!(
        out,
        "| {} | {} | {} | {} | {} |\n",
        number(report.headline.runs),
        number(outcomes.success),
        number(outcomes.failure),
        number(outcomes.unknown),
        rate_or_none(report.headline.success_rate.as_ref())
    )
}

fn breakdowns(out: &mut String, report: &Report) -> fmt::Result {
    if report.breakdowns.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Success by task, agent, model, harness and format\n")?;
    for breakdown in &report.breakdowns {
        writeln!(
            out,
            "| {} | Passed | Failed | Unknown | Agent’s own | Success rate (95% interval) |",
            wording::dimension(breakdown.by)
        )?;
        writeln!(out, "| --- | ---: | ---: | ---: | ---: | --- |")?;
        for shown in &breakdown.groups {
            group(out, shown, None)?;
        }
        if let Some(rest) = &breakdown.rest {
            group(out, rest, Some((breakdown.pooled, breakdown.by)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

fn group(out: &mut String, group: &Group, pooled: Option<(u64, &str)>) -> fmt::Result {
    let name =
        wording::unnamed(group, pooled).unwrap_or_else(|| cell(group.name.as_deref().unwrap_or_default()));
    writeln!(
        out,
        "| {name} | {} | {} | {} | {} | {} |",
        number(group.outcomes.success),
        number(group.outcomes.failure),
        number(group.outcomes.unknown),
        number(group.agent_failures),
        rate_or_none(group.success_rate.as_ref())
    )
}

fn action(out: &mut String, action: &Action) -> fmt::Result {
    writeln!(out, "**{}.** {}\n", prose(&action.title), prose(&action.why))?;
    if action.commands.is_empty() {
        return Ok(());
    }
    fenced(out, &action.commands.join("\n"))
}

fn listed(out: &mut String, report: &Report) -> fmt::Result {
    if report.runs.items.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Runs\n")?;
    writeln!(out, "| Run | Task | Outcome | Blame | Class | Severity | Decisive | Steps |")?;
    writeln!(out, "| --- | --- | --- | --- | --- | ---: | --- | ---: |")?;
    for run in report.runs.items.iter().take(RUNS) {
        row(out, run)?;
    }
    let more = report.runs.items.len().saturating_sub(RUNS) as u64 + report.runs.left_out;
    left_out(out, more, "runs")?;
    writeln!(out)
}

fn row(out: &mut String, RunEntry { run, .. }: &RunEntry) -> fmt::Result {
    let blame = run.blame.map_or("–", wording::party);
    writeln!(
        out,
        "| {} | {} | {} | {}{} | {} | {} | {} | {} |",
        cell(&short_id(&run.id)),
        cell(&run.task),
        wording::outcome(run.outcome),
        blame,
        if run.suspected { ", suspected" } else { "" },
        run.class.map_or("–", wording::class),
        run.severity.map_or_else(|| "–".to_owned(), two_decimals),
        run.decisive_node.map_or_else(|| "–".to_owned(), |node| place(node, run.decisive_step)),
        number(run.steps as u64)
    )
}

fn share(rate: Option<&Rate>) -> String {
    rate.map_or_else(|| "–".to_owned(), wording::rate)
}

fn left_out(out: &mut String, count: u64, of: &str) -> fmt::Result {
    if count == 0 {
        return Ok(());
    }
    writeln!(out, "\n{} more {of} are left out here.", number(count))
}

fn counts<'a>(counts: impl Iterator<Item = (&'a String, &'a u64)>) -> String {
    let said: Vec<String> = counts.map(|(name, n)| format!("{} {}", number(*n), cell(name))).collect();
    if said.is_empty() { "–".to_owned() } else { said.join(", ") }
}
