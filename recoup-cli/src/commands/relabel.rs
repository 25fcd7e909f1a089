//! `recoup relabel`: finds goals that failed runs did achieve.

use std::sync::Arc;

use recoup::hindsight::RelabelConfig;
use recoup::hindsight::relabeler::{Judges, TEMPERATURES};
use recoup::id::TrajectoryId;
use recoup::judges::{JudgeConfig, Room, Seat};
use recoup::models::{AGAIN_BYTES, AskedModel, Estimate};
use recoup::pipeline::{self, Asked, RelabelPlan, Relabeling, Verified};
use recoup::store::Store;
use recoup::visible::visible_line;

use super::import::{LISTED_MAX, more};
use super::{environment, project};
use crate::Ended;
use crate::args::{JudgeArgs, RelabelArgs};
use crate::clock::now;
use crate::failure::Failure;
use crate::models::{Decision, Models};
use crate::printer::{Printer, runs, short_id};
use crate::settings::Settings;

/// The stage that answers are kept and counted under.
const STAGE: &str = "relabel";

/// Relabels runs.
pub(crate) fn relabel(flags: &RelabelArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let known = environment::Known::of(&flags.worlds, settings)?;
    let mut store = project::open(settings)?;
    let only = match flags.ids.as_slice() {
        [] => None,
        ids => Some(project::resolve(&store, ids)?),
    };
    let asked = asked(&flags.judge, settings)?;
    let models = open(&asked, settings, &store, printer)?;
    let now = now();
    let opener = |name: &str| known.open(name);
    let members = models.as_ref().map(|models| models.asking.models()).unwrap_or_default();
    let rooms: Vec<Arc<Room>> = members.iter().map(|_| Arc::default()).collect();
    let judges = |run: TrajectoryId| judges(members, &rooms, &asked, flags.quote_facts, run);
    let meter = || models.as_ref().map(Models::meter).unwrap_or_default();
    let plan = RelabelPlan {
        config: RelabelConfig { blind: flags.blind },
        only,
        limit: flags.limit,
        seed: flags.seed,
        opener: &opener,
        threads: settings.threads,
        now: &now,
        judges: models.as_ref().map(|models| Asked {
            judges: &judges,
            names: models.asking.models().iter().map(|model| model.identity().name()).collect(),
            in_flight: models.asking.concurrency(),
            meter: &meter,
        }),
    };
    if let Some(models) = &models {
        let questions = TEMPERATURES.len() as u32 + u32::from(flags.quote_facts);
        if estimate(models, &store, &plan, questions, (&asked, settings), printer)? == Decision::Shown {
            return Ok(Ended::Done);
        }
    } else if asked.spend.dry_run {
        return Err(Failure::user("`--dry-run` says what judges would cost, and none is named")
            .hint("name two with `--judge MODEL --judge MODEL`, or in `[models]` of the settings file"));
    }
    let mut progress = printer.progress();
    let done = pipeline::relabel_runs(&mut store, &plan, &mut progress)?;
    progress.finish();
    if let Some(models) = &models {
        if let Some(first) = models.asking.models().first() {
            let accepted = done.accepted.values().sum();
            models.asking.ledger().accepted(STAGE, &first.identity().model, accepted);
        }
        models.finish(printer)?;
    }
    let is_whole = done.undecided.is_empty();
    for (why, count) in &done.undecided {
        printer.warn(format_args!("{} undecided: {why}", runs(*count as usize)));
    }
    if printer.is_json() {
        printer.json(&project::answer_as(&store, &(flags.blind, flags.seed, &asked.judges), done));
    } else {
        say(&done, printer);
        say_goals(&done, printer);
    }
    Ok(if is_whole { Ended::Done } else { Ended::Partly })
}

/// Judges a relabeler uses: one that proposes, one that checks.
const JUDGES_MAX: usize = 2;

/// Which models to ask and what that may take: the flags, else the settings, whose panel may be larger than the two
/// that relabeling uses.
fn asked(flags: &JudgeArgs, settings: &Settings) -> Result<JudgeArgs, Failure> {
    if flags.judges.len() > JUDGES_MAX {
        return Err(Failure::user("relabeling takes two judges: one that proposes, one that checks")
            .hint("name at most two with `--judge MODEL --judge MODEL`"));
    }
    let mut asked = settings.models.judging(flags);
    asked.judges.truncate(JUDGES_MAX);
    Ok(asked)
}

/// Opens the models that were named, and says what is missing for the strict rule.
fn open(
    asked: &JudgeArgs,
    settings: &Settings,
    store: &Store,
    printer: Printer,
) -> Result<Option<Models>, Failure> {
    let names = &asked.judges;
    if names.is_empty() {
        return Ok(None);
    }
    let models = Models::open(names, &asked.spend, settings, Some(store), printer)?;
    let families: Vec<&str> =
        models.asking.models().iter().map(|model| model.identity().family.as_str()).collect();
    match families.as_slice() {
        [_] => printer.note(
            "one judge alone: its goals are kept apart as `one_judge` and are in no view unless asked for; a second \
             `--judge`, of another family of models, would make them `two_judges`",
        ),
        [first, second] if first == second => printer.note(format_args!(
            "both judges are of the family `{first}` and may err alike: their goals are kept apart as `one_judge`; name \
             one of another family, or say in `--prices FILE` what family it is (`family` of its model)"
        )),
        _ => {}
    }
    Ok(Some(models))
}

/// The models as one run asks them; `rooms` is what is known of how long a question each takes.
fn judges<'m>(
    members: &'m [Arc<AskedModel>],
    rooms: &[Arc<Room>],
    asked: &JudgeArgs,
    quotes_facts: bool,
    run: TrajectoryId,
) -> Judges<'m> {
    let default = JudgeConfig::default();
    let config = JudgeConfig {
        window_tokens: asked.window.unwrap_or(default.window_tokens),
        answer_tokens: asked.max_answer.unwrap_or(default.answer_tokens),
        ..default
    };
    let seat = |(model, room): (&'m Arc<AskedModel>, &Arc<Room>)| {
        let config = JudgeConfig { price: model.price(), ..config };
        Seat::new(Box::new(model.about(STAGE, Some(run))), config, Arc::clone(room))
    };
    Judges {
        relabeler: seat((&members[0], &rooms[0])),
        judge: members.get(1).zip(rooms.get(1)).map(seat),
        quotes_facts,
    }
}

/// Says what relabeling will take, with so many questions a run and model at most, and whether to go on.
fn estimate(
    models: &Models,
    store: &Store,
    plan: &RelabelPlan<'_>,
    questions: u32,
    (asked, settings): (&JudgeArgs, &Settings),
    printer: Printer,
) -> Result<Decision, Failure> {
    let mut estimate = Estimate::default();
    let members = models.asking.models();
    if asked.spend.dry_run || members.iter().any(|model| model.host().is_some()) {
        pipeline::first_goal_questions::<Failure>(store, plan, &mut |run, question| {
            // Who checks reads as much as who proposes.
            for model in members {
                estimate.add_again(model, question, questions - 1, AGAIN_BYTES);
                if model.is_kept(question)? {
                    estimate.cached += 1;
                } else {
                    estimate.add(model, question, Some(run))?;
                }
            }
            Ok(())
        })?;
    }
    models.announce(&estimate, &asked.spend, settings, printer)
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
    for (class, verified) in &done.verified_by_class {
        share("the environment passes", *verified, &format!("goals that rest on {class}"), printer);
    }
    share("it would have passed", done.missed, "refused goals", printer);
    if let Some(cost) = done.cost_per_accepted_usd.filter(|cost| *cost > 0.0) {
        printer.line(format_args!("${cost:.4} an accepted goal"));
    }
    for (why, count) in &done.unsupported {
        printer
            .note(format_args!("the environment could not be asked about {}: {why}", runs(*count as usize)));
    }
    if done.background {
        printer.note("runs of other tasks are few: the bundled background stood in for them");
    }
}

/// Lists the goals that were accepted, one a run.
fn say_goals(done: &Relabeling, printer: Printer) {
    for (run, goal) in done.goals.iter().take(LISTED_MAX) {
        printer.line(format_args!("  {}  {}", short_id(*run), visible_line(goal)));
    }
    more(done.goals.len() as u64, "goals", printer);
    if let Some(first) = done.goals.keys().next() {
        printer.note(format_args!(
            "`recoup show {}` says what such a goal rests on in its run",
            short_id(*first)
        ));
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
