//! Judging by models: runs go out to a panel, many at a time, and verdicts come back as they are ready.
//!
//! A run is judged by itself, so a call that is stopped loses at most the runs that were out: what was
//! answered lies in the models' cache, and `resume` passes over what is decided. A provider that fails
//! leaves its run undecided; it is counted with its reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;

use super::Diagnosing;
use super::labelled::judgements;
use super::patience::Patience;
use crate::diagnosis::{
    DiagnosisConfig, Judged, JudgingConfig, Known, Run, is_judged, judge, judging_verdicts,
};
use crate::id::{Hash, TrajectoryId};
use crate::judges::quality::{Quality, measure};
use crate::judges::{Case, Judge, JudgeConfig};
use crate::models::{ChatRequest, Ledger, LedgerLine, ModelError, ModelIdentity};
use crate::reporter::Reporter;
use crate::statistics::Resampling;
use crate::store::{Filter, Page, Store, StoreError};
use crate::trajectory::{Citation, Status, Trajectory};
use crate::triage;
use crate::verdict::{Blame, Content, FailureClass, Finding, Party, Verdict};

/// Verdicts of this many runs are kept at a time.
const KEPT_TOGETHER: usize = 32;
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

/// What a ledger says.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Meter {
    /// Questions answered by a model.
    pub calls: u64,
    /// Questions answered from the cache.
    pub cached: u64,
    /// Cost in US dollars; `None` where a model has no price.
    pub cost_usd: Option<f64>,
}

impl Meter {
    /// What a ledger says so far, all stages and models together.
    pub fn of(ledger: &Ledger) -> Self {
        let (calls, cached) = ledger.calls();
        let costs = ledger.lines().into_iter().map(|line| line.cost_usd);
        Self { calls, cached, cost_usd: costs.sum::<Option<f64>>() }
    }

    /// What was added to an earlier reading.
    pub(super) fn since(self, before: Self) -> Self {
        Self {
            calls: self.calls - before.calls,
            cached: self.cached - before.cached,
            cost_usd: self.cost_usd.map(|cost| cost - before.cost_usd.unwrap_or_default()),
        }
    }
}

/// What judging came to, beside the counts of [`Diagnosing`].
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Judging {
    /// The panel's models, the proposer first.
    pub panel: Vec<String>,
    /// Runs that could be judged: failed by the agent's fault, or of unknown outcome.
    pub pool: u64,
    /// Runs that lack a judgement because the provider failed, by what it said.
    pub errors: BTreeMap<String, u64>,
    /// The first of what providers said.
    #[serde(skip)]
    pub first_error: Option<ModelError>,
    /// Runs that lack a judgement that was not asked for, because a limit was reached or the provider kept
    /// failing.
    pub waiting: u64,
    /// Runs that lack a judgement whose next question is in a provider's batch: the same command, run again,
    /// goes on with them.
    pub pending: u64,
    /// Answers that were refused on the way, by gate: retries included.
    pub refused_answers: BTreeMap<String, u64>,
    /// Diagnoses that are kept for their step alone.
    pub kept_for_step: u64,
    /// Runs whose members hold different steps for decisive.
    pub disagreements: u64,
    /// Tokens of the questions, as far as the providers say.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// Cost in US dollars of an admitted diagnosis; `None` where none is or a model has no price.
    pub cost_per_admitted_usd: Option<f64>,
    /// What each model took; a diagnosis that was admitted counts for every member of the panel.
    pub models: Vec<LedgerLine>,
    /// How far the panel can be believed, where people have looked at runs (`recoup review`).
    pub quality: Option<Quality>,
}

/// A run with what the rules say of it.
struct Loaded {
    run: Trajectory,
    blame: Option<Blame>,
    class: Option<FailureClass>,
    findings: Vec<Finding>,
}

/// What came back.
struct Back {
    run: TrajectoryId,
    sample: u32,
    outcome: Outcome,
}

/// How a judgement ended.
enum Outcome {
    Judged(Box<Judged>, Vec<Verdict>),
    Failed(ModelError),
    /// Nobody was asked any more.
    Unasked,
}

/// Why a run lacks a judgement.
enum Lack {
    Waiting,
    Pending,
    Failed(ModelError),
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

struct Counts {
    done: Diagnosing,
    judging: Judging,
    waiting: Vec<Verdict>,
    runs_waiting: usize,
    /// The first judgement that each run lacks, in the order of their numbers.
    lacks: BTreeMap<TrajectoryId, (u32, Lack)>,
    before: Meter,
}

impl Counts {
    fn new(plan: &JudgingPlan<'_>, pool: u64) -> Self {
        let panel = plan.members.iter().map(ModelIdentity::name).collect();
        Self {
            done: Diagnosing::default(),
            judging: Judging { panel, pool, ..Judging::default() },
            waiting: Vec::new(),
            runs_waiting: 0,
            lacks: BTreeMap::new(),
            before: Meter::of(plan.ledger),
        }
    }

    fn take(
        &mut self,
        store: &mut Store,
        Back { run, sample, outcome }: Back,
        reporter: &mut dyn Reporter,
    ) -> Result<(), StoreError> {
        let (judged, verdicts) = match outcome {
            Outcome::Judged(judged, verdicts) => (judged, verdicts),
            Outcome::Unasked => {
                self.lacks(run, sample, Lack::Waiting);
                return Ok(());
            }
            Outcome::Failed(ModelError::Exhausted { limit }) => {
                self.lacks(run, sample, Lack::Waiting);
                reporter.note(&format!("stopped: the limit of {limit} is reached"));
                return Ok(());
            }
            Outcome::Failed(ModelError::Pending { .. }) => {
                self.lacks(run, sample, Lack::Pending);
                return Ok(());
            }
            Outcome::Failed(error) => {
                self.lacks(run, sample, Lack::Failed(error));
                return Ok(());
            }
        };
        self.judging.prompt_tokens += judged.spent.usage.prompt;
        self.judging.completion_tokens += judged.spent.usage.completion;
        if sample == 0 {
            self.count(&judged);
            reporter.advance(1);
        }
        self.waiting.extend(verdicts);
        self.runs_waiting += 1;
        if self.runs_waiting >= KEPT_TOGETHER { self.keep(store) } else { Ok(()) }
    }

    fn lacks(&mut self, run: TrajectoryId, sample: u32, lack: Lack) {
        if self.lacks.get(&run).is_none_or(|(first, _)| sample < *first) {
            self.lacks.insert(run, (sample, lack));
        }
    }

    fn count(&mut self, judged: &Judged) {
        self.done.runs += 1;
        for (gate, _) in judged.attempts.iter().filter_map(|tried| tried.refused.as_ref()) {
            *self.judging.refused_answers.entry(gate.clone()).or_default() += 1;
        }
        let Some(last) = judged.last() else { return };
        self.done.diagnosed += u64::from(last.proposal.is_some());
        match &last.refused {
            None => self.done.admitted += 1,
            Some((gate, _)) => *self.done.rejected.entry(gate.clone()).or_default() += 1,
        }
        self.judging.kept_for_step += u64::from(judged.keeps_step());
        let decisive = last.diagnosis.as_ref().map(|diagnosis| diagnosis.decisive_node);
        let differs = |node: Option<usize>| node.is_some() && decisive.is_some() && node != decisive;
        self.judging.disagreements += u64::from(judged.opinions.iter().any(|opinion| differs(opinion.node)));
    }

    fn keep(&mut self, store: &mut Store) -> Result<(), StoreError> {
        self.runs_waiting = 0;
        store.put_verdicts(&std::mem::take(&mut self.waiting))?;
        Ok(())
    }

    fn finish(mut self, store: &Store, plan: &JudgingPlan<'_>) -> Result<Diagnosing, StoreError> {
        for (_, lack) in std::mem::take(&mut self.lacks).into_values() {
            match lack {
                Lack::Waiting => self.judging.waiting += 1,
                Lack::Pending => self.judging.pending += 1,
                Lack::Failed(error) => {
                    *self.judging.errors.entry(error.to_string()).or_default() += 1;
                    self.judging.first_error.get_or_insert(error);
                }
            }
        }
        let spent = Meter::of(plan.ledger).since(self.before);
        (self.done.calls, self.done.cached, self.done.cost_usd) = (spent.calls, spent.cached, spent.cost_usd);
        let admitted = self.done.admitted;
        self.judging.cost_per_admitted_usd =
            spent.cost_usd.filter(|_| admitted > 0).map(|cost| cost / admitted as f64);
        let names: BTreeSet<&str> = plan.members.iter().map(|member| member.model.as_str()).collect();
        for name in names {
            plan.ledger.accepted(plan.stage, name, admitted);
        }
        self.judging.models = plan.ledger.lines();
        self.judging.models.retain(|line| line.stage == plan.stage);
        let quality = measure(&judgements(store)?, Resampling::new(0));
        self.judging.quality = quality.filter(|quality| quality.labelled > 0);
        self.done.judging = Some(self.judging);
        Ok(self.done)
    }
}
