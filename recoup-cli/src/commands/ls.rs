//! `recoup ls`: one line a run.

use recoup::importers::IMPORTERS;
use recoup::rollout;
use recoup::store::{Filter, Page, Row, Store};
use recoup::trajectory::Status;
use recoup::verdict::{Class, Party, Side};
use recoup::visible::visible_line;

use super::project;
use crate::Ended;
use crate::args::{FilterArgs, LsArgs};
use crate::failure::Failure;
use crate::printer::{Look, Printer, short_id};
use crate::settings::Settings;

/// Lists runs.
pub(crate) fn ls(flags: &LsArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let filter = filter(&flags.filter, &store)?;
    let page = if flags.all { Page::ALL } else { Page { offset: flags.offset, limit: flags.limit } };
    let rows = store.list(&filter, page)?;
    if printer.is_json() {
        for row in &rows {
            printer.json(row);
        }
        return Ok(Ended::Done);
    }
    let total = store.count(&filter)?;
    if rows.is_empty() {
        match total {
            0 => printer.note("no runs match"),
            _ => printer.note(format_args!("{total} runs match, none of them on this page")),
        }
        return Ok(Ended::Done);
    }
    let header = format!(
        "{:<12} {:<8} {:<15} {:<20} {:>5} {:>5} {:>8}  {}",
        "ID", "OUTCOME", "BLAME", "CLASS", "NODES", "STEPS", "DECISIVE", "TASK"
    );
    printer.line(printer.paint(Look::Bold, header));
    for row in &rows {
        printer.line(line(row, printer));
    }
    let next = flags.offset + rows.len() as u64;
    if !flags.all && total > next {
        printer.note(format_args!("{} of {total} runs; more with `--offset {next}` or `--all`", rows.len()));
    }
    Ok(Ended::Done)
}

fn line(row: &Row, printer: Printer) -> String {
    let look = match row.outcome.as_str() {
        "success" => Look::Green,
        "failure" => Look::Red,
        _ => Look::Yellow,
    };
    let outcome = printer.paint(look, format_args!("{:<8}", row.outcome));
    let blame = row.blame.as_deref().unwrap_or("-");
    let blame = if row.suspected { format!("{blame}?") } else { blame.to_owned() };
    let class = row.class.as_deref().unwrap_or("-");
    let decisive = row.decisive_step.map_or_else(|| "-".to_owned(), |step| step.to_string());
    let (id, task) = (short_id(row.id), visible_line(&row.task.0));
    let (nodes, steps) = (row.nodes, row.steps);
    format!("{id:<12} {outcome} {blame:<15} {class:<20} {nodes:>5} {steps:>5} {decisive:>8}  {task}")
}

/// The filter that the flags mean.
fn filter(flags: &FilterArgs, store: &Store) -> Result<Filter, Failure> {
    Ok(Filter {
        outcome: outcome(flags.outcome.as_deref())?,
        blame: word("blame", flags.blame.as_deref(), &Party::ALL, Party::as_str)?,
        class: word("class", flags.class.as_deref(), &Class::ALL, Class::as_str)?,
        split: word("split", flags.split.as_deref(), &Side::ALL, Side::as_str)?,
        format: format(flags.format.as_deref(), store)?,
        agent: flags.agent.clone(),
        model: flags.model.clone(),
        task: flags.task.clone(),
        harness: flags.harness.clone(),
        text: flags.text.clone(),
        continuations: flags.continuations,
        ..Filter::default()
    })
}

/// A format that is read, or that policies leave, or that runs of the project have: a mapping names its own.
fn format(given: Option<&str>, store: &Store) -> Result<Option<String>, Failure> {
    let formats: Vec<&str> =
        IMPORTERS.iter().map(|importer| importer.format()).chain([rollout::FORMAT]).collect();
    match given {
        Some(own) if !formats.contains(&own) && store.stats()?.formats.contains_key(own) => {
            Ok(Some(own.to_owned()))
        }
        given => word("format", given, &formats, |name| name),
    }
}

/// The word of an outcome, where it is one.
pub(crate) fn outcome(given: Option<&str>) -> Result<Option<String>, Failure> {
    word("outcome", given, &[Status::Success, Status::Failure, Status::Unknown], Status::as_str)
}

fn word<T: Copy>(
    flag: &str,
    given: Option<&str>,
    all: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<Option<String>, Failure> {
    let Some(given) = given else { return Ok(None) };
    if all.iter().any(|value| name(*value) == given) {
        return Ok(Some(given.to_owned()));
    }
    let names: Vec<&str> = all.iter().map(|value| name(*value)).collect();
    Err(Failure::user(format!("`{given}` is no value of `--{flag}`"))
        .hint(format!("use one of {}", names.join(", "))))
}
