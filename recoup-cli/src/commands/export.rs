//! `recoup export`: runs out, for other programs.

use std::collections::BTreeMap;
use std::path::Path;

use recoup::answers::{Exported, ExportedRows};
use recoup::exporters::trl_tokenized::{self, TrlTokenized};
use recoup::exporters::{ExportOptions, Exporter, Manifest, Training, atif, check, exporter};
use recoup::id::TrajectoryId;
use recoup::pipeline::{ContentSettings, export_atif, export_rows};
use recoup::store::{Filter, Page, Store};
use recoup::views::{VIEWS, View, usual};

use super::import::{LISTED_MAX, more, say_left_out};
use super::{chat_format, ls, preview, project};
use crate::Ended;
use crate::args::ExportArgs;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Writes runs into a folder.
pub(crate) fn export(flags: &ExportArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let is_whole = flags.format == atif::FORMAT;
    let (views, words) = views_and_ids(&flags.words)?;
    if is_whole && (!views.is_empty() || flags.check || flags.resample) {
        return Err(Failure::user("`--format atif` writes whole runs, not the rows of a view")
            .hint("leave out the view, `--check` and `--resample`"));
    }
    if flags.no_redact && !is_whole {
        return Err(Failure::user(format!("`--no-redact` is not for `--format {}`", flags.format))
            .hint("training rows leave redacted or not at all"));
    }
    let names_a_model = [&flags.model.model, &flags.model.template, &flags.model.tokenizer];
    let names_a_model = names_a_model.into_iter().any(Option::is_some);
    let tokenized = match flags.format.as_str() {
        trl_tokenized::FORMAT => Some(TrlTokenized::new(chat_format::read(&flags.model)?)),
        "trl" if names_a_model => Some(TrlTokenized::new(chat_format::read(&flags.model)?)),
        _ => None,
    };
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
    if is_whole {
        whole_runs(&store, &ids, flags, settings, printer)
    } else {
        let views = if views.is_empty() { usual().collect() } else { views };
        rows(&store, &ids, &views, tokenized.as_ref(), flags, settings, printer)
    }
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
    let mut refused: BTreeMap<&str, Vec<TrajectoryId>> = BTreeMap::new();
    for run in &export.refused {
        refused.entry(run.reason).or_default().push(run.id);
    }
    for (reason, ids) in refused {
        printer.warn(format_args!("{} not written: {reason}", runs(ids.len())));
        for id in ids.iter().take(LISTED_MAX) {
            printer.note(format_args!("  {id}"));
        }
        more(ids.len() as u64, "runs", printer);
    }
    Ok(if export.refused.is_empty() { Ended::Done } else { Ended::Partly })
}

fn rows(
    store: &Store,
    ids: &[TrajectoryId],
    views: &[&'static dyn View],
    tokenized: Option<&TrlTokenized>,
    flags: &ExportArgs,
    settings: &Settings,
    printer: Printer,
) -> Result<Ended, Failure> {
    let options = ExportOptions { resample: flags.resample };
    let mut wanted = Vec::new();
    for view in views {
        let made = tokenized.map(|exporter| exporter as &dyn Exporter);
        let exporter = made.or_else(|| exporter(&flags.format, *view));
        let exporter = exporter.ok_or_else(|| Failure::user("no such format"))?;
        wanted.push(Training { view: *view, exporter, options });
    }
    let mut progress = printer.progress();
    let threads = settings.threads;
    let selection = settings.selection(&flags.selection)?;
    let content = ContentSettings { selection, ..settings.content() };
    let manifests = export_rows(store, ids, &wanted, &flags.out, threads, &content, &mut progress)?;
    progress.finish();
    say_left_out(&content.selection, manifests.iter().map(|manifest| &manifest.excluded), printer);
    for (manifest, training) in manifests.iter().zip(&wanted) {
        if flags.check {
            check(&flags.out, manifest, training.exporter)
                .map_err(|error| Failure::machine("the export is not as it should be", &error))?;
        }
        say(manifest, flags, printer);
        if let Some(tokenized) = tokenized.filter(|_| !printer.is_json()) {
            let path = flags.out.join(training.exporter.file(&manifest.view));
            preview::rows(&path, tokenized.format(), flags.model.preview, printer)?;
        }
    }
    Ok(Ended::Done)
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
