//! `recoup relabel`: finds goals that failed runs did achieve.

use recoup::hindsight::RelabelConfig;
use recoup::pipeline::{self, RelabelPlan, Relabeling, Verified};

use super::{environment, project};
use crate::Ended;
use crate::args::RelabelArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Relabels runs.
pub(crate) fn relabel(flags: &RelabelArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let known = environment::Known::of(&flags.worlds, settings)?;
    let mut store = project::open(settings)?;
    let only = match flags.ids.as_slice() {
        [] => None,
        ids => Some(project::resolve(&store, ids)?),
    };
    let now = now();
    let plan = RelabelPlan {
        config: RelabelConfig { blind: flags.blind },
        only,
        limit: flags.limit,
        seed: flags.seed,
        opener: &|name| known.open(name),
        threads: settings.threads,
        now: &now,
    };
    let mut progress = printer.progress();
    let done = pipeline::relabel_runs(&mut store, &plan, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        printer.json(&project::answer_as(&store, &(flags.blind, flags.seed), done));
    } else {
        say(&done, printer);
    }
    Ok(Ended::Done)
}

fn say(done: &Relabeling, printer: Printer) {
    let accepted: u64 = done.accepted.values().sum();
    printer.line(format_args!(
        "{accepted} of {} did achieve a goal of their own, {} looked at now",
        runs(done.candidates as usize),
        done.new
    ));
    for (class, count) in &done.accepted {
        printer.line(format_args!("  {class}: {count}"));
    }
    for (gate, count) in &done.rejected {
        printer.line(format_args!("  refused by {gate}: {count}"));
    }
    share("the environment passes", done.verified, "accepted goals", printer);
    share("it would have passed", done.missed, "refused goals", printer);
    for (why, count) in &done.unsupported {
        printer
            .note(format_args!("the environment could not be asked about {}: {why}", runs(*count as usize)));
    }
    if done.background {
        printer.note("runs of other tasks are few: the bundled background stood in for them");
    }
}

fn share(what: &str, share: Verified, of: &str, printer: Printer) {
    if share.n > 0 {
        let [rate, low, high] = [share.rate, share.low, share.high].map(|share| 100.0 * share);
        printer.line(format_args!(
            "{what} {} of {} {of}: {rate:.1} % [{low:.1}, {high:.1}]",
            share.passed, share.n
        ));
    }
}
