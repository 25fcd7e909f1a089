//! Verdicts: what a person or a program decides about a run, stored beside it and never inside.
//!
//! Each verdict names who gave it and what it rests on. Its id is a hash without the time, so giving
//! the same verdict twice changes nothing. Several verdicts of one kind may stand on one subject; the
//! current one is that of the highest [`Producer::rank`], then version, never simply the newest.

mod blame;
mod diagnosis;
mod failure_class;
mod judged;
mod label;
mod relabelled;
mod replayed;
mod review;
mod split;
mod state_label;

use serde::{Deserialize, Serialize};

pub use self::blame::{Blame, Party};
pub use self::diagnosis::{Candidate, Diagnosis, Finding, Quote};
pub use self::failure_class::{Class, FailureClass};
pub use self::judged::{Attempt, Judging, Member, PersonReview, RejectedAnswer};
pub use self::label::{Label, ReferenceLabel};
pub use self::relabelled::{Acceptance, Evidence, FinalAnswer, GoalClaim, GoalRefusal, Relabel};
pub use self::replayed::{
    Arm, ArmOutcome, Claim, ContinuationOutcome, DecisiveStep, Divergence, Flip, Recoverable, Repair,
    ReplayPair, Rung, Sweep, Unsupported,
};
pub use self::review::{Decision, Review};
pub use self::split::{Side, Split};
pub use self::state_label::{
    Actor, CallAst, LabelCost, LabelMark, LabelRefusal, NoTurn, RefusalCode, StateLabel, TokenShift, TurnAst,
    Unscored,
};
use crate::id::{Hash, TrajectoryId, VerdictId};
use crate::json::Json;
use crate::trajectory::Citation;

/// One decision about one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Verdict {
    /// Hash of subject, producer, evidence and content.
    pub id: VerdictId,
    /// The run.
    pub subject: TrajectoryId,
    /// Who decided.
    pub producer: Producer,
    /// Between 0 and 1, where the producer gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What it rests on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Citation>,
    /// What was decided.
    pub content: Content,
    /// When, in RFC 3339; the caller's clock, not part of the id.
    pub created_at: String,
}

/// Who gave a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Producer {
    /// Rule set, judge or person (`rules`, `label`, `import`).
    pub name: String,
    /// Version of it.
    pub version: u32,
    /// How far it is trusted beside others: a person 100, a re-execution 80, a judge 60, rules 40,
    /// an assumption 20.
    pub rank: u8,
    /// Hash of the prompt, for a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_hash: Option<String>,
    /// Model, for a judge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

impl Producer {
    /// A set of deterministic rules.
    pub fn rules(name: &str, version: u32) -> Self {
        Self { name: name.to_owned(), version, rank: 40, prompt_hash: None, model: None }
    }

    /// A re-execution.
    pub fn replay(version: u32) -> Self {
        Self { rank: 80, ..Self::rules("replay", version) }
    }

    /// A person, through `recoup label`.
    pub fn person() -> Self {
        Self { rank: 100, ..Self::rules("label", 1) }
    }

    /// A file of outcomes.
    pub fn outcomes_file() -> Self {
        Self { rank: 90, ..Self::rules("outcomes-file", 1) }
    }

    /// The assumption that runs without an outcome failed.
    pub fn assumption() -> Self {
        Self { rank: 20, ..Self::rules("assume", 1) }
    }

    /// A model that judges; the prompt by its hash, the model as `provider:name`.
    pub fn judge(version: u32, prompt_hash: &str, model: &str) -> Self {
        let (prompt_hash, model) = (Some(prompt_hash.to_owned()), Some(model.to_owned()));
        Self { rank: 60, prompt_hash, model, ..Self::rules("judge", version) }
    }

    /// A teacher that labels visited states; the model or policy by its name.
    pub fn teacher(version: u32, name: &str) -> Self {
        Self { rank: 60, model: Some(name.to_owned()), ..Self::rules("teacher", version) }
    }

    /// The same producer where its word is not admitted: it stands behind the rules, and no higher than it stood.
    #[must_use]
    pub fn unadmitted(self) -> Self {
        Self { rank: self.rank.min(30), ..self }
    }
}

/// The kinds of verdict, written as `{"diagnosis": {…}}`: raw JSON inside does not survive serde's
/// buffering of tagged forms.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// Whose failure it was.
    Blame(Blame),
    /// What kind of failure it was.
    FailureClass(FailureClass),
    /// Where it went wrong and why.
    Diagnosis(Diagnosis),
    /// What the detectors saw on a run without a diagnosis: a success, or someone else's failure.
    Findings(Vec<Finding>),
    /// A gate's word on another verdict.
    Review(Review),
    /// The side of the split.
    Split(Split),
    /// A label that came with the source.
    ReferenceLabel(ReferenceLabel),
    /// What a person or an outcome file attached.
    Label(Label),
    /// The arms of a checkpoint, re-executed.
    ReplayPair(ReplayPair),
    /// A candidate that passed.
    Repair(Repair),
    /// Where the run could still be saved.
    Sweep(Sweep),
    /// How far a diagnosis is proved.
    Claim(Claim),
    /// An answer of a judge that was not admitted.
    RejectedAnswer(RejectedAnswer),
    /// What a panel of judges made of the run.
    Judging(Judging),
    /// What a person says who saw the run and nothing else.
    PersonReview(PersonReview),
    /// A goal in hindsight, accepted or refused.
    Relabel(Relabel),
    /// What a teacher would do in a state that was visited.
    StateLabel(StateLabel),
}

impl Content {
    /// The kind's word in records.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Blame(_) => "blame",
            Self::FailureClass(_) => "failure_class",
            Self::Diagnosis(_) => "diagnosis",
            Self::Findings(_) => "findings",
            Self::Review(_) => "review",
            Self::Split(_) => "split",
            Self::ReferenceLabel(_) => "reference_label",
            Self::Label(_) => "label",
            Self::ReplayPair(_) => "replay_pair",
            Self::Repair(_) => "repair",
            Self::Sweep(_) => "sweep",
            Self::Claim(_) => "claim",
            Self::RejectedAnswer(_) => "rejected_answer",
            Self::Judging(_) => "judging",
            Self::PersonReview(_) => "person_review",
            Self::Relabel(_) => "relabel",
            Self::StateLabel(_) => "state_label",
        }
    }
}

impl Verdict {
    /// A verdict with its id.
    pub fn new(
        subject: TrajectoryId,
        producer: Producer,
        evidence: Vec<Citation>,
        content: Content,
        created_at: &str,
    ) -> Self {
        let named = Json::from_serialize(&(&producer, &evidence, &content))
            .unwrap_or_else(|_| Json::string(&format!("{content:?}")));
        let id = VerdictId(Hash::of_all(&[&subject.0.0, named.as_str().as_bytes()]));
        Self { id, subject, producer, confidence: None, evidence, content, created_at: created_at.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::Producer;

    #[test]
    fn a_word_that_is_not_admitted_stands_behind_the_rules_and_no_higher_than_it_stood() {
        let (rules, judge) = (Producer::rules("rules", 1), Producer::judge(1, "prompt", "openai:m"));
        assert!(judge.rank > rules.rank && judge.clone().unadmitted().rank < rules.rank);
        let last = Producer { rank: 10, ..judge };
        assert_eq!(last.clone().unadmitted().rank, last.rank);
    }
}
