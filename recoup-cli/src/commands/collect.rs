//! `recoup collect`: lets a policy act in an environment and keeps its runs.

use recoup::answers::{self, CollectPlan};
use recoup::environments::bundled;
use recoup::rollout::{self, Collected, Keep, Pending, Plan, policies};
use recoup::store::{Store, StoreError};

use super::{environment, project};
use crate::Ended;
use crate::args::CollectArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Printer, runs};
use crate::settings::Settings;

/// Collects, or says what would be collected.
pub(crate) fn collect(flags: &CollectArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let policy = policies::parse(&flags.policy)?;
    let environment = environment::open(&flags.env, flags.trust)?;
    let plan = Plan {
        tasks: flags.tasks,
        seed: flags.seed,
        difficulties: flags.difficulty,
        family: flags.family.clone(),
        trials: flags.trials,
        max_steps: flags.max_steps,
        keep: if flags.checkpoints { Keep::States } else { Keep::Hashes },
    };
    if flags.dry_run {
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
            say_pending(&pending, flags, printer);
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
        say_collected(&collected, flags, printer);
    }
    for (code, (count, message)) in &collected.errors {
        printer.warn(format_args!("{} ended by an error ({code}): {message}", runs(*count as usize)));
    }
    let name = &environment.identity().manifest.name;
    if bundled::files(name).is_none() {
        let folder = &flags.env;
        printer.note(format_args!("`recoup replay --environment {name}={folder}` re-executes these runs"));
    }
    Ok(if collected.errors.is_empty() { Ended::Done } else { Ended::Partly })
}

fn say_pending(pending: &Pending, flags: &CollectArgs, printer: Printer) {
    let (missing, known) = (pending.missing.len(), pending.known.len());
    printer.line(format_args!(
        "{} of `{}` in {}: {missing} to make, {known} in the project already",
        runs(missing + known),
        flags.policy,
        flags.env,
    ));
}

fn say_collected(collected: &Collected, flags: &CollectArgs, printer: Printer) {
    let success = collected.success();
    let percent = |share: f64| format!("{:.1}", 100.0 * share);
    printer.line(format_args!(
        "{} of `{}` in {}, {} new: {} of {} passed, {} % [{}, {}]",
        runs(collected.episodes as usize),
        flags.policy,
        flags.env,
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
