//! What became of a request: each has exactly one outcome, so that their counts sum to the requests.

use serde::{Deserialize, Serialize};

use crate::verdict::Actor;

/// The one outcome of a request: a run asked for, or a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RequestOutcome {
    /// Both acted.
    Mixed,
    /// Only the student acted.
    PureStudent,
    /// Only the teacher acted.
    PureTeacher,
    /// A limit on turns, tokens or time ended it.
    Capped,
    /// It ended by itself, and the teacher's answer is missing somewhere.
    Degraded,
    /// An error ended it, or nothing was done.
    Aborted,
}

impl RequestOutcome {
    /// Every outcome, in the order of reports.
    pub const ALL: [Self; 6] =
        [Self::Mixed, Self::PureStudent, Self::PureTeacher, Self::Capped, Self::Degraded, Self::Aborted];

    /// The outcome's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::PureStudent => "pure_student",
            Self::PureTeacher => "pure_teacher",
            Self::Capped => "capped",
            Self::Degraded => "degraded",
            Self::Aborted => "aborted",
        }
    }
}

/// What was delivered in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivered {
    /// Turns that the student took.
    pub student_turns: u64,
    /// Turns that the teacher took.
    pub teacher_turns: u64,
    /// States whose label the teacher failed to give.
    pub missing: u64,
    /// Whether a limit ended it.
    pub is_capped: bool,
    /// Whether an error ended it.
    pub is_aborted: bool,
}

impl Delivered {
    /// Counts a turn that was taken.
    pub fn took(&mut self, actor: Actor) {
        match actor {
            Actor::Student => self.student_turns += 1,
            Actor::Teacher => self.teacher_turns += 1,
        }
    }

    /// The one outcome: what went wrong first, then who acted.
    pub fn outcome(&self) -> RequestOutcome {
        match (self.student_turns, self.teacher_turns) {
            _ if self.is_aborted => RequestOutcome::Aborted,
            (0, 0) if self.is_capped => RequestOutcome::Capped,
            (0, 0) => RequestOutcome::Aborted,
            _ if self.missing > 0 => RequestOutcome::Degraded,
            _ if self.is_capped => RequestOutcome::Capped,
            (_, 0) => RequestOutcome::PureStudent,
            (0, _) => RequestOutcome::PureTeacher,
            _ => RequestOutcome::Mixed,
        }
    }

    /// The share of turns that the teacher took: what was delivered, not what a schedule says.
    pub fn teacher_fraction(&self) -> Option<f64> {
        let turns = self.student_turns + self.teacher_turns;
        (turns > 0).then(|| self.teacher_turns as f64 / turns as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::{Delivered, RequestOutcome};

    #[test]
    fn what_went_wrong_goes_before_who_acted() {
        let both = Delivered { student_turns: 1, teacher_turns: 3, ..Delivered::default() };
        assert_eq!(both.outcome(), RequestOutcome::Mixed);
        assert_eq!(both.teacher_fraction(), Some(0.75));
        assert_eq!(Delivered { teacher_turns: 0, ..both }.outcome(), RequestOutcome::PureStudent);
        assert_eq!(Delivered { student_turns: 0, ..both }.outcome(), RequestOutcome::PureTeacher);
        assert_eq!(Delivered { is_capped: true, ..both }.outcome(), RequestOutcome::Capped);
        assert_eq!(Delivered { missing: 1, is_capped: true, ..both }.outcome(), RequestOutcome::Degraded);
        assert_eq!(Delivered { is_aborted: true, missing: 1, ..both }.outcome(), RequestOutcome::Aborted);
        assert_eq!(Delivered::default().outcome(), RequestOutcome::Aborted);
        let nothing = Delivered { is_capped: true, ..Delivered::default() };
        assert_eq!(nothing.outcome(), RequestOutcome::Capped);
    }
}
