//! What may be learned, what could not be read.

use std::fmt::{self, Write};

use super::super::model::{ImportSummary, Report};
use super::super::wording::{counted, number, runs};
use super::left_out;
use crate::fence::code;

pub(super) fn learning(out: &mut String, report: &Report) -> fmt::Result {
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

pub(super) fn import(out: &mut String, import: &ImportSummary) -> fmt::Result {
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
