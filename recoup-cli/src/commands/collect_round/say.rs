//! What a round of collection would take and has come to, in words.

use recoup::interleaving::Readings;
use recoup::models::Estimate;
use recoup::rollout::interleave::{Collecting, Collection, Rate, Report, Round, RoundReport};
use recoup::statistics::Bounds;

use crate::models::describe;
use crate::printer::{Printer, runs};

/// What a round would take.
pub(super) fn plan(pending: &Collecting, estimate: &Estimate, round: &Round<'_>, printer: Printer) {
    let Collecting { requests, missing, held_out } = pending;
    printer.line(format_args!(
        "{} of `{}`: {missing} to make, {} in the project already; {} held out of training",
        runs(*requests as usize),
        round.name(None),
        requests - missing,
        tasks(*held_out),
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
        tasks(done.held_out),
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
    for (name, arm) in
        [("student alone", &round.student), ("teacher alone", &round.teacher), ("mixture", &round.mixture)]
    {
        let Some(arm) = arm else { continue };
        let ends: Vec<String> = arm.end_modes.iter().map(|(mode, count)| format!("{count} {mode}")).collect();
        printer.line(format_args!("  {name}: {} passed; ended: {}", share(&arm.success), ends.join(", ")));
    }
    if let Some(fraction) = round.delivered_teacher_fraction {
        printer.line(format_args!("  the teacher took {:.1} % of the turns", 100.0 * fraction));
    }
    let Readings { strict, lenient, unreadable } = round.readings;
    if !round.readings.is_empty() {
        printer.line(format_args!(
            "  the student's turns were read strictly {strict} times, leniently {lenient}, not at all {unreadable}"
        ));
    }
    let labels = &round.labels;
    printer.line(format_args!(
        "  {} of {} visited states have an accepted label",
        labels.accepted, labels.states
    ));
    for (rule, count) in &labels.refused {
        printer.line(format_args!("    refused by {}: {count}", rule.as_str()));
    }
    for (filter, count) in &labels.marked {
        printer.line(format_args!("    marked {}: {count}", filter.as_str()));
    }
    if labels.verified.0 > 0 {
        let (tried, passed) = labels.verified;
        printer.line(format_args!("    executed: {tried}, of which {passed} passed"));
    }
    if let Some(disagreement) = &round.shift.disagreement {
        printer.line(format_args!(
            "  where the student acted, the teacher would have done else: {}",
            share(disagreement)
        ));
    }
    if let Some(kl) = round.shift.reverse_kl {
        printer.line(format_args!("  reverse KL: {kl:.4} nats a token over {} tokens", round.shift.tokens));
    }
    if let Some(tokens) = labels.tokens_per_accepted.filter(|tokens| *tokens > 0.0) {
        let cost = labels.cost_per_accepted_usd.map_or_else(String::new, |cost| format!(", ${cost:.6}"));
        printer.line(format_args!("  an accepted label took {tokens:.0} tokens{cost}"));
    }
}

/// A share with its interval.
fn share(rate: &Rate) -> String {
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    let interval = rate.interval.map_or_else(
        || format!(" (no interval from {})", tasks(rate.tasks)),
        |Bounds { low, high }| format!(" [{}, {}]", percent(low), percent(high)),
    );
    format!("{} % of {}{interval}", percent(rate.rate), rate.n)
}

fn tasks(count: u64) -> String {
    if count == 1 { "1 task".to_owned() } else { format!("{count} tasks") }
}
