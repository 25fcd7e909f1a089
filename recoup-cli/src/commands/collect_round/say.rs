//! What a round of collection would take and has come to, in words.

use recoup::models::Estimate;
use recoup::rollout::interleave::{Collecting, Collection, Report, Round, RoundReport, lines};

use crate::models::describe;
use crate::printer::{Printer, counted, runs};

/// What a round would take.
pub(super) fn plan(pending: &Collecting, estimate: &Estimate, round: &Round<'_>, printer: Printer) {
    let Collecting { requests, missing, held_out } = pending;
    printer.line(format_args!(
        "{} of `{}`: {missing} to make, {} in the project already; {} held out of training",
        runs(*requests as usize),
        round.name(None),
        requests - missing,
        counted(*held_out as usize, "task"),
    ));
    if estimate.requests > 0 {
        printer.line(describe(estimate));
    }
}

/// What a round has come to, in words.
pub(super) fn done(done: &Collection, report: &Report, round: &Round<'_>, printer: Printer) {
    printer.line(format_args!(
        "{} of `{}`, {} new; {} held out of training",
        runs(done.requests as usize),
        round.name(None),
        done.new,
        counted(done.held_out as usize, "task"),
    ));
    let outcomes: Vec<String> =
        done.outcomes.iter().map(|(outcome, count)| format!("{count} {}", outcome.as_str())).collect();
    printer.line(format_args!("requests: {}", outcomes.join(", ")));
    for round in &report.rounds {
        say_round(round, printer);
    }
}

fn say_round(round: &RoundReport, printer: Printer) {
    printer.line(format_args!("round {}:", round.round));
    for line in lines(round) {
        printer.line(format_args!("  {}: {}", line.name, line.value));
    }
}
