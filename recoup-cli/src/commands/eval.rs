//! `recoup eval`: measures how often recoup is right.

use std::path::Path;

use recoup::artifact::Artifact;
use recoup::evaluation::attribution::{
    Agreement, Attribution, GivenPredictions, Margin, Score, parse_predictions,
};
use recoup::pipeline::{self, AttributionConfig, FlipAgreement, Predictor};
use recoup::store::Store;
use recoup::verdict::Side;
use recoup::visible::visible_line;

use super::import::{Input, ended, say_problems};
use super::project;
use crate::Ended;
use crate::args::{AttributionArgs, By, EvalCommand, OutcomeArgs, SideChoice};
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Look, Printer, runs};
use crate::settings::Settings;

/// Measures what the user asks for.
pub(crate) fn eval(command: &EvalCommand, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    match command {
        EvalCommand::Attribution(flags) if flags.against.is_some() => against_flips(settings, printer),
        EvalCommand::Attribution(flags) => attribution(flags, settings, printer),
    }
}

fn attribution(flags: &AttributionArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let given = flags.predictions.as_deref().map(predictions).transpose()?;
    let by = match (&given, flags.by) {
        (Some(given), _) => Predictor::Given(given),
        (None, By::Rules) => Predictor::Rules,
        (None, by) => Predictor::Judges { with_ground_truth: by == By::JudgeWithGroundTruth },
    };
    let input = Input::open(&flags.labels, &OutcomeArgs::default(), settings)?;
    input.require_runs()?;
    let scratch = if settings.is_project_named || matches!(by, Predictor::Judges { .. }) {
        None
    } else {
        let made = tempfile::Builder::new().prefix("recoup-eval-").tempdir();
        Some(made.map_err(|error| Failure::machine("cannot make a folder for the labelled runs", &error))?)
    };
    let mut store = match &scratch {
        Some(folder) => Store::create_or_open(folder.path())?,
        None => project::create_or_open(settings)?,
    };
    let now = now();
    let importers = input.importers();
    let config = input.config(&now, settings, Path::new(""), &importers);
    let mut progress = printer.progress();
    let imported =
        pipeline::import(&mut store, &input.sources, input.problems.clone(), &config, &mut progress)?;
    let scored =
        AttributionConfig { by, side: flags.side.map(side), seed: flags.seed, threads: settings.threads };
    let answer = pipeline::attribution(&store, scored, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        printer.json(&Artifact::new(project::provenance(&store, &config.settings), answer));
    } else {
        say(&answer, by, printer);
    }
    say_problems(&imported, printer);
    Ok(ended(&imported))
}

fn side(choice: SideChoice) -> Side {
    match choice {
        SideChoice::Train => Side::Train,
        SideChoice::Validation => Side::Validation,
        SideChoice::Test => Side::Test,
    }
}

fn predictions(path: &Path) -> Result<GivenPredictions, Failure> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::user(format!("cannot read predictions `{shown}`: {error}")))?;
    parse_predictions(&text).map_err(|(line, reason)| {
        Failure::user(format!("`{shown}`, line {line}: {reason}"))
            .hint("a line is `{\"file\", \"agent\", \"step\"}`")
    })
}

fn say(answer: &Attribution, by: Predictor<'_>, printer: Printer) {
    let origins = &answer.predictions;
    let sources: Vec<String> =
        answer.sources.iter().map(|(source, count)| format!("{count} {source}")).collect();
    printer.line(format_args!(
        "{} labelled ({}): {} diagnosed, {} suspected, {} given, {} without a prediction",
        runs(answer.files as usize),
        visible_line(&sources.join(", ")),
        origins.diagnosed,
        origins.suspected,
        origins.given,
        origins.missing
    ));
    for (name, score) in [
        ("exact step", &answer.exact),
        ("within 1 turn", &answer.within_1),
        ("within 3 turns", &answer.within_3),
        ("within 5 turns", &answer.within_5),
        ("agent", &answer.agent),
        ("step and agent", &answer.joint),
    ] {
        printer.line(format_args!("  {name:<22} {}", scored(score)));
    }
    for (name, score) in
        [("step, official", &answer.official_step), ("agent, official", &answer.official_agent)]
    {
        if let Some(score) = score {
            printer.line(format_args!("  {name:<22} {}", scored(score)));
        }
    }
    let lost = &answer.unreachable;
    printer.line(format_args!(
        "  at most {:.1} % can be exact: labels on {} prompts, {} user turns, {} observations, {} nowhere",
        100.0 * answer.ceiling,
        lost.prompt,
        lost.user,
        lost.observation,
        lost.nowhere
    ));
    printer.line(printer.paint(Look::Bold, "what simple guesses reach, and how far these are ahead"));
    for (name, floor) in &answer.floors {
        let ahead = answer.differences.get(name);
        let exact = floor.exact.map(|it| (it.rate, ahead.and_then(|ahead| ahead.exact)));
        let agent = floor.agent.map(|it| (it.rate, ahead.and_then(|ahead| ahead.agent)));
        printer.line(format_args!("  {name:<22} step {} agent {}", beside(exact), beside(agent)));
    }
    if answer.official_step.is_some() {
        printer.note(
            "official: the published scorer, by which a label that is a piece of the prediction is right",
        );
    }
    if matches!(by, Predictor::Judges { .. }) && answer.predictions.diagnosed == 0 {
        printer
            .note("no judge's diagnosis of these runs is kept; `recoup diagnose --judge MODEL` makes them");
    }
    if answer.without_run > 0 {
        printer.warn(format_args!("{} named by labels were not read", runs(answer.without_run as usize)));
    }
}

/// `15 of 63   23.8 % [15.0, 35.7]`, or `-` where nothing can be right
fn scored(score: &Score) -> String {
    if score.n == 0 {
        return format!("{:>4}", "-");
    }
    format!(
        "{:>4} of {:<5} {:>5.1} % [{:.1}, {:.1}]",
        score.k,
        score.n,
        100.0 * score.rate,
        100.0 * score.low,
        100.0 * score.high
    )
}

/// A guess's rate and the points that it is behind.
fn beside(figure: Option<(f64, Option<Margin>)>) -> String {
    let Some((rate, margin)) = figure else { return format!("{:<36}", "-") };
    let ahead = margin.map_or_else(String::new, |margin| match (margin.low, margin.high) {
        (Some(low), Some(high)) => format!("{:+.1} [{low:+.1}, {high:+.1}]", margin.points),
        _ => format!("{:+.1}", margin.points),
    });
    format!("{:>5.1} %  {ahead:<27}", 100.0 * rate)
}

/// Compares with what sweeps found in the project.
fn against_flips(settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let store = project::open(settings)?;
    let mut progress = printer.progress();
    let answer = pipeline::flip_agreement(&store, settings.threads, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        printer.json(&project::answer(&store, settings, answer));
        return Ok(Ended::Done);
    }
    let FlipAgreement { swept, without_flip, alone, with_siblings } = &answer;
    if *swept == 0 {
        printer.note("no run of the project was swept; `recoup replay --sweep` does that");
    }
    printer.line(format_args!(
        "swept {}: {} have a decisive turn",
        runs(*swept as usize),
        swept - without_flip
    ));
    for (title, groups) in [("each run alone", alone), ("beside the other runs of its task", with_siblings)] {
        printer.line(printer.paint(Look::Bold, title));
        for group in groups {
            say_group(group, printer);
        }
    }
    Ok(Ended::Done)
}

fn say_group(group: &Agreement, printer: Printer) {
    printer.line(visible_line(&group.environment));
    for (name, score) in [
        ("diagnosed", &group.diagnosed),
        ("the very turn", &group.exact),
        ("within 1", &group.within_1),
        ("within 3", &group.within_3),
        ("within 1, suspects too", &group.with_suspects.within_1),
    ] {
        printer.line(format_args!("  {name:<22} {}", scored(score)));
    }
    for (policy, habit) in &group.policies {
        let misled: Vec<String> =
            habit.misled_by.iter().map(|(detector, count)| format!("{count} {detector}")).collect();
        printer.line(visible_line(&format!(
            "    {policy:<28} {:>4} runs: {:>4} exact, {:>4} within 1, {:>4} within 3; {} early, {} late, {} undiagnosed{}{}",
            habit.runs,
            habit.exact,
            habit.within_1,
            habit.within_3,
            habit.early,
            habit.late,
            habit.undiagnosed,
            if misled.is_empty() { "" } else { "; misled by " },
            misled.join(", ")
        )));
    }
}
