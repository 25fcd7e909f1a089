//! `recoup export`: runs out, for other programs.

use std::collections::BTreeMap;
use std::path::Path;

use recoup::answers::{Exported, ExportedRows};
use recoup::exporters::trl_tokenized::{self, TrlTokenized};
use recoup::exporters::{ExportOptions, Manifest, Prover, Training, atif, check, exporter};
use recoup::id::TrajectoryId;
use recoup::pipeline::{ContentSettings, export_atif, export_rows, runs_of_views};
use recoup::store::{Filter, Page, Store};
use recoup::views::{VIEWS, View, usual};

use super::import::{LISTED_MAX, more, say_left_out};
use super::{chat_format, ls, preview, project};
use crate::Ended;
use crate::args::ExportArgs;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Writes runs into a folder, or the rows that views make of them.
pub(crate) fn export(flags: &ExportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let is_whole = flags.format == atif::FORMAT;
    let (views, words) = views_and_ids(&flags.words)?;
    let is_about_rows = flags.check || flags.resample || flags.model.preview > 0 || flags.model.is_used();
    if is_whole && is_about_rows {
        return Err(Failure::user("`--format atif` writes whole runs, not rows")
            .hint("leave out `--check`, `--resample`, `--preview` and what is said of a model"));
    }
    if flags.no_redact && !is_whole {
        return Err(Failure::user(format!("`--no-redact` is not for `--format {}`", flags.format))
            .hint("training rows leave redacted or not at all"));
    }
    let needs_a_model = flags.format == trl_tokenized::FORMAT || flags.model.is_used();
    let read = || chat_format::read(&flags.model.files, flags.model.max_tokens);
    let model = needs_a_model.then(read).transpose()?.map(TrlTokenized::new);
    let store = project::open(settings)?;
    let ids = if words.is_empty() {
        let filter = Filter {
            outcome: ls::outcome(flags.outcome.as_deref())?,
            task: flags.task.clone(),
            ..Filter::default()
        };
        store.list(&filter, Page::ALL)?.into_iter().map(|row| row.id).collect()
    } else {
        project::resolve(&store, &words)?
    };
    let content = ContentSettings {
        selection: settings.selection(&flags.selection)?,
        model: model.as_ref().map(|model| model.format().hash()),
        ..settings.content()
    };
    let job = Job { store: &store, flags, settings, content, printer };
    match (is_whole, views.is_empty()) {
        (true, true) => job.whole_runs(&ids),
        (true, false) => {
            let mut progress = printer.progress();
            let ids = runs_of_views(&store, &ids, &views, settings.threads, &job.content, &mut progress)?;
            progress.finish();
            job.whole_runs(&ids)
        }
        (false, true) => job.rows(&ids, &usual().collect::<Vec<_>>(), model.as_ref()),
        (false, false) => job.rows(&ids, &views, model.as_ref()),
    }
}

/// An export: from where, how, and whom to tell.
struct Job<'a> {
    store: &'a Store,
    flags: &'a ExportArgs,
    settings: &'a Settings,
    content: ContentSettings,
    printer: Printer,
}

/// The views among what was typed, and the rest, which must look like ids.
fn views_and_ids(words: &[String]) -> Result<(Vec<&'static dyn View>, Vec<String>), Failure> {
    let (mut views, mut ids) = (Vec::new(), Vec::new());
    for word in words {
        if let Some(view) = VIEWS.iter().find(|view| view.name() == word) {
            if !views.iter().any(|known: &&dyn View| known.name() == view.name()) {
                views.push(*view);
            }
        } else if word.chars().all(|digit| digit.is_ascii_hexdigit()) {
            ids.push(word.clone());
        } else {
            let names: Vec<&str> = VIEWS.iter().map(|view| view.name()).collect();
            return Err(Failure::user(format!("`{word}` is no view, and no id of a run"))
                .hint(format!("views: {}", names.join(", "))));
        }
    }
    Ok((views, ids))
}

impl Job<'_> {
    fn whole_runs(&self, ids: &[TrajectoryId]) -> Result<Ended, Failure> {
        let Self { store, flags, settings, content, printer } = self;
        let mut progress = printer.progress();
        let provenance = project::provenance(store, content);
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
        let mut refused: BTreeMap<&str, Vec<TrajectoryId>> = BTreeMap::new();
        for run in &export.refused {
            refused.entry(run.reason).or_default().push(run.id);
        }
        for (reason, ids) in refused {
            printer.warn(format_args!("{} not written: {reason}", runs(ids.len())));
            for id in ids.iter().take(LISTED_MAX) {
                printer.note(format_args!("  {id}"));
            }
            more(ids.len() as u64, "runs", *printer);
        }
        Ok(if export.refused.is_empty() { Ended::Done } else { Ended::Partly })
    }

    fn rows(
        &self,
        ids: &[TrajectoryId],
        views: &[&'static dyn View],
        model: Option<&TrlTokenized>,
    ) -> Result<Ended, Failure> {
        let Self { store, flags, settings, content, printer } = self;
        let wanted = views.iter().map(|view| training(*view, model, flags)).collect::<Result<Vec<_>, _>>()?;
        let mut progress = printer.progress();
        let written = export_rows(store, ids, &wanted, &flags.out, settings.threads, content, &mut progress)?;
        progress.finish();
        say_left_out(&content.selection, written.iter().map(|(manifest, _)| &manifest.excluded), *printer);
        for ((manifest, previews), training) in written.iter().zip(&wanted) {
            if flags.check {
                check(&flags.out, manifest, training.exporter)
                    .map_err(|error| Failure::machine("the export is not as it should be", &error))?;
            }
            say(manifest, flags, *printer);
            if printer.is_json() {
                continue;
            }
            match model.filter(|_| training.exporter.format() == trl_tokenized::FORMAT) {
                Some(model) => {
                    let path = flags.out.join(training.exporter.file(&manifest.view));
                    preview::rows(&path, model.format(), flags.model.preview, *printer)?;
                }
                None => preview::examples(previews, *printer),
            }
        }
        Ok(Ended::Done)
    }
}

/// How a view is written: as tokens of the model where the format has a form for them, else as text that is proved for
/// the model, where one is named.
fn training<'a>(
    view: &'static dyn View,
    model: Option<&'a TrlTokenized>,
    flags: &ExportArgs,
) -> Result<Training<'a>, Failure> {
    let mut options = ExportOptions { resample: flags.resample, previews: flags.model.preview, prover: None };
    if let Some(model) = model.filter(|_| flags.format == trl_tokenized::FORMAT) {
        return Ok(Training { view, exporter: model, options });
    }
    let exporter = exporter(&flags.format, view).ok_or_else(|| Failure::user("no such format"))?;
    if let Some(model) = model.filter(|_| flags.format == "trl") {
        return Ok(model.made_for(Training { view, exporter, options }));
    }
    options.prover = model.map(|model| model as &dyn Prover);
    Ok(Training { view, exporter, options })
}

fn say(manifest: &Manifest, flags: &ExportArgs, printer: Printer) {
    let own = format!("{}.manifest.json", manifest.view);
    let out = shown(&flags.out);
    let files = manifest.files.iter().map(String::as_str);
    if printer.is_json() {
        printer.json(&ExportedRows {
            format: &manifest.format,
            format_version: manifest.format_version,
            provenance: &manifest.provenance,
            view: &manifest.view,
            rows: manifest.rows,
            excluded: &manifest.excluded,
            refused: &manifest.refused,
            duplicates: manifest.duplicates,
            tokens: manifest.tokens.map(|tokens| tokens.tokens),
            trained_tokens: manifest.tokens.map(|tokens| tokens.trained_tokens),
            files: files.chain([own.as_str()]).collect(),
            out: &out,
            checked: flags.check,
        });
        return;
    }
    let Some(file) = manifest.files.first() else { return };
    let rows = Path::new(&out).join(file);
    let checked = if flags.check { ", read again and found whole" } else { "" };
    printer.line(format_args!("wrote {} rows to {}{checked}", manifest.rows, rows.display()));
    for (reason, count) in manifest.excluded.iter().chain(&manifest.refused) {
        printer.note(format_args!("  {count} × {reason}"));
    }
    if manifest.rows > 0 || manifest.refused.is_empty() {
        return;
    }
    if manifest.refused.contains_key("weight-not-carried") {
        printer.note("  this format carries no weights: `--resample` draws rows by weight, `--format parquet` keeps them");
    } else {
        printer.warn(format_args!(
            "`{}` in the format `{}` came to nothing: `--format trl` takes the form that fits a view, `--format \
             parquet` every one",
            manifest.view, flags.format
        ));
    }
}

fn shown(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
