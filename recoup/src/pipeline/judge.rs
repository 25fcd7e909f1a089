//! Judging by models: runs go out to a panel, many at a time, and verdicts come back as they are ready.
//!
//! A run is judged by itself, so a call that is stopped loses at most the runs that were out: what was
//! answered lies in the models' cache, and `resume` passes over what is decided. A provider that fails
//! leaves its run undecided; it is counted with its reason.

mod counts;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

pub use self::counts::Judging;
use self::counts::{Back, Counts, Outcome};
use super::Diagnosing;
use super::patience::Patience;
use crate::diagnosis::{DiagnosisConfig, JudgingConfig, Known, Run, is_judged, judge, judging_verdicts};
use crate::id::{Hash, TrajectoryId};
use crate::judges::{Case, Judge, JudgeConfig};
use crate::models::{ChatRequest, Ledger, ModelIdentity};
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Store, StoreError};
use crate::trajectory::{Citation, Status, Trajectory};
use crate::triage;
use crate::verdict::{Blame, Content, FailureClass, Finding, Party, Verdict};

/// Ranges that detectors cite which a window must hold.
const ANCHORS_MAX: usize = 8;

/// Whom to ask about which runs.
pub struct JudgingPlan<'a> {
    /// The panel's models, the proposer's first.
    pub members: Vec<ModelIdentity>,
    /// The panel for one judgement of a run: its number is from 0.
    pub panel: &'a (dyn Fn(TrajectoryId, u32) -> Vec<Box<dyn Judge + 'a>> + Sync),
    /// Judgements of each run, at least 1. The first decides; the others show how sure it is.
    pub repeats: u32,
    /// How the judges ask.
    pub asking: JudgeConfig,
    /// These runs only, judged already or not.
    pub only: Option<Vec<TrajectoryId>>,
    /// Most runs to judge.
    pub limit: Option<usize>,
    /// That many runs, drawn by the hash of their ids.
    pub sample: Option<usize>,
    /// Whether runs are passed over that this panel has judged.
    pub resume: bool,
    /// Whether judges see gold answers, for comparison with benchmarks.
    pub with_ground_truth: bool,
    /// Runs that are out at a time.
    pub in_flight: usize,
    /// What asking has taken so far.
    pub ledger: &'a Ledger,
    /// The stage that the judges' questions are counted under there.
    pub stage: &'a str,
}

/// A run with what the rules say of it.
struct Loaded {
    run: Trajectory,
    blame: Option<Blame>,
    class: Option<FailureClass>,
    findings: Vec<Finding>,
}

/// A run on its way to the panel.
struct Work {
    loaded: Arc<Loaded>,
    sample: u32,
}

impl Loaded {
    /// The run made ready, what is cited by findings that nothing made up for kept in sight.
    fn case(&self, plan: &JudgingPlan<'_>) -> Case<'_> {
        let open = self.findings.iter().filter(|finding| finding.resolved_at.is_none());
        let anchors: Vec<Citation> =
            open.flat_map(|finding| &finding.citations).take(ANCHORS_MAX).cloned().collect();
        Case::new(&self.run, &anchors, plan.with_ground_truth)
    }
}

/// Judges runs.
///
/// # Errors
/// When the store fails; what was kept stays.
pub fn judge_runs(
    store: &mut Store,
    plan: &JudgingPlan<'_>,
    now: &str,
    reporter: &mut dyn Reporter,
) -> Result<Diagnosing, StoreError> {
    let (pool, ids) = chosen(store, plan)?;
    let mut counts = Counts::new(plan, pool);
    reporter.stage("judge", Some(ids.len() as u64));
    let patience = Patience::default();
    let (give, take) = sync_channel::<Work>(plan.in_flight.max(1));
    let take = Mutex::new(take);
    let (back, came) = channel::<Back>();
    std::thread::scope(|scope| {
        for _ in 0..plan.in_flight.clamp(1, ids.len().max(1)) {
            let (back, take, patience) = (back.clone(), &take, &patience);
            scope.spawn(move || {
                while let Some(work) = next(take) {
                    let outcome = if patience.is_lost() { Outcome::Unasked } else { ask(&work, plan, now) };
                    match &outcome {
                        Outcome::Judged(..) => patience.answered(),
                        Outcome::Failed(error) => patience.failed(error),
                        Outcome::Unasked => {}
                    }
                    let Work { loaded, sample } = work;
                    if back.send(Back { run: loaded.run.id, sample, outcome }).is_err() {
                        return;
                    }
                }
            });
        }
        drop(back);
        let result = feed(store, plan, &ids, &give, &came, &mut counts, reporter);
        drop(give);
        result?;
        while let Ok(done) = came.recv() {
            counts.take(store, done, reporter)?;
        }
        counts.keep(store)
    })?;
    counts.finish(store, plan)
}

fn next(take: &Mutex<Receiver<Work>>) -> Option<Work> {
    take.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}

/// Hands out every run, and takes back what is ready in between.
fn feed(
    store: &mut Store,
    plan: &JudgingPlan<'_>,
    ids: &[TrajectoryId],
    give: &std::sync::mpsc::SyncSender<Work>,
    came: &Receiver<Back>,
    counts: &mut Counts,
    reporter: &mut dyn Reporter,
) -> Result<(), StoreError> {
    for id in ids {
        let loaded = load(store, *id)?.map(Arc::new);
        for (sample, loaded) in (0..plan.repeats.max(1)).zip(std::iter::repeat(loaded)) {
            let Some(loaded) = loaded else { break };
            if give.send(Work { loaded, sample }).is_err() {
                return Ok(());
            }
        }
        while let Ok(done) = came.try_recv() {
            counts.take(store, done, reporter)?;
        }
    }
    Ok(())
}

/// Loads a run; `None` where no agent spoke in it.
fn load(store: &Store, id: TrajectoryId) -> Result<Option<Loaded>, StoreError> {
    let run = store.effective(id)?;
    let (mut blame, mut class, mut findings) = (None, None, Vec::new());
    for verdict in store.verdicts(id)?.into_iter().filter(|verdict| verdict.producer.name == "rules") {
        match verdict.content {
            Content::Blame(found) if blame.is_none() => blame = Some(found),
            Content::FailureClass(found) if class.is_none() => class = Some(found),
            Content::Diagnosis(found) if findings.is_empty() => findings = found.findings,
            Content::Findings(found) if findings.is_empty() => findings = found,
            _ => {}
        }
    }
    Ok(triage::has_agent_turn(&run).then_some(Loaded { run, blame, class, findings }))
}

fn ask(Work { loaded, sample }: &Work, plan: &JudgingPlan<'_>, now: &str) -> Outcome {
    let (run, sample) = (&loaded.run, *sample);
    let case = loaded.case(plan);
    let index = Run::new(run, &[], &DiagnosisConfig::default());
    // A harness that says how the run ended has said whose it was; the rules pass that on.
    let settled = loaded.blame.as_ref().filter(|blame| blame.rule == "termination").map(|blame| blame.party);
    let panel = (plan.panel)(run.id, sample);
    let config = config(plan, sample);
    match judge(&case, &index, &panel, Known { findings: &loaded.findings, settled }) {
        Ok(judged) => {
            let known = (loaded.blame.as_ref(), loaded.class.as_ref());
            let verdicts = judging_verdicts(run, &judged, known, &config, now);
            Outcome::Judged(Box::new(judged), verdicts)
        }
        Err(error) => Outcome::Failed(error),
    }
}

fn config(plan: &JudgingPlan<'_>, sample: u32) -> JudgingConfig {
    JudgingConfig { members: plan.members.clone(), with_ground_truth: plan.with_ground_truth, sample }
}

/// How many runs a panel could judge, and those that it is to judge, in import order.
fn chosen(store: &Store, plan: &JudgingPlan<'_>) -> Result<(u64, Vec<TrajectoryId>), StoreError> {
    let mut ids = Vec::new();
    for row in store.list(&Filter::default(), Page::ALL)? {
        let is_agents = match row.blame.as_deref() {
            Some(party) => party == Party::Agent.as_str() || party == Party::Unknown.as_str(),
            None => true,
        };
        let named = plan.only.as_ref().is_some_and(|only| only.contains(&row.id));
        let wanted = if plan.only.is_some() { named } else { is_agents };
        if row.outcome != Status::Success.as_str() && wanted {
            ids.push(row.id);
        }
    }
    let pool = ids.len() as u64;
    if plan.resume {
        let mut judgings: BTreeMap<TrajectoryId, Vec<Verdict>> = BTreeMap::new();
        for (_, verdict) in store.of_kind("judging")? {
            judgings.entry(verdict.subject).or_default().push(verdict);
        }
        ids.retain(|id| {
            let own = judgings.get(id).map_or(&[][..], Vec::as_slice);
            !(0..plan.repeats.max(1)).all(|sample| is_judged(own, &config(plan, sample)))
        });
    }
    if let Some(sample) = plan.sample.filter(|sample| *sample < ids.len()) {
        let mut drawn: Vec<(Hash, usize)> =
            ids.iter().enumerate().map(|(at, id)| (Hash::of_all(&[b"sample", &id.0.0]), at)).collect();
        drawn.sort_unstable();
        drawn.truncate(sample);
        let mut places: Vec<usize> = drawn.into_iter().map(|(_, at)| at).collect();
        places.sort_unstable();
        ids = places.into_iter().map(|at| ids[at]).collect();
    }
    ids.truncate(plan.limit.unwrap_or(usize::MAX));
    Ok((pool, ids))
}

/// Hands the first question about every run that would be judged to `each`, without asking it: what
/// judging takes can be reckoned from that.
///
/// # Errors
/// When the store cannot be read, or what `each` says.
pub fn first_questions<E: From<StoreError>>(
    store: &Store,
    plan: &JudgingPlan<'_>,
    each: &mut dyn FnMut(TrajectoryId, &ChatRequest) -> Result<(), E>,
) -> Result<(), E> {
    let (_, ids) = chosen(store, plan)?;
    for id in ids {
        let Some(loaded) = load(store, id)? else { continue };
        let mut question = plan.asking.first_question(&loaded.case(plan));
        for sample in 0..plan.repeats.max(1) {
            question.sample = sample;
            each(id, &question)?;
        }
    }
    Ok(())
}
