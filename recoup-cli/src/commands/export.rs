//! `recoup export`: runs out, for other programs.

use recoup::answers::Exported;
use recoup::pipeline::export_atif;
use recoup::store::{Filter, Page};

use super::{ls, project};
use crate::Ended;
use crate::args::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Writes runs into a folder.
pub(crate) fn export(flags: &ExportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let ids = if flags.ids.is_empty() {
        let filter = Filter {
            outcome: ls::outcome(flags.outcome.as_deref())?,
            task: flags.task.clone(),
            ..Filter::default()
        };
        store.list(&filter, Page::ALL)?.into_iter().map(|row| row.id).collect()
    } else {
        project::resolve(&store, &flags.ids)?
    };
    let mut progress = printer.progress();
    let provenance = project::provenance(&store, &settings.content());
    let export = match flags.format {
        ExportFormat::Atif => {
            export_atif(&store, &ids, &flags.out, !flags.no_redact, provenance, &mut progress)?
        }
    };
    progress.finish();
    if printer.is_json() {
        let answer = Exported { export: &export, out: &flags.out.to_string_lossy() };
        printer.json(&project::answer(&store, settings, answer));
    } else {
        printer.line(format_args!("wrote {} files to {}", export.written, flags.out.display()));
        for lost in &export.losses {
            printer.note(format_args!("  {} × `{}`: {}", lost.count, lost.field, lost.reason));
        }
    }
    for refused in &export.refused {
        printer.warn(format_args!("{} was not written: {}", refused.id, refused.reason));
    }
    Ok(if export.refused.is_empty() { Ended::Done } else { Ended::Partly })
}
