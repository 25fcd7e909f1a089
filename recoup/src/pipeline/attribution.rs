//! Attribution measured on a project: its labelled runs against what rules, judges or a file blame, or its swept
//! ones against the rules.

use std::collections::BTreeMap;

use serde::Serialize;

use super::PipelineError;
use super::siblings::successes;
use crate::diagnosis::{Blamed, DiagnosisConfig, JUDGE_WITH_GROUND_TRUTH, blamed};
use crate::evaluation::attribution::{
    Agreement, Attribution, Case, Flipped, GivenPredictions, Origin, Prediction, Truth, agreement, score,
};
use crate::id::TrajectoryId;
use crate::parallel;
use crate::reporter::Reporter;
use crate::store::{Filter, Page, Row, Store, StoreError};
use crate::trajectory::Trajectory;
use crate::verdict::{Content, Diagnosis, ReferenceLabel, Side, Verdict};

/// Runs of one parallel batch.
const BATCH_RUNS: usize = 256;

/// Who says where a run went wrong.
#[derive(Clone, Copy, Debug)]
pub enum Predictor<'a> {
    /// The rules, asked now.
    Rules,
    /// The judges, by the diagnoses that the project keeps of them: the one in force of each run.
    Judges {
        /// Those made with the gold answer in sight, instead of those made without.
        with_ground_truth: bool,
    },
    /// Somebody else.
    Given(&'a GivenPredictions),
}

/// What is scored.
#[derive(Clone, Copy, Debug)]
pub struct AttributionConfig<'a> {
    /// Whose word.
    pub by: Predictor<'a>,
    /// Only runs on this side of the split.
    pub side: Option<Side>,
    /// Seed of the bootstrap.
    pub seed: u64,
    /// Threads to use.
    pub threads: usize,
}

/// What `eval attribution --against flips` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FlipAgreement {
    /// Runs that were swept.
    pub swept: u64,
    /// Of them, those in which no turn's correction was shown to help; no label, so not scored.
    pub without_flip: u64,
    /// By environment, each run diagnosed from itself alone.
    pub alone: Vec<Agreement>,
    /// By environment, each run diagnosed beside the other runs of its task.
    pub with_siblings: Vec<Agreement>,
}

/// Scores what is blamed in every labelled run of a project.
///
/// # Errors
/// When the store fails.
pub fn attribution(
    store: &Store,
    config: AttributionConfig<'_>,
    reporter: &mut dyn Reporter,
) -> Result<Attribution, PipelineError> {
    let filter = Filter { split: config.side.map(|side| side.as_str().to_owned()), ..Filter::default() };
    let mut labels: BTreeMap<TrajectoryId, Vec<ReferenceLabel>> = BTreeMap::new();
    for (_, verdict) in store.of_kind("reference_label")? {
        if let Content::ReferenceLabel(label) = verdict.content {
            labels.entry(verdict.subject).or_default().push(label);
        }
    }
    let rows = store.list(&filter, Page::ALL)?.into_iter();
    let labelled: Vec<_> = rows.filter_map(|row| labels.remove(&row.id).map(|own| (row, own))).collect();
    reporter.stage("attribute", Some(labelled.len() as u64));
    let mut cases = Vec::with_capacity(labelled.len());
    for batch in labelled.chunks(BATCH_RUNS) {
        let mut work = Vec::with_capacity(batch.len());
        for (row, labels) in batch {
            let judged = match config.by {
                Predictor::Judges { with_ground_truth } => judged(store, row.id, with_ground_truth)?,
                Predictor::Rules | Predictor::Given(_) => None,
            };
            work.push((Work::load(store, row)?, labels, judged));
        }
        let found = parallel::map(&work, config.threads, |(work, labels, judged)| {
            case(work, labels, judged.as_ref(), config.by)
        });
        cases.extend(found.into_iter().flatten());
        reporter.advance(batch.len() as u64);
    }
    Ok(score(&cases, store.labels_without_run()?, config.seed))
}

/// Compares what is blamed in every swept run of a project with the turn that the sweep found.
///
/// # Errors
/// When the store fails.
pub fn flip_agreement(
    store: &Store,
    threads: usize,
    reporter: &mut dyn Reporter,
) -> Result<FlipAgreement, PipelineError> {
    let mut swept = Vec::new();
    for (_, verdict) in store.of_kind("sweep")? {
        let Content::Sweep(sweep) = verdict.content else { continue };
        // The current sweep of a run comes first.
        if !sweep.injected && swept.last().is_none_or(|(id, _)| *id != verdict.subject) {
            swept.push((verdict.subject, sweep));
        }
    }
    let labelled: Vec<_> = swept
        .iter()
        .filter_map(|(id, sweep)| Some((*id, sweep.policy.as_str(), sweep.decisive?.step)))
        .collect();
    reporter.stage("compare", Some(labelled.len() as u64));
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    for batch in labelled.chunks(BATCH_RUNS) {
        let mut work = Vec::with_capacity(batch.len());
        for (id, policy, turn) in batch {
            work.push((Work::load(store, &store.row(*id)?)?, *policy, *turn));
        }
        let found = parallel::map(&work, threads, |(work, policy, turn)| {
            (work.flipped(policy, *turn, false), work.flipped(policy, *turn, true))
        });
        for (by_itself, with_siblings) in found {
            alone.push(by_itself);
            beside.push(with_siblings);
        }
        reporter.advance(batch.len() as u64);
    }
    Ok(FlipAgreement {
        swept: swept.len() as u64,
        without_flip: (swept.len() - labelled.len()) as u64,
        alone: agreement(&alone),
        with_siblings: agreement(&beside),
    })
}

/// A run with the successful runs of its task.
struct Work {
    run: Trajectory,
    siblings: Vec<Trajectory>,
}

impl Work {
    fn load(store: &Store, row: &Row) -> Result<Self, StoreError> {
        let mut siblings = successes(store, &row.task)?;
        siblings.retain(|sibling| sibling.id != row.id);
        Ok(Self { run: store.effective(row.id)?, siblings })
    }

    /// Whom the rules blame.
    fn blamed(&self, with_siblings: bool) -> Option<Blamed> {
        let siblings: Vec<&Trajectory> = self.siblings.iter().filter(|_| with_siblings).collect();
        blamed(&self.run, &siblings, &DiagnosisConfig::default())
    }

    fn flipped(&self, policy: &str, turn: usize, with_siblings: bool) -> Flipped {
        let blamed = self.blamed(with_siblings);
        let said = blamed.as_ref().and_then(|blamed| self.run.main_branch().step(blamed.node));
        let detector = blamed.and_then(|blamed| blamed.detector);
        Flipped {
            environment: self.run.environment.as_ref().map_or_else(String::new, |it| it.name.clone()),
            policy: policy.to_owned(),
            turn,
            suspected: said.filter(|_| detector.is_none()),
            diagnosed: said.zip(detector),
        }
    }
}

/// The diagnosis of a run that judges made, and that stands.
fn judged(
    store: &Store,
    run: TrajectoryId,
    with_ground_truth: bool,
) -> Result<Option<Diagnosis>, StoreError> {
    // The current one comes first.
    Ok(store.verdicts(run)?.into_iter().find_map(|Verdict { producer, content, .. }| match content {
        Content::Diagnosis(diagnosis)
            if producer.model.is_some()
                && (producer.name == JUDGE_WITH_GROUND_TRUTH) == with_ground_truth =>
        {
            Some(diagnosis)
        }
        _ => None,
    }))
}

fn case(
    work: &Work,
    labels: &[ReferenceLabel],
    judged: Option<&Diagnosis>,
    by: Predictor<'_>,
) -> Option<Case> {
    let run = &work.run;
    let mut case = Case::new(run, Truth::of(labels, run)?);
    let blames = |node: usize, agent: &str, origin: Origin| Prediction {
        index: run.main_branch().node_index(node),
        agent: Some(agent.to_owned()),
        written_step: None,
        origin,
    };
    case.prediction = match by {
        Predictor::Given(given) => given.of(&case, &run.id.to_string()),
        Predictor::Judges { .. } => {
            judged.map(|found| blames(found.decisive_node, &found.responsible_agent, Origin::Diagnosis))
        }
        Predictor::Rules => work.blamed(true).map(|blamed| {
            let origin = if blamed.detector.is_some() { Origin::Diagnosis } else { Origin::Suspect };
            blames(blamed.node, &blamed.agent, origin)
        }),
    };
    Some(case)
}
