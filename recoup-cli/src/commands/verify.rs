//! `recoup verify`: recomputes every hash in the project.

use recoup::reporter::Reporter as _;

use super::project;
use crate::Ended;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Verifies the project; problems are listed, and the exit code is 1.
pub(crate) fn verify(settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let mut progress = printer.progress();
    let mut shown = 0;
    let report = store.verify(&mut |done, total| {
        if shown == 0 {
            progress.stage("verify", Some(total));
        }
        progress.advance(done.saturating_sub(shown));
        shown = done;
    })?;
    progress.finish();
    let is_clean = report.is_clean();
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, report));
    } else if is_clean {
        printer.line(format_args!(
            "clean: {} runs, {} nodes, {} verdicts",
            report.trajectories, report.nodes, report.verdicts
        ));
    } else {
        for problem in &report.problems {
            printer.line(problem);
        }
        printer.note(format_args!("{} problems", report.problem_count));
    }
    Ok(if is_clean { Ended::Done } else { Ended::Partly })
}
