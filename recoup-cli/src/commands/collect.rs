//! `recoup collect`: lets a policy act in an environment and keeps its runs.

use recoup::answers::{self, CollectPlan};
use recoup::environments::{Environment, bundled};
use recoup::rollout::{self, Collected, EpisodeLimits, Keep, Pending, Plan, policies};
use recoup::store::{Store, StoreError};

use super::{collect_round, environment, project};
use crate::Ended;
use crate::args::CollectArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Collects, or says what would be collected.
pub(crate) fn collect(flags: &CollectArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    if let (Some(student), Some(teacher)) = (&flags.round.student, &flags.round.teacher) {
        return collect_round::collect(student, teacher, flags, settings, printer);
    }
    let name = flags.policy.as_deref().unwrap_or_default();
    let policy = policies::parse(name)?;
    let environment = environment::open(&flags.env, flags.trust)?;
    let plan = plan(flags);
    if flags.spend.dry_run {
        let store = match Store::open(&settings.project) {
            Err(StoreError::NoProject { .. }) => None,
            opened => Some(opened?),
        };
        let pending = rollout::pending(store.as_ref(), environment.identity(), &*policy, &plan)?;
        if printer.is_json() {
            let (known, new) = (pending.known.len() as u64, pending.missing.len() as u64);
            let planned = CollectPlan { episodes: known + new, new };
            printer.json(&environment::answer(&*environment, &(policy.name(), &plan), planned));
        } else {
            say_pending(&pending, name, &flags.env, printer);
        }
        return Ok(Ended::Done);
    }
    // A plan that cannot be carried out makes no project.
    plan.assignments(&environment.identity().manifest).map_err(rollout::CollectError::from)?;
    let mut store = project::create_or_open(settings)?;
    let mut progress = printer.progress();
    let collected = rollout::collect(
        &mut store,
        &*environment,
        &*policy,
        &plan,
        settings.threads,
        &now(),
        &mut progress,
    )?;
    progress.finish();
    if printer.is_json() {
        let answer = answers::Collected::from(&collected);
        printer.json(&environment::answer(&*environment, &(policy.name(), &plan), answer));
    } else {
        say_collected(&collected, name, &flags.env, printer);
    }
    for (code, (count, message)) in &collected.errors {
        printer.warn(format_args!("{} ended by an error ({code}): {message}", runs(*count as usize)));
    }
    say_how_to_replay(&flags.env, &*environment, printer);
    Ok(if collected.errors.is_empty() { Ended::Done } else { Ended::Partly })
}

/// Which tasks, how often, with which luck.
pub(super) fn plan(flags: &CollectArgs) -> Plan {
    Plan {
        tasks: flags.tasks,
        seed: flags.seed,
        difficulties: flags.difficulty,
        family: flags.family.clone(),
        trials: flags.trials,
        limits: EpisodeLimits {
            turns: flags.max_steps,
            tokens: flags.round.max_episode_tokens,
            // A run without any time would have no turn.
            milliseconds: flags.round.max_episode_time.map(|time| (time.as_millis() as u64).max(1)),
        },
        keep: if flags.checkpoints { Keep::States } else { Keep::Hashes },
    }
}

/// Runs of an environment in a folder are replayed there.
pub(super) fn say_how_to_replay(folder: &str, environment: &dyn Environment, printer: Printer) {
    let name = &environment.identity().manifest.name;
    if bundled::files(name).is_none() {
        printer.note(format_args!(
            "`recoup replay --environment {name}={folder}` re-executes those that failed"
        ));
    }
}

fn say_pending(pending: &Pending, policy: &str, env: &str, printer: Printer) {
    let (missing, known) = (pending.missing.len(), pending.known.len());
    printer.line(format_args!(
        "{} of `{policy}` in {env}: {missing} to make, {known} in the project already",
        runs(missing + known),
    ));
}

fn say_collected(collected: &Collected, policy: &str, env: &str, printer: Printer) {
    let success = collected.success();
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    printer.line(format_args!(
        "{} of `{policy}` in {env}, {} new: {} of {} passed, {} % [{}, {}]",
        runs(collected.episodes as usize),
        collected.new,
        collected.passed,
        collected.scored,
        percent(success.rate),
        percent(success.low),
        percent(success.high),
    ));
    let modes: Vec<String> =
        collected.end_modes.iter().map(|(mode, count)| format!("{count} {mode}")).collect();
    if !modes.is_empty() {
        printer.line(format_args!("ended: {}", modes.join(", ")));
    }
}
