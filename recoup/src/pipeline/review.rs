//! Review by people: which runs to show, and what is kept of what they say.
//!
//! A run is shown without outcome and verdicts. What a person says of it measures the judges
//! ([`crate::judges::quality`]).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::id::{Hash, TrajectoryId};
use crate::store::{Filter, Page, Row, Store, StoreError};
use crate::verdict::{Content, Decision, PersonReview, Producer, Verdict};

/// By what a sample is spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stratum {
    /// Success, failure, unknown.
    Outcome,
    /// Party blamed.
    Blame,
    /// Failure class.
    Class,
    /// Format of the source.
    Format,
    /// Harness.
    Harness,
    /// Model of the agent.
    Model,
    /// Task.
    Task,
    /// What the judges made of it: admitted, refused, not judged.
    Judged,
}

impl Stratum {
    /// Every one, in the order of help texts.
    pub const ALL: [Self; 8] = [
        Self::Outcome,
        Self::Blame,
        Self::Class,
        Self::Format,
        Self::Harness,
        Self::Model,
        Self::Task,
        Self::Judged,
    ];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outcome => "outcome",
            Self::Blame => "blame",
            Self::Class => "class",
            Self::Format => "format",
            Self::Harness => "harness",
            Self::Model => "model",
            Self::Task => "task",
            Self::Judged => "judged",
        }
    }

    fn of(self, row: &Row, judged: Option<bool>) -> String {
        let value = match self {
            Self::Outcome => Some(row.outcome.clone()),
            Self::Blame => row.blame.clone(),
            Self::Class => row.class.clone(),
            Self::Format => Some(row.format.clone()),
            Self::Harness => row.harness.clone(),
            Self::Model => row.model.clone(),
            Self::Task => Some(row.task.0.clone()),
            Self::Judged => judged.map(|admitted| if admitted { "admitted" } else { "refused" }.to_owned()),
        };
        value.unwrap_or_default()
    }
}

/// Runs that nobody has reviewed, `count` of them, drawn by the hash of their ids; spread evenly over the
/// values of `by`. Only judged runs, where any were judged: others measure no judge.
///
/// # Errors
/// When the store cannot be read.
pub fn review_sample(
    store: &Store,
    count: usize,
    by: Option<Stratum>,
) -> Result<Vec<TrajectoryId>, StoreError> {
    let mut judged: BTreeMap<TrajectoryId, bool> = BTreeMap::new();
    for (_, verdict) in store.of_kind("judging")? {
        if let Content::Judging(judging) = &verdict.content
            && judging.sample == 0
            && !judging.with_ground_truth
        {
            judged.entry(verdict.subject).or_insert(judging.admitted);
        }
    }
    let reviewed: BTreeSet<TrajectoryId> =
        store.of_kind("person_review")?.into_iter().map(|(_, verdict)| verdict.subject).collect();
    let mut strata: BTreeMap<String, Vec<(Hash, TrajectoryId)>> = BTreeMap::new();
    for row in store.list(&Filter::default(), Page::ALL)? {
        let word = judged.get(&row.id).copied();
        if reviewed.contains(&row.id) || (word.is_none() && !judged.is_empty()) {
            continue;
        }
        let stratum = by.map(|by| by.of(&row, word)).unwrap_or_default();
        strata.entry(stratum).or_default().push((Hash::of_all(&[b"review", &row.id.0.0]), row.id));
    }
    let mut queues: Vec<VecDeque<TrajectoryId>> = strata
        .into_values()
        .map(|mut runs| {
            runs.sort_unstable();
            runs.into_iter().map(|(_, id)| id).collect()
        })
        .collect();
    let mut sample = Vec::new();
    while sample.len() < count && queues.iter().any(|queue| !queue.is_empty()) {
        for queue in &mut queues {
            sample.extend(queue.pop_front());
        }
    }
    sample.truncate(count);
    Ok(sample)
}

/// Reads `admit`, `reject`, `abstain`, `step N` or `node N` about a run; `None` for another word, or where
/// the run has no such turn.
///
/// # Errors
/// When the run cannot be read.
pub fn read_review(
    store: &Store,
    id: TrajectoryId,
    answer: &str,
) -> Result<Option<PersonReview>, StoreError> {
    let answer = answer.trim().to_ascii_lowercase();
    let says = |verdict, node| Some(PersonReview { verdict, node, note: None });
    Ok(match answer.as_str() {
        "admit" => says(Decision::Admit, None),
        "reject" => says(Decision::Reject, None),
        "abstain" => says(Decision::Abstain, None),
        _ => {
            let Some((word, number)) = answer.split_once(' ') else { return Ok(None) };
            let Ok(number) = number.trim().parse::<usize>() else { return Ok(None) };
            let run = store.effective(id)?;
            let branch = run.main_branch();
            let node = match word {
                "step" => branch.steps().get(number).copied(),
                "node" => branch.positions().get(number).copied(),
                _ => None,
            };
            // Only a turn of the agent can be where the agent went wrong.
            node.filter(|node| run.nodes[*node].occurrence.sampled)
                .and_then(|node| says(Decision::Reject, Some(node)))
        }
    })
}

/// Keeps what a person says; saying something else later replaces it.
///
/// # Errors
/// When the store fails.
pub fn record_review(
    store: &mut Store,
    id: TrajectoryId,
    review: PersonReview,
    now: &str,
) -> Result<(), StoreError> {
    let producer = Producer { name: "review".to_owned(), ..Producer::person() };
    store.put_verdicts(&[Verdict::new(id, producer, Vec::new(), Content::PersonReview(review), now)])?;
    Ok(())
}
