//! `recoup forget`: deletes runs so that their bytes are gone.

use std::io::{BufRead as _, IsTerminal as _};

use recoup::store::{Filter, Page};

use super::project;
use crate::Ended;
use crate::args::ForgetArgs;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Deletes the runs named, or those that hold a text, after asking.
pub(crate) fn forget(flags: &ForgetArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let mut store = project::open(settings)?;
    // A call that was stopped may have left bytes of runs that nobody can name any more.
    store.finish_forgetting()?;
    let ids = match &flags.matching {
        None => project::resolve(&store, &flags.ids)?,
        Some(pattern) if pattern.trim().is_empty() => {
            return Err(Failure::user("`--matching` is empty: every run would match"));
        }
        Some(pattern) => {
            let mut ids = Vec::new();
            for filter in [
                Filter { text: Some(pattern.clone()), ..Filter::default() },
                Filter { uri: Some(pattern.clone()), ..Filter::default() },
            ] {
                let filter = Filter { all_revisions: true, ..filter };
                ids.extend(store.list(&filter, Page::ALL)?.into_iter().map(|row| row.id));
            }
            ids.sort_unstable();
            ids.dedup();
            ids
        }
    };
    if ids.is_empty() {
        printer.note("no runs match; nothing is deleted");
        return Ok(Ended::Done);
    }
    if !flags.yes && !confirmed(ids.len(), printer)? {
        printer.note("nothing is deleted");
        return Ok(Ended::Done);
    }
    let report = store.forget(&ids)?;
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, report));
    } else {
        printer.note(format_args!(
            "deleted {}; what was exported before stays where you put it",
            runs(ids.len())
        ));
    }
    Ok(Ended::Done)
}

fn confirmed(count: usize, printer: Printer) -> Result<bool, Failure> {
    if !std::io::stdin().is_terminal() {
        return Err(Failure::user(format!("this would delete {} for good", runs(count))).hint("add `--yes`"));
    }
    printer.note(format_args!("delete {} for good? [y/N]", runs(count)));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::machine("cannot read the answer", &error))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
