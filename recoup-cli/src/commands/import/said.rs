//! What an import did, said to a person.

use std::collections::BTreeMap;

use recoup::pipeline::{Imported, Selection, Summary, Unmatched};
use recoup::store::Store;

use crate::failure::Failure;
use crate::printer::{Printer, counted, runs};

/// Things of one kind that are listed on the terminal.
pub(crate) const LISTED_MAX: usize = 10;
/// Runs that labels wait for and that are named.
const NAMES_MAX: u32 = 3;
/// Characters of such a name.
const NAME_CHARACTERS_MAX: usize = 80;

/// The counts of an import, for a person.
pub(crate) fn say_imported(summary: &Summary, printer: Printer) {
    let outcomes = &summary.outcomes;
    printer.line(format_args!(
        "imported {} from {}: {} new, {} known before; {} success, {} failure, {} unknown",
        runs(summary.trajectories as usize),
        counted(summary.files as usize, "file"),
        summary.new,
        summary.duplicates,
        outcomes.success,
        outcomes.failure,
        outcomes.unknown,
    ));
    if summary.trajectories > 0 && outcomes.unknown * 2 > summary.trajectories {
        printer.note(
            "hint: most outcomes are unknown; attach them with `--outcomes FILE`, `--score NAME --success-at X`, \
             `--assume failure` or `recoup label`",
        );
    }
}

/// What was left out, on standard error.
pub(crate) fn say_problems(imported: &Imported, printer: Printer) {
    let stored = &imported.stored;
    if printer.is_quiet() && imported.is_partial() {
        printer.error("some records or files were left out; without `--quiet` they are listed");
        return;
    }
    for (evidence, count) in stored.undecided.iter().take(LISTED_MAX) {
        let runs = runs(*count as usize);
        printer.warn(format_args!("{runs} without an outcome: {evidence}; choose with `--score NAME`"));
    }
    for entry in stored.quarantined.iter().take(LISTED_MAX) {
        let place = entry.line.map_or_else(String::new, |line| format!(":{line}"));
        printer.warn(format_args!("quarantined {}{place}: {} ({})", entry.uri, entry.reason, entry.code));
    }
    more(stored.quarantined_count, "quarantined records", printer);
    let problems: Vec<_> = imported.problems.iter().filter(|problem| !problem.is_skip()).collect();
    for problem in problems.iter().take(LISTED_MAX) {
        printer.warn(format_args!("cannot read {}: {}", problem.uri, problem.reason));
    }
    more(problems.len() as u64, "files that cannot be read", printer);
    say_unmatched_outcomes(&imported.attached.unmatched, printer);
    if stored.excluded_by_split > 0 {
        printer.note(format_args!(
            "{} would join training and test, and nothing is learned from them",
            runs(stored.excluded_by_split as usize)
        ));
    }
    if let Some(lopsided) = &imported.lopsided {
        printer.warn(format_args!(
            "{} of {} tasks are tied together, to the task `{}`, and stand on one side of the split",
            lopsided.tasks, lopsided.of, lopsided.component
        ));
    }
    let skipped = imported.problems.iter().filter(|problem| problem.is_skip()).count();
    if skipped > 0 {
        printer.note(format_args!("passed over {skipped} links, pipes or devices"));
    }
    if !imported.unrecognized.is_empty() {
        let files = match imported.unrecognized.len() {
            1 => "1 file that is no trace".to_owned(),
            count => format!("{count} files that are no traces"),
        };
        printer.note(format_args!("passed over {files}"));
    }
    if !stored.losses.is_empty() {
        printer.note("not carried over:");
        let mut losses: Vec<_> = stored.losses.iter().collect();
        losses.sort_by_key(|(loss, count)| (std::cmp::Reverse(**count), (*loss).clone()));
        for (loss, count) in losses.iter().take(LISTED_MAX) {
            printer.note(format_args!("  {count} × {} `{}`: {}", loss.format, loss.field, loss.reason));
        }
        more(losses.len() as u64, "kinds of loss", printer);
    }
}

/// Warns of labels whose runs are not in the project.
pub(crate) fn say_waiting_labels(store: &Store, printer: Printer) -> Result<(), Failure> {
    let missing = store.labels_without_run()?;
    if missing > 0 {
        let shown: Vec<String> =
            store.names_without_run(NAMES_MAX)?.iter().map(|name| format!("`{}`", start(name))).collect();
        let more = if missing > u64::from(NAMES_MAX) { ", …" } else { "" };
        printer.warn(format_args!(
            "labels name {} not in the project, and wait: {}{more}; hint: import the traces they belong to",
            runs(missing as usize),
            shown.join(", ")
        ));
    }
    Ok(())
}

/// As much of a name as a line has room for.
fn start(name: &str) -> String {
    name.chars().take(NAME_CHARACTERS_MAX).collect()
}

/// Lines of an outcome file that were attached to no run.
pub(super) fn say_unmatched_outcomes(lines: &[Unmatched], printer: Printer) {
    for Unmatched { line, tasks } in lines.iter().take(LISTED_MAX) {
        let (number, id) = (line.line, &line.id);
        let mut tasks = tasks.iter();
        if let (Some(one), Some(other)) = (tasks.next(), tasks.next()) {
            printer.warn(format_args!(
                "line {number} of the outcome file may mean `{}` or `{}`: `{id}`; give the whole task key",
                one.0, other.0
            ));
        } else {
            printer.warn(format_args!("line {number} of the outcome file names no run: `{id}`"));
        }
    }
    more(lines.len() as u64, "lines of the outcome file", printer);
}

/// Warns where nothing was left out that was to be: a name may be misspelled.
pub(crate) fn say_left_out<'a>(
    selection: &Selection,
    mut excluded: impl Iterator<Item = &'a BTreeMap<String, u64>>,
    printer: Printer,
) {
    if !selection.leave_out.is_empty() && !excluded.any(|reasons| reasons.contains_key(Selection::LEFT_OUT)) {
        let names: Vec<String> = selection.leave_out.iter().map(ToString::to_string).collect();
        printer.warn(format_args!("no run is of {}: nothing was left out", names.join(" or ")));
    }
}

/// Counts what was not listed.
pub(crate) fn more(count: u64, what: &str, printer: Printer) {
    if count > LISTED_MAX as u64 {
        printer.note(format_args!("  and {} more {what}", count - LISTED_MAX as u64));
    }
}
