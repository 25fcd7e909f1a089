//! `recoup run`: the main job.

use recoup::artifact::Artifact;
use recoup::pipeline::{self, Summary};
use recoup::verdict::Party;

use super::import::{Input, ended, say_imported, say_problems};
use super::{environment, project};
use crate::Ended;
use crate::args::RunArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Look, Printer, runs};
use crate::settings::Settings;

/// Imports, diagnoses, and writes the report and the training files.
pub(crate) fn run(flags: &RunArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let input = Input::open(&flags.paths, &flags.outcomes, settings)?;
    input.require_runs()?;
    let known = environment::Known::of(&flags.worlds, settings)?;
    // Said before the work, not after it.
    pipeline::require_own(&settings.out)?;
    let mut store = project::create_or_open(settings)?;
    let now = now();
    let config = input.config(&now, settings, &settings.out);
    let mut progress = printer.progress();
    let (mut summary, imported) = pipeline::run(
        &mut store,
        &input.sources,
        input.problems.clone(),
        &config,
        &|name| known.open(name),
        None,
        &mut progress,
    )?;
    progress.finish();
    summary.report = Some(settings.out.join("report.html").to_string_lossy().into_owned());
    if printer.is_json() {
        printer.json(&Artifact::new(project::provenance(&store, &config.settings), summary));
    } else {
        say_imported(&summary, printer);
        say_done(&summary, settings, printer);
    }
    say_problems(&imported, printer);
    Ok(ended(&imported))
}

fn say_done(summary: &Summary, settings: &Settings, printer: Printer) {
    let blame: Vec<String> = Party::ALL
        .iter()
        .filter_map(|party| {
            let count = summary.blame.get(party.as_str()).copied().filter(|count| *count > 0)?;
            Some(format!("{count} {}", party.as_str()))
        })
        .collect();
    if !blame.is_empty() {
        printer.line(format_args!("whose failure: {}", blame.join(", ")));
    }
    printer.line(format_args!(
        "diagnosed {} runs, {} of them now; `recoup ls --outcome failure` lists them",
        summary.diagnosed, summary.diagnosed_new
    ));
    if summary.replayed > 0 {
        printer.line(format_args!(
            "replayed {} in their environments; `recoup replay` says what that shows",
            runs(summary.replayed as usize)
        ));
    }
    for (view, rows) in &summary.exported {
        let path = settings.out.join(format!("{view}.jsonl"));
        printer.line(format_args!("training file: {} ({rows} rows)", path.display()));
    }
    if let Some(report) = &summary.report {
        printer.line(format_args!("report: {}", printer.paint(Look::Bold, report)));
    }
}
