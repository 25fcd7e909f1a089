//! What an episode may spend: turns, tokens and time, those of the prefix it is continued from included.
//!
//! A run's record says its limits (as its budget) and what its turns took in tokens, so that a continuation has
//! what was left. Time is not on record, for no id depends on a clock: a continuation has the whole of it.

use serde::Serialize;

use crate::environments::TaskSpec;
use crate::trajectory::Budget;

/// What an episode may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct EpisodeLimits {
    /// Most turns; those of the task where absent.
    pub turns: Option<u64>,
    /// Most tokens, of prompts and answers; the turn that passes them is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Most milliseconds spent choosing, as the policy's client measures them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds: Option<u64>,
}

impl EpisodeLimits {
    /// The limits that a record says a run of a task had.
    pub fn of(budget: Option<&Budget>, task: &TaskSpec) -> Self {
        let Some(budget) = budget else { return Self::default() };
        Self {
            turns: budget.steps.filter(|turns| *turns != task.max_steps),
            tokens: budget.tokens,
            milliseconds: budget.seconds.map(|seconds| (seconds * 1000.0).round() as u64),
        }
    }

    /// Most turns of a run of a task.
    pub fn turns_of(&self, task: &TaskSpec) -> u64 {
        self.turns.unwrap_or(task.max_steps)
    }

    /// The limits as a record says them.
    pub(super) fn budget(&self, task: &TaskSpec) -> Budget {
        Budget {
            steps: Some(self.turns_of(task)),
            tokens: self.tokens,
            seconds: self.milliseconds.map(|milliseconds| milliseconds as f64 / 1000.0),
        }
    }
}
