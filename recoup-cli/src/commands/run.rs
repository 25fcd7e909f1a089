//! `recoup run`: the main job.

use std::collections::BTreeMap;

use recoup::artifact::Artifact;
use recoup::exporters::Training;
use recoup::exporters::trl_tokenized::TrlTokenized;
use recoup::pipeline::{self, Consulted, JudgingPlan, Summary};
use recoup::store::Store;
use recoup::verdict::Party;

use super::import::{Input, ended, say_imported, say_left_out, say_problems, say_waiting_labels};
use super::panel::{self, Choice, Panel, no_judge};
use super::{chat_format, environment, project};
use crate::Ended;
use crate::args::RunArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::models::Decision;
use crate::printer::{Look, Printer, runs};
use crate::settings::Settings;

/// Imports, diagnoses, and writes the report and the training files.
pub(crate) fn run(flags: &RunArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let input = Input::open(&flags.paths, &flags.outcomes, settings)?;
    let is_import = !flags.paths.is_empty();
    if is_import {
        input.require_runs()?;
    }
    let known = environment::Known::of(&flags.worlds, settings)?;
    // Said before the work, not after it.
    pipeline::require_own(&settings.out)?;
    let selection = settings.selection(&flags.selection)?;
    let read = || chat_format::read(&flags.model, None);
    let model = flags.model.is_used().then(read).transpose()?.map(TrlTokenized::new);
    let training: Vec<Training<'_>> = match &model {
        Some(model) => pipeline::training_files().map(|training| model.made_for(training)).collect(),
        None => pipeline::training_files().collect(),
    };
    let mut store = if is_import { project::create_or_open(settings)? } else { project::open(settings)? };
    if settings.is_split_strict(&flags.split) {
        store.make_split_strict()?;
    }
    let now = now();
    let importers = input.importers();
    let mut config = input.config(&now, settings, &settings.out, &importers);
    config.settings.selection = selection;
    config.settings.model = model.as_ref().map(|model| model.format().hash());
    config.training = &training;
    let panel = Panel::open(&flags.judge, settings, &store, printer)?;
    let choice = Choice { resume: true, ..Choice::default() };
    let mut progress = printer.progress();
    if flags.judge.spend.dry_run {
        let panel = panel.ok_or_else(|| no_judge("--dry-run"))?;
        // Only the rules can say which runs there are to judge.
        let imported =
            pipeline::import(&mut store, &input.sources, input.problems.clone(), &config, &mut progress)?;
        pipeline::diagnose(&mut store, &now, settings.threads, &mut progress)?;
        progress.finish();
        panel.with_plan(choice, |plan| panel.announce(&store, plan, settings, printer))?;
        say_problems(&imported, printer);
        return Ok(ended(&imported));
    }
    let mut refused = None;
    let mut job = |plan: Option<&JudgingPlan<'_>>| {
        let mut consent = |store: &Store| match (&panel, plan) {
            (Some(panel), Some(plan)) => match panel.announce(store, plan, settings, printer) {
                Ok(decision) => decision == Decision::Ask,
                Err(failure) => {
                    refused = Some(failure);
                    false
                }
            },
            _ => false,
        };
        let judges = plan.map(|plan| Consulted { plan, consent: &mut consent });
        let problems = input.problems.clone();
        pipeline::run(
            &mut store,
            &input.sources,
            problems,
            &config,
            &|name| known.open(name),
            judges,
            &mut progress,
        )
    };
    let (mut summary, imported) = match &panel {
        Some(panel) => panel.with_plan(choice, |plan| job(Some(plan)))?,
        None => job(None)?,
    };
    progress.finish();
    summary.report = Some(settings.out.join("report.html").to_string_lossy().into_owned());
    let judged = summary.judged.clone();
    let excluded = summary.excluded.clone();
    if printer.is_json() {
        printer.json(&Artifact::new(project::provenance(&store, &config.settings), summary));
    } else {
        say_imported(&summary, printer);
        say_done(&summary, settings, &training, printer);
    }
    say_problems(&imported, printer);
    input.say_unmatched(&imported, printer);
    say_waiting_labels(&store, printer)?;
    say_left_out(&config.settings.selection, excluded.values(), printer);
    let judged = match (&panel, &judged) {
        (Some(panel), Some(judged)) => {
            panel.say(judged, printer)?;
            panel::ended(judged, printer)?
        }
        _ => Ended::Done,
    };
    match refused {
        Some(failure) => Err(failure),
        None if judged == Ended::Partly => Ok(Ended::Partly),
        None => Ok(ended(&imported)),
    }
}

fn say_done(summary: &Summary, settings: &Settings, training: &[Training<'_>], printer: Printer) {
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
    if summary.relabeled > 0 {
        printer.line(format_args!(
            "{} did achieve a goal of their own; `recoup relabel` lists the goals",
            runs(summary.relabeled as usize)
        ));
    }
    let files: BTreeMap<String, String> = training
        .iter()
        .map(|training| (training.view.name().to_owned(), training.exporter.file(training.view.name())))
        .collect();
    for (view, rows) in &summary.exported {
        if let Some(file) = files.get(view) {
            let tokens = summary.tokens.get(view);
            let tokens =
                tokens.map(|counts| format!(", {} tokens, {} learned", counts.tokens, counts.trained_tokens));
            let (path, tokens) = (settings.out.join(file), tokens.unwrap_or_default());
            printer.line(format_args!("training file: {} ({rows} rows{tokens})", path.display()));
        }
    }
    if let Some(report) = &summary.report {
        printer.line(format_args!("report: {}", printer.paint(Look::Bold, report)));
    }
}
