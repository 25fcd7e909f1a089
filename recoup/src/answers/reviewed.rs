//! What people see of a run and say of it: `show` and `review`.

use serde::Serialize;

use crate::judges::quality::Quality;
use crate::trajectory::Trajectory;
use crate::verdict::{Decision, PersonReview, Verdict};

/// A run with what was decided about it (`show`).
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Shown {
    /// The run, with an outcome that was attached to it later in place.
    pub trajectory: Trajectory,
    /// The verdicts in force.
    pub verdicts: Vec<Verdict>,
}

/// A run shown without outcome and verdicts (`review`); one a line, without a head.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blind<'a> {
    /// Trajectory id in full.
    pub run: String,
    /// Its messages, for a person.
    pub text: &'a str,
}

/// What people said of runs (`review`).
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Reviewed {
    /// Runs shown.
    pub shown: u64,
    /// Answers kept.
    pub recorded: u64,
    /// Of them, those that say that nothing went wrong.
    pub admitted: u64,
    /// Those that say that the run failed.
    pub rejected: u64,
    /// Those that say that it cannot be told.
    pub abstained: u64,
    /// Those that name a step.
    pub with_step: u64,
    /// How far the project's judges can be believed, on all that people have said.
    pub quality: Option<Quality>,
}

impl Reviewed {
    /// Counts an answer.
    pub fn count(&mut self, review: &PersonReview) {
        self.recorded += 1;
        self.with_step += u64::from(review.node.is_some());
        match review.verdict {
            Decision::Admit => self.admitted += 1,
            Decision::Reject => self.rejected += 1,
            Decision::Abstain => self.abstained += 1,
        }
    }
}
