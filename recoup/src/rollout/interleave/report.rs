//! The report of collection: success, ends, labels and shift, round by round, from what is stored.
//!
//! Intervals resample tasks, for runs of one task resemble each other; below ten tasks there are none.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{LabelSettings, marks};
use crate::id::{TrajectoryId, VerdictId};
use crate::interleaving::{Interleaving, Mixing, Readings, RequestOutcome};
use crate::statistics::{Bounds, Clusters, Resampling};
use crate::store::{Store, StoreError};
use crate::trajectory::{Status, Trajectory};
use crate::verdict::{Actor, Content, LabelMark, RefusalCode, StateLabel, Unscored};

/// What rounds of collection came to.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Report {
    /// One for each round, in order.
    pub rounds: Vec<RoundReport>,
}

/// One round.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RoundReport {
    /// Its number, from 1.
    pub round: u32,
    /// How turns were to be shared, as far as runs of the round agree.
    pub mixing: Option<Mixing>,
    /// Stored runs.
    pub runs: u64,
    /// Stored runs by what became of them.
    pub outcomes: BTreeMap<RequestOutcome, u64>,
    /// The student alone; absent where it ran nothing alone.
    pub student: Option<Arm>,
    /// The teacher alone.
    pub teacher: Option<Arm>,
    /// Both, in shared runs.
    pub mixture: Option<Arm>,
    /// The share of turns that the teacher took in shared runs: what was delivered, not what was planned.
    pub delivered_teacher_fraction: Option<f64>,
    /// How the student's model was read; all 0 where no model acted.
    pub readings: Readings,
    /// Labels of visited states.
    pub labels: LabelCounts,
    /// How far the student's actions lie from the teacher's.
    pub shift: Shift,
}

/// How runs of one arm ended.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Arm {
    /// The share that a verifier passed.
    pub success: Rate,
    /// Runs by how they ended.
    pub end_modes: BTreeMap<String, u64>,
}

/// A share with its interval, clustered by task.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Rate {
    /// Those that count.
    pub passed: u64,
    /// Out of how many.
    pub n: u64,
    /// Tasks that they are of.
    pub tasks: u64,
    /// The share.
    pub rate: f64,
    /// 95 % interval (BCa bootstrap over tasks); absent below ten tasks.
    pub interval: Option<Bounds>,
}

/// What became of the teacher's answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LabelCounts {
    /// States that were visited.
    pub states: u64,
    /// Labels that examples are made of, under the filters that are on.
    pub accepted: u64,
    /// States without a label, by the rule that refused the teacher's answer.
    pub refused: BTreeMap<RefusalCode, u64>,
    /// Labels that a filter applies to, whether it is on or off; one label may have several.
    pub marked: BTreeMap<LabelMark, u64>,
    /// Labels that the filters which are on hold back, `verified` included.
    pub held_back: u64,
    /// Labels that were executed and continued by the teacher, and of them those that passed.
    pub verified: (u64, u64),
    /// Tokens of the teacher's questions and answers.
    pub tokens: u64,
    /// US dollars; absent where the teacher has no price.
    pub cost_usd: Option<f64>,
    /// Tokens over accepted labels.
    pub tokens_per_accepted: Option<f64>,
    /// US dollars over accepted labels.
    pub cost_per_accepted_usd: Option<f64>,
}

/// How far the student's actions lie from the teacher's, at states where the student acted.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shift {
    /// The share of labelled states at which it did something else.
    pub disagreement: Option<Rate>,
    /// Reverse KL divergence on the student's tokens, in nats a token, where both gave log-probabilities of the
    /// same tokens.
    pub reverse_kl: Option<f64>,
    /// The tokens that it is the mean over.
    pub tokens: u64,
    /// Turns of the student that are not among them although they were to be, by the reason.
    pub unscored: BTreeMap<Unscored, u64>,
}

impl Shift {
    /// Why there is no divergence, for a person; `None` where there is one.
    pub fn unavailable(&self) -> Option<String> {
        if self.reverse_kl.is_some() {
            return None;
        }
        let said = |(reason, turns): (&Unscored, &u64)| {
            let turns = if *turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
            format!("{} ({turns})", reason.reason())
        };
        let mut reasons = self.unscored.iter().map(said);
        let first = reasons.next().unwrap_or_else(|| "it was not asked for".to_owned());
        Some(reasons.fold(first, |all, reason| format!("{all}; {reason}")))
    }
}

/// Reads what stored runs came to.
///
/// # Errors
/// Those of the project.
pub fn report(store: &Store, runs: &[TrajectoryId], accepting: &LabelSettings) -> Result<Report, StoreError> {
    let mut gathering = Gathering::default();
    for id in runs {
        let run = store.load(*id)?;
        let labels = labels_of(store, *id)?;
        gathering.add(&run, labels.iter().map(|(_, label)| label), accepting);
    }
    Ok(gathering.finish())
}

/// What teachers would do in the states that a run has visited: in the order of the run, the latest word of each
/// teacher and round.
///
/// # Errors
/// Those of the project.
pub fn labels_of(store: &Store, run: TrajectoryId) -> Result<Vec<(VerdictId, StateLabel)>, StoreError> {
    let mut labels = BTreeMap::new();
    for verdict in store.of_run(run, "state_label")? {
        if let Content::StateLabel(label) = verdict.content {
            labels.entry((label.state, label.round, label.teacher.clone())).or_insert((verdict.id, label));
        }
    }
    Ok(labels.into_values().collect())
}

/// A report while runs are looked at, one after the other.
#[derive(Default)]
pub struct Gathering(BTreeMap<u32, Gathered>);

impl Gathering {
    /// Counts a run with its labels; one that nobody shared counts nowhere.
    pub fn add<'l>(
        &mut self,
        run: &Trajectory,
        labels: impl IntoIterator<Item = &'l StateLabel>,
        accepting: &LabelSettings,
    ) {
        let Some(shared) = Interleaving::of(run) else { return };
        let gathered = self.0.entry(shared.round).or_default();
        gathered.run(run, &shared);
        labels.into_iter().for_each(|label| gathered.label(run, label, accepting));
    }

    /// What was counted.
    pub fn finish(self) -> Report {
        Report { rounds: self.0.into_iter().map(|(round, gathered)| gathered.report(round)).collect() }
    }
}

/// Observations with the tasks that they are of.
#[derive(Default)]
struct Observed(Vec<(String, bool)>);

impl Observed {
    fn rate(&self) -> Option<Rate> {
        let values = self.0.iter().map(|(task, yes)| (task.as_str(), f64::from(u8::from(*yes))));
        let clusters = Clusters::new(values).ok()?;
        Some(Rate {
            passed: self.0.iter().filter(|(_, yes)| *yes).count() as u64,
            n: self.0.len() as u64,
            tasks: clusters.len() as u64,
            rate: clusters.mean(),
            interval: Resampling::new(0).intervals(&clusters).ok().map(|intervals| intervals.bca),
        })
    }
}

#[derive(Default)]
struct Gathered {
    report: RoundReport,
    arms: BTreeMap<Option<Actor>, (Observed, BTreeMap<String, u64>)>,
    turns: [u64; 2],
    disagreed: Observed,
    shift: (f64, u64),
    unpriced: bool,
    cost: f64,
}

impl Gathered {
    fn run(&mut self, run: &Trajectory, shared: &Interleaving) {
        self.report.runs += 1;
        *self.report.outcomes.entry(shared.outcome).or_default() += 1;
        self.report.readings.add(shared.readings);
        let (observed, ends) = self.arms.entry(shared.alone).or_default();
        let outcome = run.outcome();
        if outcome.status != Status::Unknown {
            observed.0.push((run.task.key.0.clone(), outcome.status == Status::Success));
        }
        let end = outcome.termination.as_ref().map_or("unknown", |end| end.native.as_str());
        *ends.entry(end.to_owned()).or_default() += 1;
        if shared.alone.is_none() {
            self.turns[0] += shared.student_turns;
            self.turns[1] += shared.teacher_turns;
            self.report.mixing = self.report.mixing.or(shared.mixing);
        }
    }

    fn label(&mut self, run: &Trajectory, label: &StateLabel, accepting: &LabelSettings) {
        let counts = &mut self.report.labels;
        counts.states += 1;
        let is_accepted = accepting.accepts(run, label);
        counts.accepted += u64::from(is_accepted);
        counts.held_back += u64::from(!is_accepted && label.action.is_some());
        if let Some(refused) = &label.refused {
            *counts.refused.entry(refused.code).or_default() += 1;
        }
        for mark in marks(run, label) {
            *counts.marked.entry(mark).or_default() += 1;
        }
        if let Some(passed) = label.verified {
            counts.verified.0 += 1;
            counts.verified.1 += u64::from(passed);
        }
        let tokens = label.cost.prompt_tokens + label.cost.completion_tokens;
        counts.tokens += tokens;
        self.cost += label.cost.usd.unwrap_or_default();
        self.unpriced |= tokens > 0 && label.cost.usd.is_none();
        if label.actor == Actor::Student {
            self.disagreed.0.extend(label.agrees.map(|agrees| (run.task.key.0.clone(), !agrees)));
            if let Some(shift) = label.shift {
                self.shift.0 += shift.sum;
                self.shift.1 += shift.tokens;
            }
            if let Some(reason) = label.unscored {
                *self.report.shift.unscored.entry(reason).or_default() += 1;
            }
        }
    }

    fn report(mut self, round: u32) -> RoundReport {
        let mut arm = |alone: Option<Actor>| {
            let (observed, end_modes) = self.arms.remove(&alone)?;
            // Runs that an error ended are not scored.
            let none = Rate { passed: 0, n: 0, tasks: 0, rate: 0.0, interval: None };
            Some(Arm { success: observed.rate().unwrap_or(none), end_modes })
        };
        let (student, teacher, mixture) = (arm(Some(Actor::Student)), arm(Some(Actor::Teacher)), arm(None));
        let turns = self.turns[0] + self.turns[1];
        let mut labels = self.report.labels;
        labels.cost_usd = (!self.unpriced).then_some(self.cost);
        if labels.accepted > 0 {
            let accepted = labels.accepted as f64;
            labels.tokens_per_accepted = Some(labels.tokens as f64 / accepted);
            labels.cost_per_accepted_usd = labels.cost_usd.map(|cost| cost / accepted);
        }
        RoundReport {
            round,
            student,
            teacher,
            mixture,
            delivered_teacher_fraction: (turns > 0).then(|| self.turns[1] as f64 / turns as f64),
            labels,
            shift: Shift {
                disagreement: self.disagreed.rate(),
                reverse_kl: (self.shift.1 > 0).then(|| self.shift.0 / self.shift.1 as f64),
                tokens: self.shift.1,
                unscored: self.report.shift.unscored,
            },
            ..self.report
        }
    }
}
