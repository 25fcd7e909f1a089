//! What judging came to: verdicts kept as they come back, and counted.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::JudgingPlan;
use crate::diagnosis::Judged;
use crate::id::TrajectoryId;
use crate::judges::quality::{Quality, measure};
use crate::models::{LedgerLine, ModelError, ModelIdentity};
use crate::pipeline::labelled::judgements;
use crate::pipeline::{Diagnosing, Meter};
use crate::reporter::Reporter;
use crate::statistics::Resampling;
use crate::store::{Store, StoreError};
use crate::verdict::Verdict;

/// Verdicts of this many runs are kept at a time.
const KEPT_TOGETHER: usize = 32;

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

/// What came back.
pub(super) struct Back {
    pub(super) run: TrajectoryId,
    pub(super) sample: u32,
    pub(super) outcome: Outcome,
}

/// How a judgement ended.
pub(super) enum Outcome {
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

/// Judging under way: what has come back, and what of it waits to be kept.
pub(super) struct Counts {
    done: Diagnosing,
    judging: Judging,
    waiting: Vec<Verdict>,
    runs_waiting: usize,
    /// The first judgement that each run lacks, in the order of their numbers.
    lacks: BTreeMap<TrajectoryId, (u32, Lack)>,
    before: Meter,
}

impl Counts {
    pub(super) fn new(plan: &JudgingPlan<'_>, pool: u64) -> Self {
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

    pub(super) fn take(
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

    pub(super) fn keep(&mut self, store: &mut Store) -> Result<(), StoreError> {
        self.runs_waiting = 0;
        store.put_verdicts(&std::mem::take(&mut self.waiting))?;
        Ok(())
    }

    pub(super) fn finish(mut self, store: &Store, plan: &JudgingPlan<'_>) -> Result<Diagnosing, StoreError> {
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
