//! The lineage of an example: the run it shows, what it rests on, and who let it through.

use serde::{Deserialize, Serialize};

use crate::id::{TaskKey, TrajectoryId, VerdictId};
use crate::trajectory::Trajectory;
use crate::verdict::Side;

/// Where an example comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// The view that built it.
    pub view: String,
    /// The run whose nodes its messages are: a replay's continuation, where it learns from one.
    pub trajectory: TrajectoryId,
    /// The run that this one continues. Its side is the side of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<TrajectoryId>,
    /// The run's task.
    pub task: TaskKey,
    /// The source's licence.
    pub licence: String,
    /// The side of the split.
    pub side: Side,
    /// What says that it is right.
    pub evidence: Evidence,
    /// The verdicts that say so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub verdicts: Vec<VerdictId>,
    /// The gates that admitted it (`S4`), in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<String>,
    /// The round of collection that it is of, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<u32>,
}

/// What says that an example is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The run's own outcome.
    Outcome,
    /// A diagnosis that every gate admitted.
    Diagnosis,
    /// A re-execution.
    Replay,
    /// Another run of the task that went the other way from the very same state.
    Sibling,
    /// A goal that the run achieved in hindsight.
    Hindsight,
    /// Attempts of one search that went different ways from the very same state.
    Tree,
    /// A teacher that was asked in that very state.
    Teacher,
}

impl Evidence {
    /// The evidence's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outcome => "outcome",
            Self::Diagnosis => "diagnosis",
            Self::Replay => "replay",
            Self::Sibling => "sibling",
            Self::Hindsight => "hindsight",
            Self::Tree => "tree",
            Self::Teacher => "teacher",
        }
    }
}

impl Lineage {
    /// Of a run on a side, by its own outcome.
    pub fn new(view: &str, run: &Trajectory, side: Side) -> Self {
        Self {
            view: view.to_owned(),
            trajectory: run.id,
            origin: run.origin.as_ref().map(|origin| origin.trajectory),
            task: run.task.key.clone(),
            licence: run.licence.clone(),
            side,
            evidence: Evidence::Outcome,
            verdicts: Vec::new(),
            gates: Vec::new(),
            round: None,
        }
    }
}
