//! Relabeling of failed runs: every run that failed by the agent's own fault gets a goal that it did achieve,
//! where one is found. What a run came to under the same version and setting is not looked for again.

mod counts;

use std::collections::{BTreeMap, BTreeSet};

use self::counts::Counts;
pub use self::counts::{Relabeling, Verified};
use super::patience::Patience;
use super::worlds::{Opener, Worlds};
use super::{Meter, PipelineConfig};
use crate::hindsight::corpus::Corpus;
use crate::hindsight::relabeler::Judges;
use crate::hindsight::{HINDSIGHT_VERSION, RelabelConfig, Subject, is_candidate, relabel};
use crate::id::{Hash, TrajectoryId};
use crate::judges::Case;
use crate::models::ChatRequest;
use crate::parallel;
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Store, StoreError};
use crate::trajectory::{Status, Trajectory};
use crate::verdict::{Content, Evidence, Relabel, Verdict};

/// The stage's name in the project.
const STAGE: &str = "relabel";
/// Runs of a batch, for each thread.
const BATCH: usize = 16;
/// Runs that are held against each other at a time.
const TOGETHER: usize = 500;
/// Runs among which a goal must stand out, those together with it included; of more, those whose hashes come first.
const CORPUS_MAX: usize = 1_000;
/// Why nothing is decided about a run whose turn came too late.
const UNASKED: &str = "nothing was asked: a limit was reached, or no model answered any more";

/// Which runs are relabeled, and how.
#[derive(Clone)]
pub struct RelabelPlan<'a> {
    /// How.
    pub config: RelabelConfig,
    /// These runs only, relabeled already or not.
    pub only: Option<Vec<TrajectoryId>>,
    /// Most runs.
    pub limit: Option<usize>,
    /// Seed of the choice of runs that goals must stand out among, where there are too many.
    pub seed: u64,
    /// Opens environments.
    pub opener: Opener<'a>,
    /// Threads to use.
    pub threads: usize,
    /// The caller's clock, in RFC 3339.
    pub now: &'a str,
    /// The models to ask about a run, where any are.
    pub judges: Option<Asked<'a>>,
}

impl RelabelPlan<'_> {
    /// The models, as a verdict names its producer.
    fn names(&self) -> Option<String> {
        self.judges.as_ref().map(|asked| asked.names.join(" "))
    }
}

/// Models that relabel.
#[derive(Clone)]
pub struct Asked<'a> {
    /// The models for one run.
    pub judges: &'a (dyn Fn(TrajectoryId) -> Judges<'a> + Sync),
    /// Their names, the relabeler's first.
    pub names: Vec<String>,
    /// Runs that are out at a time.
    pub in_flight: usize,
    /// What the models' ledger says so far.
    pub meter: &'a (dyn Fn() -> Meter + Sync),
}

/// Runs that can be relabeled, in import order.
///
/// # Errors
/// When the store cannot be read.
pub fn relabelable(store: &Store) -> Result<Vec<TrajectoryId>, StoreError> {
    let failed = Filter { outcome: Some(Status::Failure.as_str().to_owned()), ..Filter::default() };
    let mut ids = Vec::new();
    for row in store.list(&failed, Page::ALL)? {
        if is_relabelable(store, row.id)? {
            ids.push(row.id);
        }
    }
    Ok(ids)
}

fn is_relabelable(store: &Store, id: TrajectoryId) -> Result<bool, StoreError> {
    if store.row(id)?.outcome != Status::Failure.as_str() {
        return Ok(false);
    }
    let blame = match store.current(id, "blame")?.map(|verdict| verdict.content) {
        Some(Content::Blame(blame)) => Some(blame),
        _ => None,
    };
    let class = match store.current(id, "failure_class")?.map(|verdict| verdict.content) {
        Some(Content::FailureClass(class)) => Some(class),
        _ => None,
    };
    Ok(is_candidate(Status::Failure, blame.as_ref(), class.as_ref()))
}

/// The main job's relabeling: runs that nobody has relabeled yet, offline.
///
/// # Errors
/// When the store fails; groups that were finished stay finished.
pub(super) fn relabel_new(
    store: &mut Store,
    opener: Opener<'_>,
    config: &PipelineConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Relabeling, StoreError> {
    let groups = store.pending(STAGE, HINDSIGHT_VERSION)?;
    let only = groups.iter().flat_map(|group| group.runs.iter().copied()).collect();
    let plan = RelabelPlan {
        config: RelabelConfig::default(),
        only: Some(only),
        limit: None,
        seed: 0,
        opener,
        threads: config.threads,
        now: config.now,
        judges: None,
    };
    let done = relabel_runs(store, &plan, reporter)?;
    store.mark_done(STAGE, HINDSIGHT_VERSION, &groups)?;
    Ok(done)
}

fn chosen(store: &Store, plan: &RelabelPlan<'_>) -> Result<Vec<TrajectoryId>, StoreError> {
    let mut ids = match &plan.only {
        Some(only) => {
            let mut ids = Vec::new();
            for id in only {
                if is_relabelable(store, *id)? {
                    ids.push(*id);
                }
            }
            ids
        }
        None => relabelable(store)?,
    };
    ids.truncate(plan.limit.unwrap_or(usize::MAX));
    Ok(ids)
}

/// Relabels runs.
///
/// # Errors
/// When the store fails; what was kept stays.
pub fn relabel_runs(
    store: &mut Store,
    plan: &RelabelPlan<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Relabeling, StoreError> {
    let ids = chosen(store, plan)?;
    reporter.stage("relabel", Some(ids.len() as u64));
    let mut counts = Counts::default();
    let before = plan.judges.as_ref().map(|asked| (asked.meter)());
    let names = plan.names();
    let mut waiting = Vec::new();
    for id in &ids {
        let known = known(store, *id, plan)?;
        if known.is_empty() {
            waiting.push(*id);
        } else {
            counts.add(*id, &known);
        }
    }
    reporter.advance((ids.len() - waiting.len()) as u64);
    let mut worlds = Worlds::new(plan.opener, None);
    let patience = Patience::default();
    for together in waiting.chunks(TOGETHER) {
        let (corpus, documents) = corpus(store, together, plan.seed)?;
        // Who asks models waits for them most of the time.
        let threads = plan.judges.as_ref().map_or(plan.threads, |asked| asked.in_flight).max(1);
        for batch in together.chunks(BATCH * threads) {
            let mut work: Vec<(Trajectory, Vec<Relabel>)> = Vec::with_capacity(batch.len());
            for id in batch {
                let run = store.effective(*id)?;
                worlds.prepare(&run);
                work.push((run, refused(store, *id, plan)?));
            }
            let done = parallel::map(&work, threads, |(run, refused)| {
                let subject = Subject {
                    run,
                    environment: worlds.environment(run).ok(),
                    corpus: &corpus,
                    document: documents.get(&run.id).copied(),
                    refused,
                };
                let judges = plan.judges.as_ref().map(|asked| (asked.judges)(run.id));
                if judges.is_some() && patience.is_lost() {
                    return None;
                }
                let relabeled = relabel(subject, plan.config, judges.as_ref());
                match &relabeled.undecided {
                    Some(error) => patience.failed(error),
                    // Where the environment said all, no model was asked.
                    None if relabeled.rests_on() == Some(Evidence::Environment) => {}
                    None => patience.answered(),
                }
                Some(relabeled)
            });
            let mut verdicts: Vec<Verdict> = Vec::new();
            for ((run, _), relabeled) in work.iter().zip(&done) {
                let Some(relabeled) = relabeled else {
                    counts.undecided(UNASKED);
                    continue;
                };
                if counts.take(run.id, relabeled) {
                    verdicts.extend(relabeled.verdicts(run.id, names.as_deref(), plan.now));
                }
            }
            store.put_verdicts(&verdicts)?;
            reporter.advance(batch.len() as u64);
        }
    }
    let spent = plan.judges.as_ref().zip(before).map(|(asked, before)| (asked.meter)().since(before));
    Ok(counts.finish(ids.len() as u64, waiting.len() as u64, plan.config.blind, spent.unwrap_or_default()))
}

/// Hands the first question about every run that would be looked at to `each`, without asking it: what
/// relabeling takes can be reckoned from that.
///
/// # Errors
/// When the store cannot be read, or what `each` says.
pub fn first_goal_questions<E: From<StoreError>>(
    store: &Store,
    plan: &RelabelPlan<'_>,
    each: &mut dyn FnMut(TrajectoryId, &ChatRequest) -> Result<(), E>,
) -> Result<(), E> {
    let Some(asked) = &plan.judges else { return Ok(()) };
    for id in chosen(store, plan)? {
        if !known(store, id, plan)?.is_empty() {
            continue;
        }
        let run = store.effective(id)?;
        each(id, &(asked.judges)(id).first_question(&Case::new(&run, &[], false)))?;
    }
    Ok(())
}

/// What this version has made of a run under this setting.
fn known(store: &Store, id: TrajectoryId, plan: &RelabelPlan<'_>) -> Result<Vec<Relabel>, StoreError> {
    let models = plan.names();
    let mut goals = goals(store, id, |asked, goal| *asked == models && goal.blind == plan.config.blind)?;
    goals.sort_by_key(|goal| goal.attempt);
    Ok(goals)
}

/// What this version has refused about a run, whichever models were asked. Where the environment is withheld, what
/// was refused with its help is not known.
fn refused(store: &Store, id: TrajectoryId, plan: &RelabelPlan<'_>) -> Result<Vec<Relabel>, StoreError> {
    goals(store, id, |_, goal| goal.rejected.is_some() && (goal.blind || !plan.config.blind))
}

/// Goals that this version has looked at, by the models that were asked.
fn goals(
    store: &Store,
    id: TrajectoryId,
    is_wanted: impl Fn(&Option<String>, &Relabel) -> bool,
) -> Result<Vec<Relabel>, StoreError> {
    let verdicts = store.of_run(id, "relabel")?.into_iter();
    let goals = verdicts.filter(|it| it.producer.version == HINDSIGHT_VERSION).filter_map(|verdict| {
        match verdict.content {
            Content::Relabel(goal) if is_wanted(&verdict.producer.model, &goal) => Some(goal),
            _ => None,
        }
    });
    Ok(goals.collect())
}

/// The runs among which goals must stand out, those to be relabeled in front.
fn corpus(
    store: &Store,
    waiting: &[TrajectoryId],
    seed: u64,
) -> Result<(Corpus, BTreeMap<TrajectoryId, u32>), StoreError> {
    let wanted: BTreeSet<TrajectoryId> = waiting.iter().copied().collect();
    let mut others: Vec<(Hash, TrajectoryId)> = store
        .list(&Filter::default(), Page::ALL)?
        .into_iter()
        .filter(|row| !wanted.contains(&row.id))
        .map(|row| (Hash::of_all(&[b"corpus", &seed.to_le_bytes(), &row.id.0.0]), row.id))
        .collect();
    others.sort_unstable();
    let room = CORPUS_MAX.saturating_sub(waiting.len());
    let ids = waiting.iter().copied().chain(others.into_iter().take(room).map(|(_, id)| id));
    let mut documents = BTreeMap::new();
    let mut texts = Vec::new();
    for id in ids {
        let run = store.effective(id)?;
        documents.insert(id, texts.len() as u32);
        texts.push((run.task.key.clone(), Corpus::document(&run)));
    }
    Ok((Corpus::new(texts), documents))
}
