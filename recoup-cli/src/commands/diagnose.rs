//! `recoup diagnose`: looks at the runs that nobody has looked at yet.

use recoup::pipeline;

use super::project;
use crate::Ended;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Diagnoses what waits for it.
pub(crate) fn diagnose(settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let mut store = project::open(settings)?;
    let mut progress = printer.progress();
    let done = pipeline::diagnose(&mut store, &now(), settings.threads, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, done));
    } else {
        printer.line(format_args!("looked at {}, diagnosed {}", runs(done.runs as usize), done.diagnosed));
    }
    Ok(Ended::Done)
}
