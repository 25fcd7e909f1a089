//! `recoup stats`: what the project holds.

use recoup::models::Cost;
use recoup::store::StageCost;

use super::project;
use crate::Ended;
use crate::failure::Failure;
use crate::printer::{Look, Printer};
use crate::settings::Settings;

/// Prints counts and sizes.
pub(crate) fn stats(settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let stats = store.stats()?;
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, stats));
        return Ok(Ended::Done);
    }
    let line = |name: &str, value: String| printer.line(format_args!("{name:<16} {value}"));
    line("runs", stats.trajectories.to_string());
    let outcomes = &stats.outcomes;
    line(
        "outcomes",
        format!("{} success, {} failure, {} unknown", outcomes.success, outcomes.failure, outcomes.unknown),
    );
    line("messages", format!("{}, {} of them stored once", stats.nodes, stats.stored_nodes));
    line("text", format!("{} bytes in {} packed", stats.raw_bytes, stats.packed_bytes));
    line("file", format!("{} bytes", stats.file_bytes));
    line("verdicts", format!("{}, {} of them stale", stats.verdicts, stats.stale_verdicts));
    for (side, count) in &stats.splits {
        line(&format!("split {side}"), count.to_string());
    }
    if let Some(largest) = &stats.largest_component {
        let rule = if stats.split_strict { "strict" } else { "standard" };
        line("split rule", format!("{rule}; at most {} of {} tasks tied", largest.tasks, largest.of));
    }
    line("near-duplicates", stats.near_duplicates.to_string());
    if !stats.formats.is_empty() {
        printer.line(printer.paint(
            Look::Bold,
            format_args!("{:<16} {:>8} {:>9} {:>9}", "FORMAT", "RUNS", "MESSAGES", "CALLS"),
        ));
    }
    for (format, counts) in &stats.formats {
        printer.line(format_args!(
            "{format:<16} {:>8} {:>9} {:>9}",
            counts.trajectories, counts.nodes, counts.tool_calls
        ));
    }
    say_replies(&stats.replies, printer);
    Ok(Ended::Done)
}

/// What models' answers took that are kept in the project.
fn say_replies(replies: &[StageCost], printer: Printer) {
    if replies.is_empty() {
        return;
    }
    printer.line(printer.paint(
        Look::Bold,
        format_args!(
            "{:<16} {:>8} {:>12} {:>10} {:>10} {:>7} MODEL",
            "ANSWERS FOR", "COUNT", "ASKED TOKENS", "ANSWERED", "COST", "S EACH"
        ),
    ));
    for cost in replies {
        let money = cost.cost_picodollars.map_or_else(|| "unknown".to_owned(), |sum| Cost(sum).to_string());
        let seconds = cost.took_ms as f64 / 1000.0 / cost.replies.max(1) as f64;
        printer.line(format_args!(
            "{:<16} {:>8} {:>12} {:>10} {money:>10} {seconds:>7.1} {}",
            cost.stage, cost.replies, cost.prompt_tokens, cost.completion_tokens, cost.model
        ));
    }
}
