//! Attribution scores: how often the blamed step and agent are those of a reference label.
//!
//! A label names a message in its benchmark's own counting; it is compared as that message, whatever
//! the counting. Tolerances count *turns* of the agents, not messages. The denominator is every labelled
//! run: one without a prediction counts as wrong. Beside the scores stand the simplest guesses
//! (`floors`), scored on the very same runs, and the ceiling: a label on a message that no agent wrote
//! cannot be reached by any diagnosis that blames a turn (gate S2).

mod case;
mod flips;
mod floors;
mod official;
mod predictions;

use std::collections::BTreeMap;

use serde::Serialize;

pub use self::case::{Case, Origin, Prediction, Speaker, Truth};
pub use self::flips::{Agreement, Flipped, Habit, agreement};
pub use self::predictions::{Given, GivenPredictions, parse_predictions};
use crate::statistics::{Pair, Resampling, Z_95, paired_difference, wilson};
use crate::trajectory::Role;

/// A count out of all, with Wilson's interval at 95 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Score {
    /// How many are right.
    pub k: u64,
    /// Out of how many.
    pub n: u64,
    /// `k / n`; 0 where `n` is 0.
    pub rate: f64,
    /// Lower bound of the rate.
    pub low: f64,
    /// Upper bound of the rate.
    pub high: f64,
}

impl Score {
    /// A score from its counts.
    pub fn new(k: u64, n: u64) -> Self {
        let interval = wilson(k, n, Z_95);
        Self { k, n, rate: interval.rate, low: interval.low, high: interval.high }
    }

    fn count<'a>(cases: impl IntoIterator<Item = &'a Case>, is_right: impl Fn(&Case) -> bool) -> Self {
        let (mut k, mut n) = (0, 0);
        for case in cases {
            k += u64::from(is_right(case));
            n += 1;
        }
        Self::new(k, n)
    }
}

/// What a guess gets right on average: a whole number for a guess that draws nothing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Expected {
    /// How many are right, on average.
    pub k: f64,
    /// Out of how many.
    pub n: u64,
    /// `k / n`; 0 where `n` is 0.
    pub rate: f64,
}

/// A simple guess, scored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Floor {
    /// The exact step; none for a guess that names only an agent.
    pub exact: Option<Expected>,
    /// The agent; none where no label names one.
    pub agent: Option<Expected>,
}

/// Ours minus a simple guess, in percentage points, within each run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Margin {
    /// Percentage points.
    pub points: f64,
    /// Lower bound at 95 %, by a bootstrap of the tasks; none where they are too few.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Two-sided p-value of no difference.
    pub p: f64,
}

/// The margins over one guess.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Margins {
    /// Of the exact step.
    pub exact: Option<Margin>,
    /// Of the agent.
    pub agent: Option<Margin>,
}

/// Labels that no diagnosis of a turn can reach, by whose message they stand on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Unreachable {
    /// A prompt: the scaffold around the run.
    pub prompt: u64,
    /// A user's message, the task's own included.
    pub user: u64,
    /// A tool's or an executor's.
    pub observation: u64,
    /// No message of the run.
    pub nowhere: u64,
}

/// Where the predictions come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Origins {
    /// Diagnoses that stand: admitted by every gate or, of a judge, kept for their step.
    pub diagnosed: u64,
    /// Suspects: where nothing decisive was found, the turn that is most likely at fault. No diagnosis.
    pub suspected: u64,
    /// A file's.
    pub given: u64,
    /// Runs without any.
    pub missing: u64,
}

/// What `eval attribution` answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Attribution {
    /// Labelled runs: the denominator of every score, but that of agents where labels name none.
    pub files: u64,
    /// The very message.
    pub exact: Score,
    /// At most one turn away.
    pub within_1: Score,
    /// At most three turns away.
    pub within_3: Score,
    /// At most five turns away.
    pub within_5: Score,
    /// The agent, whatever the step, of the labels that name one.
    pub agent: Score,
    /// Both the very message and the agent, of the same labels.
    pub joint: Score,
    /// The step by the published scorer of Who&When, which takes the label for right wherever it is a
    /// piece of the prediction (`1` in `12`); none for labels of another form.
    pub official_step: Option<Score>,
    /// The agent by the same scorer.
    pub official_agent: Option<Score>,
    /// Simple guesses on the same runs.
    pub floors: BTreeMap<String, Floor>,
    /// Ours minus each of them.
    pub differences: BTreeMap<String, Margins>,
    /// Labels that no turn can match.
    pub unreachable: Unreachable,
    /// The most that a diagnosis of a turn can reach, as a share of the exact step.
    pub ceiling: f64,
    /// Where the predictions come from.
    pub predictions: Origins,
    /// Labelled runs by the form of their label.
    pub sources: BTreeMap<String, u64>,
    /// Labels whose run was not among what was read; not in the denominator.
    pub without_run: u64,
}

/// The runs whose label names an agent.
fn of_agents(cases: &[Case]) -> impl Iterator<Item = &Case> {
    cases.iter().filter(|case| case.truth.agent.is_some())
}

/// Scores the predictions of labelled runs. `seed` is that of the bootstrap.
pub fn score(cases: &[Case], without_run: u64, seed: u64) -> Attribution {
    let within = |turns: usize| Score::count(cases, |case| case.distance().is_some_and(|away| away <= turns));
    let (mut unreachable, mut origins, mut sources) =
        (Unreachable::default(), Origins::default(), BTreeMap::<String, u64>::new());
    for case in cases {
        *sources.entry(case.truth.source.clone()).or_default() += 1;
        match case.prediction.as_ref().map(|prediction| prediction.origin) {
            Some(Origin::Diagnosis) => origins.diagnosed += 1,
            Some(Origin::Suspect) => origins.suspected += 1,
            Some(Origin::Given) => origins.given += 1,
            None => origins.missing += 1,
        }
        match case.truth.index.and_then(|index| case.speakers.get(index)) {
            None => unreachable.nowhere += 1,
            Some(speaker) if speaker.sampled => {}
            Some(Speaker { role: Role::System, .. }) => unreachable.prompt += 1,
            Some(Speaker { role: Role::Tool, .. }) => unreachable.observation += 1,
            Some(_) => unreachable.user += 1,
        }
    }
    let floors = floors::floors(cases);
    let differences = floors.iter().map(|floor| (floor.name.clone(), floor.margins(cases, seed))).collect();
    let lost = unreachable.prompt + unreachable.user + unreachable.observation + unreachable.nowhere;
    let n = cases.len() as u64;
    Attribution {
        files: n,
        exact: Score::count(cases, Case::is_exact),
        within_1: within(1),
        within_3: within(3),
        within_5: within(5),
        agent: Score::count(of_agents(cases), Case::is_agent),
        joint: Score::count(of_agents(cases), |case| case.is_exact() && case.is_agent()),
        official_step: official::step(cases),
        official_agent: official::agent(cases),
        floors: floors.iter().map(|floor| (floor.name.clone(), floor.scored())).collect(),
        differences,
        unreachable,
        ceiling: if n == 0 { 0.0 } else { (n - lost) as f64 / n as f64 },
        predictions: origins,
        sources,
        without_run,
    }
}

/// The mean difference of two scorings of the same runs, in points, resampled by task.
fn margin<'a>(pairs: impl IntoIterator<Item = (&'a str, f64, f64)>, seed: u64) -> Option<Margin> {
    let pairs = pairs.into_iter().map(|(cluster, treatment, control)| Pair { cluster, treatment, control });
    let difference = paired_difference(pairs, &Resampling::new(seed)).ok()?;
    let bca = difference.intervals.ok().map(|intervals| intervals.bca);
    Some(Margin {
        points: 100.0 * difference.estimate,
        low: bca.map(|bounds| 100.0 * bounds.low),
        high: bca.map(|bounds| 100.0 * bounds.high),
        p: difference.p,
    })
}

#[cfg(test)]
mod tests {
    use super::case::tests::case;
    use super::{Origin, score};

    #[test]
    fn every_run_counts_and_tolerances_count_turns() {
        // Turns of agents stand at messages 1, 3 and 4; 0 is the user's, 2 a tool's.
        let cases = [
            case(3, "b", Some((3, "b", Origin::Diagnosis))),
            case(4, "b", Some((1, "a", Origin::Suspect))),
            case(0, "a", Some((1, "a", Origin::Suspect))),
            case(1, "a", None),
        ];
        let scored = score(&cases, 2, 7);
        assert_eq!((scored.files, scored.exact.k, scored.exact.n), (4, 1, 4));
        assert_eq!((scored.within_1.k, scored.within_3.k), (2, 3));
        assert_eq!((scored.agent.k, scored.joint.k, scored.without_run), (2, 1, 2));
        let origins = scored.predictions;
        assert_eq!((origins.diagnosed, origins.suspected, origins.missing), (1, 2, 1));
        assert_eq!((scored.unreachable.user, scored.ceiling), (1, 0.75));
    }

    #[test]
    fn a_label_that_names_no_agent_says_nothing_of_agents() {
        let mut cases = [case(3, "b", Some((3, "b", Origin::Diagnosis))), case(1, "a", None)];
        cases[1].truth.agent = None;
        let scored = score(&cases, 0, 7);
        assert_eq!((scored.exact.n, scored.agent.n, scored.joint.n, scored.agent.k), (2, 1, 1, 1));
        assert_eq!(scored.floors["last"].agent.map(|floor| (floor.k, floor.n)), Some((1.0, 1)));
        cases[0].truth.agent = None;
        let scored = score(&cases, 0, 7);
        assert_eq!((scored.agent.n, scored.floors["last"].agent), (0, None));
        assert_eq!(scored.differences["last"].agent, None);
        assert!(scored.floors["last"].exact.is_some());
    }

    #[test]
    fn nothing_labelled_is_nothing_scored() {
        let scored = score(&[], 0, 7);
        assert_eq!((scored.files, scored.exact.rate, scored.official_step), (0, 0.0, None));
    }
}
