//! Who failed, how, by what signs and where in the run.

use crate::triage::SEVERITY_MAX_TRAINED;
use std::fmt::{self, Write};

use super::super::model::{DetectorCount, Example, Report};
use super::super::wording::{self, number, place, runs, two_decimals};
use super::{counts, share};
use crate::fence::{cell, code, fenced, prose};

pub(super) fn blame(out: &mut String, report: &Report) -> fmt::Result {
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

pub(super) fn classes(out: &mut String, report: &Report) -> fmt::Result {
    let found: Vec<_> = report.classes.iter().filter(|count| count.failures + count.suspected > 0).collect();
    if found.is_empty() {
        return Ok(());
    }
    writeln!(out, "## How they failed\n")?;
    writeln!(out, "| Class | Failures | Suspected | Mean severity | Above {SEVERITY_MAX_TRAINED} | Modes |")?;
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

pub(super) fn detectors(out: &mut String, report: &Report) -> fmt::Result {
    let (fired, silent): (Vec<&DetectorCount>, Vec<_>) =
        report.detectors.iter().partition(|detector| detector.findings > 0);
    if report.detectors.is_empty() {
        return Ok(());
    }
    writeln!(out, "## What the detectors saw\n")?;
    if !fired.is_empty() {
        writeln!(
            out,
            "| Detector | Capability | Decisive in | Failed runs | Passed runs | Unknown runs | Resolved |"
        )?;
        writeln!(out, "| --- | --- | ---: | --- | --- | --- | --- |")?;
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

pub(super) fn positions(out: &mut String, report: &Report) -> fmt::Result {
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
