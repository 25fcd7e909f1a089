//! `recoup export`: runs out, for other programs.

use std::path::Path;

use recoup::answers::{Exported, ExportedRows};
use recoup::exporters::trl_tokenized::{self, TrlTokenized};
use recoup::exporters::{Exporter, atif, training};
use recoup::id::TrajectoryId;
use recoup::pipeline::{export_atif, export_rows};
use recoup::store::{Filter, Page, Store};

use super::{chat_format, ls, preview, project};
use crate::Ended;
use crate::args::ExportArgs;
use crate::failure::Failure;
use crate::printer::Printer;
use crate::settings::Settings;

/// Writes runs into a folder.
pub(crate) fn export(flags: &ExportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let is_whole = flags.format == atif::FORMAT;
    if flags.no_redact && !is_whole {
        return Err(Failure::user(format!("`--no-redact` is not for `--format {}`", flags.format))
            .hint("training rows leave redacted or not at all"));
    }
    let tokenized = match flags.format.as_str() {
        trl_tokenized::FORMAT => Some(TrlTokenized::new(chat_format::read(&flags.model)?)),
        _ => None,
    };
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
    if is_whole {
        whole_runs(&store, &ids, flags, settings, printer)
    } else {
        rows(&store, &ids, tokenized.as_ref(), flags, settings, printer)
    }
}

fn whole_runs(
    store: &Store,
    ids: &[TrajectoryId],
    flags: &ExportArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let mut progress = printer.progress();
    let provenance = project::provenance(store, &settings.content());
    let export = export_atif(store, ids, &flags.out, !flags.no_redact, provenance, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        let answer = Exported { export: &export, out: &shown(&flags.out) };
        printer.json(&project::answer(store, settings, answer));
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

fn rows(
    store: &Store,
    ids: &[TrajectoryId],
    tokenized: Option<&TrlTokenized>,
    flags: &ExportArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let mut progress = printer.progress();
    let made = tokenized.map(|exporter| exporter as &dyn Exporter);
    let mut wanted = training(&flags.format, made);
    wanted.retain(|training| flags.view.as_deref().is_none_or(|view| view == training.view.name()));
    let threads = settings.threads;
    let content = settings.content();
    let manifests = export_rows(store, ids, &wanted, &flags.out, threads, &content, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        let exported = manifests.iter().map(|manifest| (manifest.view.clone(), manifest.rows)).collect();
        let answer = ExportedRows { exported, out: &shown(&flags.out) };
        printer.json(&project::answer(store, settings, answer));
        return Ok(Ended::Done);
    }
    for manifest in &manifests {
        let path = flags.out.join(format!("{}.jsonl", manifest.view));
        printer.line(format_args!("wrote {} rows to {}", manifest.rows, path.display()));
        for (reason, count) in manifest.excluded.iter().chain(&manifest.refused) {
            printer.note(format_args!("  {count} × {reason}"));
        }
        if let Some(tokenized) = tokenized {
            preview::rows(&path, tokenized.format(), flags.model.preview, printer)?;
        }
    }
    Ok(Ended::Done)
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
