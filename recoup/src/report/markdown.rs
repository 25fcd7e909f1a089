//! The Markdown twin: for a terminal, a pull request or an issue.
//!
//! Trace text stands only in code spans and fenced blocks, where nothing is a link, an image, a mention
//! or markup. Neither can be left from within: each is fenced by more backticks than the text holds in a
//! row, line ends in a span are shown as `␊`, and in a table a pipe becomes `│`, because no escape of it
//! is safe after a backslash.

use std::fmt::{self, Write};

use super::command::short_id;
use super::model::{Action, DetectorCount, Example, Group, ImportSummary, Rate, Report, RunEntry};
use super::wording::{self, counted, number, place, rate_or_none, runs, two_decimals};
use crate::visible::{visible_controls, visible_line};

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
    }
    writeln!(out, "{}\n", wording::verdict_details(report))?;
    outcomes(out, report)?;
    if let Some(attach) = attach.filter(|attach| !attach.ambiguous.items.is_empty()) {
        writeln!(out, "Files with several scorers, none chosen:\n")?;
        for file in &attach.ambiguous.items {
            writeln!(out, "- {}: {} ({})", code(&file.uri), code(&file.scorers), runs(file.runs))?;
        }
        left_out(out, attach.ambiguous.left_out, "files")?;
        writeln!(out)?;
    }
    blame(out, report)?;
    classes(out, report)?;
    detectors(out, report)?;
    positions(out, report)?;
    breakdowns(out, report)?;
    learning(out, report)?;
    exports(out, report)?;
    if let Some(summary) = &report.import {
        import(out, summary)?;
    }
    if !report.next.is_empty() {
        writeln!(out, "## What to do next\n")?;
        report.next.iter().try_for_each(|step| action(out, step))?;
    }
    listed(out, report)?;
    writeln!(
        out,
        "---\n\n{} · settings {} · inputs {}",
        code(&report.producer),
        code(&short_id(&report.config_hash)),
        code(&short_id(&report.inputs_hash))
    )
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

fn blame(out: &mut String, report: &Report) -> fmt::Result {
    let blamed: Vec<_> = report.blame.iter().filter(|count| count.failures + count.suspected > 0).collect();
    if blamed.is_empty() {
        return Ok(());
    }
    writeln!(out, "## Who failed\n")?;
    writeln!(out, "| Party | Failures | Share (95% interval) | Suspected | Rules |")?;
    writeln!(out, "| --- | ---: | --- | ---: | --- |")?;
    for count in blamed {
        writeln!(
            out,
            "| {}: {} | {} | {} | {} | {} |",
            wording::party(count.party),
            wording::party_meaning(count.party),
            number(count.failures),
            share(count.share.as_ref()),
            number(count.suspected),
            counts(count.rules.iter())
        )?;
    }
    writeln!(out)
}

fn classes(out: &mut String, report: &Report) -> fmt::Result {
    let found: Vec<_> = report.classes.iter().filter(|count| count.failures + count.suspected > 0).collect();
    if found.is_empty() {
        return Ok(());
    }
    writeln!(out, "## How they failed\n")?;
    writeln!(out, "| Class | Failures | Suspected | Mean severity | Above 0.7 | Modes |")?;
    writeln!(out, "| --- | ---: | ---: | ---: | ---: | --- |")?;
    for count in found {
        writeln!(
            out,
            "| {}: {} | {} | {} | {} | {} | {} |",
            wording::class(count.class),
            wording::class_meaning(count.class),
            number(count.failures),
            number(count.suspected),
            count.severity.map_or_else(|| "–".to_owned(), |severity| two_decimals(severity.mean)),
            count.severity.map_or_else(|| "–".to_owned(), |severity| number(severity.too_severe)),
            counts(count.modes.iter())
        )?;
    }
    writeln!(out)
}

fn detectors(out: &mut String, report: &Report) -> fmt::Result {
    let (fired, silent): (Vec<&DetectorCount>, Vec<_>) =
        report.detectors.iter().partition(|detector| detector.findings > 0);
    if report.detectors.is_empty() {
        return Ok(());
    }
    writeln!(out, "## What the detectors saw\n")?;
    if !fired.is_empty() {
        writeln!(
            out,
            "| Detector | Capability | Decisive in | Failed runs | Passed runs | Unknown | Resolved |"
        )?;
        writeln!(out, "| --- | --- | ---: | --- | --- | ---: | --- |")?;
    }
    for detector in &fired {
        writeln!(
            out,
            "| {} | {} | {} | {} · {} | {} · {} | {} · {} | {} of {} |",
            cell(&detector.name),
            cell(&detector.capability),
            number(detector.decisive),
            number(detector.runs.failure),
            share(detector.on_failures.as_ref()),
            number(detector.runs.success),
            share(detector.on_successes.as_ref()),
            number(detector.runs.unknown),
            share(detector.on_unknown.as_ref()),
            number(detector.resolved),
            number(detector.findings)
        )?;
    }
    if !silent.is_empty() {
        let names: Vec<String> = silent.iter().map(|detector| code(&detector.name)).collect();
        writeln!(out, "\nSilent: {}.", names.join(", "))?;
    }
    writeln!(out)?;
    for detector in fired {
        writeln!(out, "### {}\n", code(&detector.name))?;
        if !detector.description.is_empty() {
            writeln!(out, "{}\n", prose(&detector.description))?;
        }
        detector.examples.iter().try_for_each(|found| example(out, found))?;
    }
    Ok(())
}

fn example(out: &mut String, example: &Example) -> fmt::Result {
    let mut marks =
        vec![place(example.node, example.step), format!("run {}", wording::outcome(example.outcome))];
    if example.decisive {
        marks.push("decisive".to_owned());
    }
    if example.resolved {
        marks.push("resolved later".to_owned());
    }
    writeln!(out, "{} · {}\n", marks.join(" · "), code(&example.message))?;
    for quote in &example.quotes {
        writeln!(out, "Node {} says:\n", quote.node)?;
        fenced(out, &quote.text)?;
    }
    fenced(out, &example.command)
}

fn positions(out: &mut String, report: &Report) -> fmt::Result {
    let positions = &report.positions;
    if positions.failures.iter().chain(&positions.suspected).sum::<u64>() == 0 {
        return Ok(());
    }
    writeln!(out, "## Where it went wrong\n\nDecisive step by tenth of the run.\n")?;
    writeln!(out, "| Tenth | Failures | Suspected |\n| --- | ---: | ---: |")?;
    for (tenth, (failures, suspected)) in positions.failures.iter().zip(&positions.suspected).enumerate() {
        writeln!(
            out,
            "| {}–{}% | {} | {} |",
            tenth * 10,
            tenth * 10 + 10,
            number(*failures),
            number(*suspected)
        )?;
    }
    writeln!(
        out,
        "\nNot placed: {} of a single step, {} without a decisive step.\n",
        runs(positions.single_step),
        runs(positions.none)
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

fn learning(out: &mut String, report: &Report) -> fmt::Result {
    let learning = &report.learning;
    if report.headline.runs == 0 {
        return Ok(());
    }
    writeln!(out, "## What may be learned\n")?;
    writeln!(
        out,
        "{} that passed and {} with an admitted diagnosis may teach. Kept out:\n",
        runs(learning.successes),
        counted(learning.failures, "failure", "failures")
    )?;
    if learning.kept_out.is_empty() {
        writeln!(out, "- nothing")?;
    }
    for kept in &learning.kept_out {
        writeln!(out, "- {}: {}", number(kept.runs), kept.reason)?;
    }
    writeln!(out)
}

fn exports(out: &mut String, report: &Report) -> fmt::Result {
    if report.exports.is_empty() {
        return Ok(());
    }
    writeln!(out, "## What was written\n")?;
    writeln!(out, "| View | Format | File | Rows | Runs considered | Excluded | Refused rows | Redacted |")?;
    writeln!(out, "| --- | --- | --- | ---: | ---: | --- | --- | --- |")?;
    for export in &report.exports {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            cell(&export.view),
            cell(&export.format),
            cell(&export.path),
            number(export.rows),
            number(export.considered),
            counts(export.excluded.iter()),
            counts(export.refused.iter()),
            counts(export.redactions.iter())
        )?;
    }
    writeln!(out)
}

fn import(out: &mut String, import: &ImportSummary) -> fmt::Result {
    writeln!(out, "## Import\n")?;
    writeln!(
        out,
        "{} looked at, {} read: {} new, {} known already.\n",
        counted(import.files, "file", "files"),
        runs(import.trajectories),
        number(import.new),
        number(import.duplicates)
    )?;
    if !import.quarantined.items.is_empty() {
        writeln!(out, "Quarantined records:\n")?;
        for record in &import.quarantined.items {
            let line = record.line.map_or_else(String::new, |line| format!(" line {line}"));
            writeln!(out, "- {}{line}: {} {}", code(&record.uri), code(&record.code), code(&record.reason))?;
        }
        left_out(out, import.quarantined.left_out, "records")?;
        writeln!(out)?;
    }
    if !import.unrecognized.items.is_empty() {
        writeln!(out, "Files that no importer recognized:\n")?;
        for uri in &import.unrecognized.items {
            writeln!(out, "- {}", code(uri))?;
        }
        left_out(out, import.unrecognized.left_out, "files")?;
        writeln!(out)?;
    }
    if !import.skipped.items.is_empty() {
        writeln!(out, "Files that were not read:\n")?;
        for file in &import.skipped.items {
            writeln!(out, "- {}: {} {}", code(&file.uri), code(&file.code), code(&file.reason))?;
        }
        left_out(out, import.skipped.left_out, "files")?;
        writeln!(out)?;
    }
    if !import.losses.items.is_empty() {
        writeln!(out, "What the records cannot carry:\n")?;
        for entry in &import.losses.items {
            let loss = &entry.loss;
            writeln!(
                out,
                "- {}× {} {}: {}",
                number(entry.count),
                code(&loss.format),
                code(&loss.field),
                code(&loss.reason)
            )?;
        }
        left_out(out, import.losses.left_out, "kinds of loss")?;
        writeln!(out)?;
    }
    Ok(())
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

fn row(out: &mut String, run: &RunEntry) -> fmt::Result {
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

/// This program's own words, which may hold the name of a file or a detector but no trace text.
fn prose(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible_line(text).chars() {
        if r"\`*[]<>|&!#~".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A code span on one line.
fn code(text: &str) -> String {
    let text = visible_line(text);
    if text.trim().is_empty() {
        return "` `".to_owned();
    }
    let fence = "`".repeat(longest_backtick_run(&text) + 1);
    // One space on each side is not part of the span, and keeps a backtick at its edge apart.
    let pad = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) { " " } else { "" };
    format!("{fence}{pad}{text}{pad}{fence}")
}

/// A code span in a table.
fn cell(text: &str) -> String {
    code(&text.replace('|', "│"))
}

/// A fenced block.
fn fenced(out: &mut String, text: &str) -> fmt::Result {
    let text = visible_controls(text);
    let fence = "`".repeat((longest_backtick_run(&text) + 1).max(3));
    writeln!(out, "{fence}text\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

fn longest_backtick_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{cell, code, fenced};

    #[test]
    fn a_span_cannot_be_left() {
        assert_eq!(code("a ``` b"), "````a ``` b````");
        assert_eq!(code("`"), "`` ` ``");
        assert_eq!(code("x\n\n# heading"), "`x␊␊# heading`");
        assert_eq!(code(""), "` `");
        assert_eq!(cell(r"a\|b"), r"`a\│b`");
    }

    #[test]
    fn a_block_cannot_be_left() {
        let mut out = String::new();
        fenced(&mut out, "```\n![x](https://example.invalid)\n````").unwrap();
        assert_eq!(out, "`````text\n```\n![x](https://example.invalid)\n````\n`````\n\n");
    }
}
