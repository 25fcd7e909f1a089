//! Accepting: which labels are learned from. A project's settings say so, by the names of filters.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::trajectory::{Status, Trajectory};
use crate::verdict::{LabelMark, StateLabel, TurnAst};

/// What a project chooses about labels of visited states.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct LabelSettings {
    /// Filters that hold back no label; all others do.
    pub off: Vec<LabelMark>,
    /// Whether a label must have passed when it was executed and continued by the teacher.
    pub verified: bool,
    /// Whether a teacher's reasoning is learned too.
    pub teacher_reasoning: bool,
    /// Which rounds count.
    pub aggregate: Aggregate,
}

/// Which rounds of collection count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Aggregate {
    /// Every round: what DAgger learns from.
    #[default]
    All,
    /// The latest one in the project.
    Latest,
}

impl LabelSettings {
    /// The name of the filter that is no mark: a label must have been executed and passed.
    pub const VERIFIED: &'static str = "verified";

    /// Whether nothing was chosen.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a label of a run is learned from.
    pub fn accepts(&self, run: &Trajectory, label: &StateLabel) -> bool {
        label.action.is_some()
            && marks(run, label).iter().all(|mark| self.off.contains(mark))
            && (!self.verified || label.verified == Some(true))
    }
}

/// The filters that apply to a label: those that were known when it was made, and what the run's outcome says, which may
/// have come later. Where the teacher agrees to the words that end a failed run, its end is no solution.
pub fn marks(run: &Trajectory, label: &StateLabel) -> BTreeSet<LabelMark> {
    let mut marks: BTreeSet<LabelMark> = label.marks.iter().copied().collect();
    let ends = label.action.as_ref().is_some_and(TurnAst::is_answer) && label.agrees == Some(true);
    let last = run.leaves.get(run.main_leaf).and_then(|leaf| leaf.node);
    if ends && label.executed.is_some() && label.executed == last && run.outcome().status == Status::Failure {
        marks.insert(LabelMark::UnsolvedFinish);
    }
    marks
}
