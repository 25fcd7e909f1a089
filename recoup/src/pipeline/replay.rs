//! Replay of failed runs, in parallel: pairs, repairs, curves and claims go to the store, and every
//! continuation as a run of its own.
//!
//! What is stored already under the same plan is not done again, so a call that was interrupted goes
//! on. Results come in the order of the runs, whatever the number of threads.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::due::{Due, STAGE, due};
use super::siblings::successes;
use super::worlds::{Opener, Worlds};
use super::{PipelineConfig, PipelineError};
use crate::diagnosis;
use crate::id::{TrajectoryId, VerdictId};
use crate::importers::{Event, Sink as _};
use crate::parallel;
use crate::replay::{
    self, Matched, REPLAY_VERSION, Regraded, Reopened, ReplayError, ReplayPlan, ReplaySummary, Subject,
    SweepPlan,
};
use crate::reporter::Reporter;
use crate::rollout::Policy;
use crate::store::{Filter, Page, Store, StoreError};
use crate::trajectory::{Sealed, Status, Trajectory};
use crate::verdict::{Content, Diagnosis, Producer, ReplayPair, Sweep, Verdict};

/// Runs of a batch, for each thread.
const BATCH: usize = 16;
/// Runs that the main job replays in one call.
const AUTOMATIC_MAX: usize = 200;
/// Of them, those whose curves it makes.
const SWEPT_MAX: usize = 20;

/// What is replayed, and how.
#[derive(Clone)]
pub struct ReplayConfig<'a> {
    /// The arms and their continuations.
    pub plan: ReplayPlan,
    /// Whether the decisive turn is looked for by a sweep, and how far that goes.
    pub sweep: Option<SweepPlan>,
    /// Opens environments.
    pub opener: Opener<'a>,
    /// Who continues; the policy that acted in a run where absent.
    pub policy: Option<&'a dyn Policy>,
    /// Threads to use.
    pub threads: usize,
    /// The caller's clock, in RFC 3339.
    pub now: &'a str,
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replaying {
    /// Runs looked at.
    pub runs: u64,
    /// Pairs made by this call, unsupported ones included.
    pub new: u64,
    /// Runs whose score or observations could not be reproduced.
    pub regraded: u64,
    /// What all pairs of these runs under this plan show.
    pub summary: ReplaySummary,
    /// Diagnoses by the rung that they stand on.
    pub claims: BTreeMap<&'static str, u64>,
    /// Sweeps that found a decisive turn, out of those made or found.
    pub decisive: (u64, u64),
}

/// The runs that are replayed where none is named: every failure that says where it happened, in import
/// order.
///
/// # Errors
/// When the store cannot be read.
pub fn replayable(store: &Store) -> Result<Vec<TrajectoryId>, StoreError> {
    let filter = Filter { outcome: Some(Status::Failure.as_str().to_owned()), ..Filter::default() };
    let mut ids = Vec::new();
    for row in store.list(&filter, Page::ALL)? {
        if store.environment(row.id)?.is_some() {
            ids.push(row.id);
        }
    }
    Ok(ids)
}

/// The main job's replay: failures that nobody has replayed yet and whose environment is known in their
/// very version, up to [`AUTOMATIC_MAX`] of them a call, the first [`SWEPT_MAX`] with their curves. One
/// whose version is not here stays pending, until a call that knows it.
///
/// # Errors
/// When the store fails.
pub(super) fn replay_known(
    store: &mut Store,
    opener: Opener<'_>,
    config: &PipelineConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Replaying, PipelineError> {
    let Due { runs: ids, finished } = due(store, &mut Worlds::new(opener, None), AUTOMATIC_MAX)?;
    let replay_config = |sweep| ReplayConfig {
        plan: ReplayPlan::default(),
        sweep,
        opener,
        policy: None,
        threads: config.threads,
        now: config.now,
    };
    let done = if ids.is_empty() {
        Replaying::default()
    } else {
        sweep(store, ids.iter().take(SWEPT_MAX), &replay_config(Some(SweepPlan::default())))?;
        replay(store, &ids, &replay_config(None), reporter)?
    };
    store.mark_done(STAGE, REPLAY_VERSION, &finished)?;
    Ok(done)
}

/// Makes the curves of runs that have none under this plan.
fn sweep<'a>(
    store: &mut Store,
    ids: impl Iterator<Item = &'a TrajectoryId>,
    config: &ReplayConfig<'_>,
) -> Result<(), PipelineError> {
    let mut worlds = Worlds::new(config.opener, config.policy);
    let mut work = Vec::new();
    for id in ids {
        let run = store.effective(*id)?;
        worlds.prepare(&run);
        work.push(Work::new(run, store.verdicts(*id)?));
    }
    let sweeps = parallel::map(&work, config.threads, |work| work.sweep(&worlds, config));
    let made = work.iter().zip(sweeps).filter_map(|(work, sweep)| {
        let (sweep, new) = sweep?;
        new.then(|| verdict(work.run.id, Content::Sweep(sweep), config.now))
    });
    let verdicts: Vec<Verdict> = made.collect();
    store.put_verdicts(&verdicts)?;
    Ok(())
}

/// A verdict of this stage.
fn verdict(run: TrajectoryId, content: Content, now: &str) -> Verdict {
    Verdict::new(run, Producer::replay(REPLAY_VERSION), Vec::new(), content, now)
}

/// Replays runs.
///
/// # Errors
/// When the store fails; pairs that were finished stay. What stands in the way of one run is on its
/// record.
pub fn replay(
    store: &mut Store,
    ids: &[TrajectoryId],
    config: &ReplayConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Replaying, PipelineError> {
    reporter.stage("replay", Some(ids.len() as u64));
    let mut worlds = Worlds::new(config.opener, config.policy);
    let mut done = Replaying::default();
    let mut tested: Vec<Tested> = Vec::new();
    for batch in ids.chunks(BATCH * config.threads.max(1)) {
        let mut work: Vec<Work> = Vec::with_capacity(batch.len());
        for id in batch {
            let run = store.effective(*id)?;
            worlds.prepare(&run);
            let mut next = Work::new(run, store.verdicts(*id)?);
            if config.plan.asks_siblings() && !next.has_candidate() {
                // Runs of one task often follow each other.
                let known = work.last().filter(|last| last.run.task.key == next.run.task.key);
                let known = known.map(|last| last.siblings.clone()).filter(|siblings| !siblings.is_empty());
                next.siblings = match known {
                    Some(siblings) => siblings,
                    None => Arc::new(successes(store, &next.run.task.key)?),
                };
            }
            work.push(next);
        }
        let answers = parallel::map(&work, config.threads, |work| work.answer(&worlds, config));
        keep(store, &work, answers, config, &mut done, &mut tested)?;
        done.runs += batch.len() as u64;
        reporter.advance(batch.len() as u64);
    }
    done.summary = replay::summarize(tested.iter().map(|it| (it.task.as_str(), &it.pair)), config.plan.seed);
    claim(store, &tested, config, &mut done)?;
    Ok(done)
}

/// A run with what is known of it.
struct Work {
    run: Trajectory,
    diagnosis: Option<(VerdictId, Diagnosis)>,
    /// Whether other judges have looked at it.
    reviewed: bool,
    pairs: Vec<(VerdictId, ReplayPair)>,
    sweeps: Vec<Sweep>,
    injected: bool,
    /// Successful runs of its task, where they may propose a repair.
    siblings: Arc<Vec<Trajectory>>,
}

/// What a run's replay gave.
struct Answer {
    pair: Result<(VerdictId, ReplayPair), Box<replay::Replayed>>,
    /// A sweep, and whether it is new.
    sweep: Option<(Sweep, bool)>,
    regraded: Option<Regraded>,
}

/// A run that was replayed, now or before.
struct Tested {
    run: TrajectoryId,
    task: String,
    id: VerdictId,
    pair: ReplayPair,
    diagnosis: Option<(VerdictId, Diagnosis)>,
    reviewed: bool,
}

impl Work {
    fn new(run: Trajectory, verdicts: Vec<Verdict>) -> Self {
        let diagnosis = verdicts.iter().find(|verdict| matches!(verdict.content, Content::Diagnosis(_)));
        let mut work = Self {
            injected: run.extra.contains_key("injected"),
            reviewed: diagnosis.is_some_and(|first| replay::is_reviewed(first.id, &verdicts)),
            run,
            diagnosis: None,
            pairs: Vec::new(),
            sweeps: Vec::new(),
            siblings: Arc::default(),
        };
        for verdict in verdicts {
            match verdict.content {
                // The current one of a kind comes first.
                Content::Diagnosis(mut diagnosis) if work.diagnosis.is_none() => {
                    // Only a model was shown placeholders, and can have written them.
                    if verdict.producer.model.is_some() {
                        diagnosis.candidate =
                            diagnosis.candidate.map(|candidate| diagnosis::restored(&work.run, candidate));
                    }
                    work.diagnosis = Some((verdict.id, diagnosis));
                }
                Content::ReplayPair(pair) => work.pairs.push((verdict.id, pair)),
                Content::Sweep(sweep) => work.sweeps.push(sweep),
                _ => {}
            }
        }
        work
    }

    /// Whether the diagnosis itself proposes a repair.
    fn has_candidate(&self) -> bool {
        self.diagnosis.as_ref().is_some_and(|(_, diagnosis)| diagnosis.candidate.is_some())
    }

    fn answer(&self, worlds: &Worlds<'_>, config: &ReplayConfig<'_>) -> Answer {
        let (environment, policy) = (worlds.environment(&self.run), worlds.policy(&self.run));
        let sweep = self.sweep(worlds, config);
        let subject = Subject {
            run: &self.run,
            environment,
            policy,
            diagnosis: self.diagnosis.as_ref().map(|(id, diagnosis)| (*id, diagnosis)),
            swept: sweep.as_ref().and_then(|(sweep, _)| sweep.decisive).map(|decisive| decisive.step),
            injected: self.injected,
            siblings: &self.siblings,
        };
        let plan_hash = subject.plan_hash(&config.plan);
        let known = self.pairs.iter().find(|(_, pair)| pair.plan_hash == plan_hash);
        Answer {
            pair: known.cloned().ok_or_else(|| Box::new(subject.replay(&config.plan))),
            sweep,
            // A pair that is known has come with its re-grading.
            regraded: match (environment, known) {
                (Ok(environment), None) => replay::regrade(&self.run, environment).ok(),
                _ => None,
            },
        }
    }

    /// The sweep of a run, where it can be made; why not is what the pair will say.
    fn sweep(&self, worlds: &Worlds<'_>, config: &ReplayConfig<'_>) -> Option<(Sweep, bool)> {
        let plan = config.sweep?;
        let matched = Matched {
            run: &self.run,
            environment: worlds.environment(&self.run).ok()?,
            policy: worlds.policy(&self.run).ok()?,
            seed: config.plan.seed,
            continuations: config.plan.continuations,
        };
        let plan_hash = matched.sweep_hash(plan);
        if let Some(known) = self.sweeps.iter().find(|sweep| sweep.plan_hash == plan_hash) {
            return Some((known.clone(), false));
        }
        let made = || -> Result<Sweep, ReplayError> {
            let mut reopened = Reopened::open(&self.run, matched.environment)?;
            let checkpoints = reopened.execute(None)?;
            replay::sweep(&matched, &mut reopened, &checkpoints, plan)
        };
        made().ok().map(|sweep| (Sweep { injected: self.injected, ..sweep }, true))
    }
}

/// Stores what a batch gave: first the runs, then what was decided.
fn keep(
    store: &mut Store,
    work: &[Work],
    answers: Vec<Answer>,
    config: &ReplayConfig<'_>,
    done: &mut Replaying,
    tested: &mut Vec<Tested>,
) -> Result<(), PipelineError> {
    let mut runs: Vec<Sealed> = Vec::new();
    let mut verdicts: Vec<Verdict> = Vec::new();
    let verdict = |run, content| verdict(run, content, config.now);
    for (work, answer) in work.iter().zip(answers) {
        let run = work.run.id;
        if let Some((sweep, new)) = answer.sweep {
            done.decisive.0 += u64::from(sweep.decisive.is_some());
            done.decisive.1 += 1;
            verdicts.extend(new.then(|| verdict(run, Content::Sweep(sweep))));
        }
        if let Some(blame) = answer.regraded.as_ref().and_then(Regraded::blame) {
            done.regraded += 1;
            verdicts.push(verdict(run, Content::Blame(blame)));
        }
        let (id, pair) = match answer.pair {
            Ok(known) => known,
            Err(replayed) => {
                done.new += 1;
                runs.extend(replayed.runs);
                let pair = replayed.pair;
                let stored = verdict(run, Content::ReplayPair(pair.clone()));
                let id = stored.id;
                verdicts.push(stored);
                verdicts
                    .extend(replay::repair(id, &pair).map(|repair| verdict(run, Content::Repair(repair))));
                (id, pair)
            }
        };
        let (task, diagnosis) = (work.run.task.key.0.clone(), work.diagnosis.clone());
        tested.push(Tested { run, task, id, pair, diagnosis, reviewed: work.reviewed });
    }
    store_runs(store, runs, config.now)?;
    store.put_verdicts(&verdicts)?;
    Ok(())
}

/// Stores continuations as runs.
pub(super) fn store_runs(store: &mut Store, runs: Vec<Sealed>, now: &str) -> Result<(), PipelineError> {
    if runs.is_empty() {
        return Ok(());
    }
    let mut sink = store.import(now)?;
    for run in runs {
        sink.event(Event::Trajectory(Box::new(run)))?;
    }
    sink.finish()?;
    Ok(())
}

/// Says of every diagnosis that was put to the test how far it is proved.
fn claim(
    store: &mut Store,
    tested: &[Tested],
    config: &ReplayConfig<'_>,
    done: &mut Replaying,
) -> Result<(), PipelineError> {
    // Pairs of one fault under one configuration.
    let mut faults: BTreeMap<(String, &str), Vec<(&str, &ReplayPair)>> = BTreeMap::new();
    for it in tested {
        if let Some(fault) = it.fault() {
            let key = (it.pair.config_hash.to_string(), fault);
            faults.entry(key).or_default().push((&it.task, &it.pair));
        }
    }
    let transfers: BTreeMap<&(String, &str), bool> = faults
        .iter()
        .map(|(key, pairs)| {
            let summary = replay::summarize(pairs.iter().copied(), config.plan.seed);
            let low = summary.differences.get("repair-retry").and_then(|difference| difference.low);
            (key, low.is_some_and(|low| low > 0.0))
        })
        .collect();
    let mut verdicts = Vec::new();
    for it in tested {
        let Some((of, diagnosis)) = &it.diagnosis else { continue };
        let key = it.fault().map(|fault| (it.pair.config_hash.to_string(), fault));
        let transfers = key.is_some_and(|key| transfers.get(&key).copied().unwrap_or(false));
        let claim = replay::claim(*of, diagnosis, it.reviewed, Some((it.id, &it.pair)), transfers);
        *done.claims.entry(claim.rung.as_str()).or_default() += 1;
        verdicts.push(verdict(it.run, Content::Claim(claim), config.now));
    }
    store.put_verdicts(&verdicts)?;
    Ok(())
}

impl Tested {
    /// The detector behind the diagnosis.
    fn fault(&self) -> Option<&str> {
        let (_, diagnosis) = self.diagnosis.as_ref()?;
        let mut findings = diagnosis.findings.iter();
        let decisive = findings.find(|it| it.node == diagnosis.decisive_node && it.resolved_at.is_none());
        decisive.map(|finding| finding.detector.as_str())
    }
}
