//! `recoup replay`: re-executes failed runs and proves repairs by matched arms.

use std::collections::BTreeMap;

use recoup::answers::{ReplayPlanned, Replayed};
use recoup::environments::Fault;
use recoup::id::TrajectoryId;
use recoup::pipeline::{self, Injecting, ReplayConfig, Replaying};
use recoup::replay::{Group, Proposer, ReplayError, ReplayPlan, SweepPlan, parse_candidates};
use recoup::rollout::{Policy, policies};
use recoup::store::Store;
use recoup::verdict::Arm;
use recoup::visible::visible_line;

use super::{environment, project};
use crate::Ended;
use crate::args::ReplayArgs;
use crate::clock::now;
use crate::failure::Failure;
use crate::printer::{Look, Printer, runs};
use crate::settings::Settings;

/// Reasons for which runs cannot be replayed that are listed on the terminal.
const LISTED_MAX: usize = 10;

/// Replays runs, or puts faults into successful ones.
pub(crate) fn replay(flags: &ReplayArgs, settings: &Settings, printer: Printer) -> Result<Ended, Failure> {
    let policy = flags.policy.as_deref().map(policies::parse).transpose()?;
    let proposer = proposer(&flags.candidate)?;
    let mut arms = flags.arms.clone();
    arms.sort_unstable();
    arms.dedup();
    let known = environment::Known::of(&flags.worlds, settings)?;
    let mut store = project::open(settings)?;
    let now = now();
    let config = ReplayConfig {
        plan: ReplayPlan { arms, continuations: flags.continuations, seed: flags.seed, proposer },
        sweep: flags.sweep.then(SweepPlan::default),
        opener: &|name| known.open(name),
        policy: policy.as_deref(),
        threads: settings.threads,
        now: &now,
    };
    if let Some(count) = flags.inject {
        return inject(&mut store, count, &config, printer);
    }
    let mut ids = match flags.ids.as_slice() {
        [] => pipeline::replayable(&store)?,
        named => project::resolve(&store, named)?,
    };
    ids.truncate(flags.limit.unwrap_or(usize::MAX));
    if flags.dry_run {
        return dry_run(&store, &ids, flags, policy.as_deref(), printer);
    }
    let mut progress = printer.progress();
    let done = pipeline::replay(&mut store, &ids, &config, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        let flags = (&config.plan, config.sweep, policy.as_deref().map(Policy::name));
        printer.json(&project::answer_as(&store, &flags, Replayed::from(&done)));
    } else {
        say(&done, printer);
    }
    Ok(Ended::Done)
}

/// The source of candidates that a word or a path means.
fn proposer(source: &str) -> Result<Proposer, Failure> {
    match source {
        "rules" => Ok(Proposer::Rules),
        "expert" => Ok(Proposer::Expert),
        path => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::user(format!("cannot read candidates `{path}`: {error}"))
                    .hint("`--candidate` takes `rules`, `expert` or a file")
            })?;
            parse_candidates(&text)
                .map(Proposer::File)
                .map_err(|(line, reason)| Failure::user(format!("`{path}`, line {line}: {reason}")))
        }
    }
}

fn inject(
    store: &mut Store,
    count: usize,
    config: &ReplayConfig<'_>,
    printer: Printer,
) -> Result<Ended, Failure> {
    let mut progress = printer.progress();
    let done = pipeline::inject(store, count, config, &mut progress)?;
    progress.finish();
    if printer.is_json() {
        let flags = (count, config.plan.seed, config.policy.map(Policy::name));
        printer.json(&project::answer_as(store, &flags, done));
        return Ok(Ended::Done);
    }
    let Injecting { tried, kept, unsupported, diagnosed, exact, within_one } = done;
    printer.line(format_args!(
        "put a fault into {}: {kept} fail by it and pass without, and are kept; {unsupported} cannot be replayed",
        runs(tried as usize)
    ));
    printer.line(format_args!(
        "the rules diagnose {diagnosed} of {kept}: {exact} at the very turn, {within_one} at most one turn away"
    ));
    printer.line("`recoup ls --continuations` lists them");
    Ok(Ended::Done)
}

/// What would be re-executed, by environment.
fn dry_run(
    store: &Store,
    ids: &[TrajectoryId],
    flags: &ReplayArgs,
    policy: Option<&dyn Policy>,
    printer: Printer,
) -> Result<Ended, Failure> {
    let mut environments: BTreeMap<String, u64> = BTreeMap::new();
    for id in ids {
        let run = store.effective(*id)?;
        let name =
            run.environment.map_or_else(|| "no environment".to_owned(), |environment| environment.name);
        *environments.entry(name).or_default() += 1;
    }
    let continuations = ids.len() * flags.arms.len() * flags.continuations as usize;
    if printer.is_json() {
        let planned =
            ReplayPlanned { runs: ids.len() as u64, environments, continuations_max: continuations as u64 };
        let flags = (&flags.arms, flags.continuations, policy.map(Policy::name));
        printer.json(&project::answer_as(store, &flags, planned));
        return Ok(Ended::Done);
    }
    let by = policy.map_or("the policies that acted in them", |policy| policy.name());
    printer.line(format_args!(
        "would re-execute {} and continue them at most {continuations} times by {by}",
        runs(ids.len())
    ));
    for (name, count) in environments {
        printer.line(format_args!("  {name}: {}", runs(count as usize)));
    }
    Ok(Ended::Done)
}

fn say(done: &Replaying, printer: Printer) {
    let summary = &done.summary;
    let supported: u64 = summary.groups.iter().map(|group| group.pairs).sum();
    printer.line(format_args!(
        "replayed {supported} of {}, {} now; {} unsupported",
        runs(done.runs as usize),
        done.new,
        summary.unsupported
    ));
    for (code, count) in summary.reasons.iter().take(LISTED_MAX) {
        printer.line(format_args!("  {count} unsupported: {code}"));
    }
    if summary.reasons.contains_key(ReplayError::UNKNOWN_ENVIRONMENT) {
        printer.note("`--environment NAME=DIR` names the folder of an environment that runs record");
    }
    if summary.reasons.contains_key(Fault::Unsupported.code()) {
        printer.note(environment::TRUST_HINT);
    }
    if done.decisive.1 > 0 {
        let (found, of) = done.decisive;
        printer.line(format_args!("swept {}: a decisive turn in {found}", runs(of as usize)));
    }
    if done.regraded > 0 {
        printer.line(format_args!("{} did not score again as recorded", runs(done.regraded as usize)));
    }
    for group in &summary.groups {
        let sources: Vec<&str> = group.candidates.iter().map(String::as_str).collect();
        let by =
            if sources.is_empty() { String::new() } else { format!(", repairs by {}", sources.join(", ")) };
        let title = format!("{} in {}: {} pairs{by}", group.policy, group.environment, group.pairs);
        printer.line(printer.paint(Look::Bold, visible_line(&title)));
        say_group(group, printer);
    }
    if !done.claims.is_empty() {
        let claims: Vec<String> = done.claims.iter().map(|(rung, count)| format!("{count} {rung}")).collect();
        printer.line(format_args!("diagnoses by what is proved: {}", claims.join(", ")));
    }
}

fn say_group(group: &Group, printer: Printer) {
    let Group { arms, differences, .. } = group;
    let mut synthetic = false;
    for arm in Arm::ALL {
        let Some(rate) = arms.get(arm.as_str()) else { continue };
        synthetic |= rate.synthetic;
        printer.line(format_args!(
            "  {:<10} {:>5} of {:<5} {:>5.1} %{}{}",
            arm.as_str(),
            rate.passed,
            rate.n,
            100.0 * rate.rate,
            interval(rate.low.map(|low| 100.0 * low), rate.high.map(|high| 100.0 * high)),
            if rate.synthetic { " (synthetic)" } else { "" },
        ));
    }
    for (name, difference) in differences {
        printer.line(format_args!(
            "  {name}: {:+.1} points{}, p = {:.4} after Holm, {} pairs of {} tasks",
            difference.points,
            interval(difference.low, difference.high),
            difference.p_holm,
            difference.pairs,
            difference.tasks,
        ));
    }
    if !differences.is_empty() {
        printer.note(
            "a recovery supports the repair under these conditions; it does not show that the cause was the only one",
        );
    }
    if synthetic {
        printer.note("synthetic: the policy takes advice by a rule that was written for it");
    }
}

/// ` [low, high]`, or nothing where the tasks are too few.
fn interval(low: Option<f64>, high: Option<f64>) -> String {
    match (low, high) {
        (Some(low), Some(high)) => format!(" [{low:.1}, {high:.1}]"),
        _ => String::new(),
    }
}
