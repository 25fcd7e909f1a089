//! What the record of a shared run says of the sharing: it stands in the run's `extra`, as `interleaved`.

use serde::{Deserialize, Serialize};

use super::{Delivered, Mixing, RequestOutcome};
use crate::json::Json;
use crate::trajectory::Trajectory;
use crate::verdict::Actor;

/// The key in a run's `extra`.
const KEY: &str = "interleaved";

/// How a run was shared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Interleaving {
    /// Round of collection, from 1.
    pub round: u32,
    /// The student's name.
    pub student: String,
    /// The teacher's name; absent where none was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub teacher: Option<String>,
    /// How turns were shared; absent where one acted alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mixing: Option<Mixing>,
    /// Who was to act alone, without labels: for comparison, or because the task is held out of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Actor>,
    /// What became of the request.
    pub outcome: RequestOutcome,
    /// Turns that the student took.
    pub student_turns: u64,
    /// Turns that the teacher took.
    pub teacher_turns: u64,
    /// Verdicts on visited states that belong to the run.
    pub labels: u64,
    /// How the student's turns could be read.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub readings: Readings,
}

/// By which rules a turn could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// By the form's own.
    Strict,
    /// By lenient ones only.
    Lenient,
    /// By none.
    Unreadable,
}

/// How the answers of a model could be read as turns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Readings {
    /// By the form's own rules.
    pub strict: u64,
    /// Only by lenient ones.
    pub lenient: u64,
    /// Not at all.
    pub unreadable: u64,
}

impl Readings {
    /// Whether nothing was read.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Counts a turn that a model wrote.
    pub fn count(&mut self, reading: Option<Reading>) {
        match reading {
            Some(Reading::Strict) => self.strict += 1,
            Some(Reading::Lenient) => self.lenient += 1,
            Some(Reading::Unreadable) => self.unreadable += 1,
            None => {}
        }
    }

    /// Adds what was counted elsewhere.
    pub fn add(&mut self, other: Self) {
        self.strict += other.strict;
        self.lenient += other.lenient;
        self.unreadable += other.unreadable;
    }
}

impl Interleaving {
    /// What a run says; `None` where nobody shared it.
    pub fn of(run: &Trajectory) -> Option<Self> {
        serde_json::from_str(run.extra.get(KEY)?.as_str()).ok()
    }

    /// Writes it on a run that is not sealed yet.
    pub fn write(&self, run: &mut Trajectory) {
        // Text, numbers and words: there is always a canonical form.
        if let Ok(json) = Json::from_serialize(self) {
            run.extra.insert(KEY.to_owned(), json);
        }
    }

    /// Takes over what was delivered.
    #[must_use]
    pub fn delivered(self, delivered: &Delivered) -> Self {
        Self {
            outcome: delivered.outcome(),
            student_turns: delivered.student_turns,
            teacher_turns: delivered.teacher_turns,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Interleaving, Readings};
    use crate::interleaving::{Delivered, Mixing, RequestOutcome};
    use crate::task::Task;
    use crate::trajectory::Trajectory;

    #[test]
    fn a_record_reads_back() {
        let mut run = Trajectory::new("test", Task::from_goal("q"));
        assert_eq!(Interleaving::of(&run), None);
        let shared = Interleaving {
            round: 2,
            student: "s".to_owned(),
            teacher: Some("t".to_owned()),
            mixing: Some(Mixing::Turns { beta: 0.8 }),
            alone: None,
            outcome: RequestOutcome::Aborted,
            student_turns: 0,
            teacher_turns: 0,
            labels: 4,
            readings: Readings { strict: 3, lenient: 1, unreadable: 0 },
        }
        .delivered(&Delivered { student_turns: 4, ..Delivered::default() });
        shared.write(&mut run);
        assert_eq!(Interleaving::of(&run), Some(shared));
    }
}
