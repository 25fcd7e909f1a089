//! Verdicts: what a person or a program decides about a run, stored beside it and never inside.
//!
//! Each verdict names who gave it and what it rests on. Its id is a hash without the time, so giving
//! the same verdict twice changes nothing. Several verdicts of one kind may stand on one subject; the
//! current one is that of the highest [`Producer::rank`], then version, never simply the newest.

mod judged;
mod relabelled;
mod replayed;
mod state_label;

use serde::{Deserialize, Serialize};

pub use self::judged::{Attempt, Judging, Member, PersonReview, RejectedAnswer};
pub use self::relabelled::{Acceptance, Evidence, FinalAnswer, GoalClaim, GoalRefusal, Relabel};
pub use self::replayed::{
    Arm, ArmOutcome, Claim, ContinuationOutcome, DecisiveStep, Divergence, Flip, Recoverable, Repair,
    ReplayPair, Rung, Sweep, Unsupported,
};
pub use self::state_label::{
    Actor, CallAst, LabelCost, LabelMark, LabelRefusal, NoTurn, RefusalCode, StateLabel, TokenShift, TurnAst,
    Unscored,
};
use crate::id::{Hash, TrajectoryId, VerdictId};
use crate::json::Json;
use crate::trajectory::{Citation, Status};

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

/// Who failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The policy itself; only such failures teach.
    Agent,
    /// Provider, network, container, harness.
    Infrastructure,
    /// The simulated user.
    UserSimulator,
    /// The scorer.
    Verifier,
    /// The environment contradicted its own contract.
    Environment,
    /// The task is unsolvable or its gold answer wrong.
    Task,
    /// Nobody can say.
    Unknown,
}

impl Party {
    /// Every party, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Agent,
        Self::Infrastructure,
        Self::UserSimulator,
        Self::Verifier,
        Self::Environment,
        Self::Task,
        Self::Unknown,
    ];

    /// The party's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Infrastructure => "infrastructure",
            Self::UserSimulator => "user_simulator",
            Self::Verifier => "verifier",
            Self::Environment => "environment",
            Self::Task => "task",
            Self::Unknown => "unknown",
        }
    }
}

/// Whose failure it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Blame {
    /// Who failed.
    pub party: Party,
    /// The rule that said so.
    pub rule: String,
    /// In words, for a person.
    pub reason: String,
    /// True where the run's outcome is unknown: the failure is suspected, not scored.
    pub suspected: bool,
}

/// Classes of failure (`AgentHER` stage 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The goal was left open.
    Incomplete,
    /// A rule of the task or of a tool was broken.
    ConstraintViolation,
    /// Finished, with a wrong result.
    WrongResult,
    /// Failing tool calls decided it.
    ToolError,
    /// It states or uses what no observation holds.
    Hallucination,
    /// It worked on something else.
    OffTopic,
}

impl Class {
    /// Every class, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Incomplete,
        Self::ConstraintViolation,
        Self::WrongResult,
        Self::ToolError,
        Self::Hallucination,
        Self::OffTopic,
    ];

    /// The class's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Incomplete => "incomplete",
            Self::ConstraintViolation => "constraint_violation",
            Self::WrongResult => "wrong_result",
            Self::ToolError => "tool_error",
            Self::Hallucination => "hallucination",
            Self::OffTopic => "off_topic",
        }
    }
}

/// What kind of failure it was.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailureClass {
    /// The class.
    pub class: Class,
    /// A finer mode within it (`step_limit`, `context_overflow`, `repetitive_loop`), where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Whether the run could still have been saved after its decisive step.
    pub recoverable: bool,
    /// 0 mild … 1 catastrophic.
    pub severity: f64,
    /// `1 − severity` for severity ≤ 0.7, else 0: the worst failures teach least.
    pub loss_weight: f64,
}

/// Where a run went wrong and why.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Diagnosis {
    /// Position of the decisive node in the trajectory.
    pub decisive_node: usize,
    /// Its author.
    pub responsible_agent: String,
    /// Free text.
    pub explanation: String,
    /// The exact bytes it rests on.
    pub citations: Vec<Quote>,
    /// What should have been done instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Candidate>,
    /// 0 for the best of several on one run.
    pub rank: u32,
    /// All that was found on the way, in order of node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// True where every required gate admitted it.
    pub admitted: bool,
    /// True where the outcome is unknown.
    pub suspected: bool,
}

/// A citation with its text, so that a reader need not look it up and a gate can compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Quote {
    /// Where.
    pub at: Citation,
    /// The bytes that must stand there.
    pub quote: String,
}

/// What one detector saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Finding {
    /// Detector's name (`unknown-tool`).
    pub detector: String,
    /// Position of the node at fault.
    pub node: usize,
    /// What is wrong, for a person.
    pub message: String,
    /// How sure the detector is, between 0 and 1.
    pub strength: f64,
    /// The capability whose lack it shows (`tool_grounding`).
    pub capability: String,
    /// The exact bytes.
    pub citations: Vec<Citation>,
    /// Position of the node that made up for it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<usize>,
}

/// A proposed repair, not yet proved by any re-execution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Candidate {
    /// The action in the tool schema or the environment's grammar.
    pub action: Json,
    /// Why.
    pub rationale: String,
}

/// A gate's word on a verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Review {
    /// The verdict reviewed.
    pub of: VerdictId,
    /// Gate (`S4`).
    pub gate: String,
    /// The decision.
    pub verdict: Decision,
    /// Why.
    pub reason: String,
}

/// A gate's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// It holds.
    Admit,
    /// It does not.
    Reject,
    /// The gate cannot say.
    Abstain,
}

/// Sides of the split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// For training.
    Train,
    /// For choosing.
    Validation,
    /// For the final figure.
    Test,
    /// In no set: the run would join two sides.
    Excluded,
}

impl Side {
    /// Every side, in the order of reports.
    pub const ALL: [Self; 4] = [Self::Train, Self::Validation, Self::Test, Self::Excluded];

    /// The side that a word in records means.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|side| side.as_str() == word)
    }

    /// The side's word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Excluded => "excluded",
        }
    }
}

/// The side a run is on, decided at import and sticky.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Split {
    /// The side.
    pub side: Side,
    /// Smallest task key of the component that it follows.
    pub component: String,
}

/// A label that came with a source (a benchmark's answer); judges never see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReferenceLabel {
    /// Benchmark or label set (`who-and-when`).
    pub source: String,
    /// Number of the first message in the label's own counting: 0 or 1.
    pub index_base: u8,
    /// The label, as the source writes it.
    pub native: Json,
    /// Position of the node it means, where it can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<usize>,
    /// Agent it blames.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Its reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a person or an outcome file attached to a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Label {
    /// Outcome that replaces the source's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Status>,
    /// Score beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Task key that replaces the source's or a derived one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// Environment, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub environment: Option<String>,
    /// What brings that environment to the run's first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Json>,
    /// Free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
