//! `--explain`: who would take a file and why, what it would give, and what would be lost.

use recoup::importers::Importer as _;
use recoup::pipeline::{self, Explanation};
use recoup::visible::visible_line;

use super::{Input, LISTED_MAX};
use crate::Ended;
use crate::printer::{Look, Printer, runs};

/// Explains every file that the user names.
pub(super) fn explain(input: &Input, printer: Printer) -> Ended {
    let importers = input.importers();
    let mut clean = true;
    for source in &input.sources {
        let explanation = pipeline::explain(source, &importers);
        clean &= explanation.is_clean();
        if printer.is_json() {
            printer.json(&explanation);
        } else {
            say(&explanation, input, printer);
        }
    }
    for problem in &input.problems {
        printer.warn(format_args!("`{}`: {}", problem.uri, problem.reason));
        clean &= problem.is_skip();
    }
    if input.sources.is_empty() {
        printer.note("there is nothing to read");
    }
    if clean { Ended::Done } else { Ended::Partly }
}

fn say(told: &Explanation, input: &Input, printer: Printer) {
    let line = |label: &str, text: String| {
        printer.line(format_args!("  {label:<11} {}", visible_line(&text)));
    };
    let format = match &told.taken {
        Some(taken) => taken.format.as_str(),
        None if told.companion => "belongs to the traces beside it",
        None => "nobody takes it",
    };
    let name = visible_line(&told.uri).into_owned();
    printer.line(format_args!("{}: {format}", printer.paint(Look::Bold, name)));
    if let Some(taken) = &told.taken {
        line("because", format!("it has {}", taken.because));
    }
    if let Some(seen) = &told.seen {
        let keys: Vec<String> = seen.keys.iter().map(|key| format!("`{key}`")).collect();
        let first = if keys.is_empty() { String::new() } else { format!("; first keys {}", keys.join(", ")) };
        line("seen", format!("{}{first}", seen.shape));
    }
    if let Some(error) = &told.error {
        line("unreadable", error.clone());
    }
    for other in &told.also {
        line("also", format!("{}, which comes later: {}", other.format, other.because));
    }
    if told.taken.is_none() && !told.companion {
        for near in &told.nearest {
            let keys =
                |keys: &[String]| keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            let lacks = if near.lacks.is_empty() {
                format!("all its keys are there, but not as {}", near.wants)
            } else {
                format!("has {}, lacks {}", keys(&near.has), keys(&near.lacks))
            };
            line("near", format!("{}: {lacks}", near.format));
        }
        if told.error.is_none() {
            let hint = if let Some((path, mapping)) = &input.mapping {
                format!("the mapping `{}` looks for {}", path.display(), mapping.recognizes())
            } else {
                "`recoup import --map FILE` reads a format of your own, `--map-template` prints one to start from"
                    .to_owned()
            };
            line("hint", hint);
        }
        return;
    }
    if told.taken.is_none() {
        return;
    }
    gives(told, &line);
    for entry in told.losses.iter().take(LISTED_MAX) {
        line("loses", format!("{} × `{}`: {}", entry.count, entry.loss.field, entry.loss.reason));
    }
    rest(told.losses.len() as u64, "kinds of loss", &line);
    for entry in told.quarantined.iter().take(LISTED_MAX) {
        let place = entry.line.map_or_else(String::new, |line| format!("line {line}: "));
        line("quarantines", format!("{place}{} ({})", entry.reason, entry.code));
    }
    rest(told.quarantined_count, "quarantined records", &line);
}

fn gives(told: &Explanation, line: &dyn Fn(&str, String)) {
    let labels = if told.labels > 0 { format!(", {} labels", told.labels) } else { String::new() };
    let outcomes = &told.outcomes;
    line(
        "gives",
        format!(
            "{}, {} messages, {} tool calls, {} results{labels}; {} success, {} failure, {} unknown",
            runs(told.runs as usize),
            told.nodes,
            told.tool_calls,
            told.tool_results,
            outcomes.success,
            outcomes.failure,
            outcomes.unknown,
        ),
    );
}

fn rest(count: u64, what: &str, line: &dyn Fn(&str, String)) {
    if count > LISTED_MAX as u64 {
        line("", format!("and {} more {what}", count - LISTED_MAX as u64));
    }
}
