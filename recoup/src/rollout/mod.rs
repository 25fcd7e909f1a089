//! Rollout: a policy acts in an environment and leaves a trajectory.
//!
//! A [`Policy`] keeps nothing between turns: what it does follows from the seed, the transcript so far and
//! what the scene tells. So a run can be continued from any checkpoint, by another thread or another
//! day, and two arms that share a seed share their luck until they differ.
//!
//! [`policies`] are the built-in ones, [`run`] plays an episode, [`record`] makes a trajectory of it, and
//! [`collect`] does so for many tasks and stores them.

mod attempt;
mod collect;
mod conversation;
mod episode;
pub mod forms;
pub mod interleave;
mod limits;
mod plan;
pub mod policies;
mod record;
mod runner;

pub use self::collect::{CollectError, Collected, Pending, collect, pending};
pub(crate) use self::conversation::GAP;
pub use self::conversation::function;
pub(crate) use self::conversation::unread;
pub use self::episode::{End, Episode, Prefix, Taken};
pub use self::limits::EpisodeLimits;
pub use self::plan::{Assignment, Difficulties, Plan, PlanError};
pub use self::record::{FORMAT, Recording, record};
pub(crate) use self::record::{is_unread, says_beside_calls};
pub(crate) use self::runner::TOO_LATE;
pub use self::runner::{Conditions, Keep, run};

use crate::environments::{Action, EnvironmentError, Exchange, Scene, ToolSpec, rand};
use crate::interleaving::Reading;
use crate::models::{ChatMessage, Cost, ModelError, TokenLogprob};

/// Chooses actions.
pub trait Policy: Send + Sync {
    /// The policy with its parameters, as it is written on the command line (`weak:premature-stop@0.3`).
    fn name(&self) -> &str;

    /// The next turn.
    ///
    /// # Errors
    /// A [`PolicyError`]; the episode is then recorded with an error, not as a failure.
    fn act(&self, situation: &Situation<'_>, scene: &mut dyn Scene) -> Result<Turn, PolicyError>;

    /// How likely the policy finds the tokens of a turn that another one wrote in a situation: those of the turn, or of
    /// the whole conversation with the turn at its end. `None` where it cannot say.
    ///
    /// # Errors
    /// As [`Policy::act`].
    fn score(
        &self,
        _situation: &Situation<'_>,
        _written: &SampledTurn,
    ) -> Result<Option<Vec<TokenLogprob>>, PolicyError> {
        Ok(None)
    }

    /// Whether it never draws: whatever the seed, it does the same in the same situation. One
    /// continuation then says all.
    fn is_deterministic(&self) -> bool {
        false
    }

    /// How it takes advice.
    fn advice(&self) -> TakesAdvice {
        TakesAdvice::Never
    }
}

/// What a policy knows when it chooses.
#[derive(Clone, Copy, Debug)]
pub struct Situation<'a> {
    /// What it was asked to do.
    pub goal: &'a str,
    /// The written policy that it must follow, where there is one.
    pub rules: Option<&'a str>,
    /// The tools it may call.
    pub tools: &'a [ToolSpec],
    /// What the start has shown.
    pub first_observation: &'a str,
    /// What was done and seen since.
    pub transcript: &'a [Exchange],
    /// The turns in which it was.
    pub turns: &'a [Taken],
    /// Turns taken so far.
    pub turn: u64,
    /// Turns left, this one included.
    pub turns_left: u64,
    /// Seed of the episode: all chance is [`Situation::draw`]n from it.
    pub seed: u64,
    /// What it is told before this turn, in a matched replay.
    pub advice: Option<&'a Advice>,
}

impl Situation<'_> {
    /// A number from 0 to `n` − 1 for this turn; `what` names the choice.
    pub fn draw(&self, what: &str, n: u64) -> u64 {
        rand(self.seed, what, self.turn, n)
    }

    /// True with a probability, drawn for this turn.
    pub fn chance(&self, what: &str, probability: f64) -> bool {
        // 53 bits: what a double holds.
        (self.draw(what, 1 << 53) as f64) < probability * (1_u64 << 53) as f64
    }
}

/// What one turn does: calls, of which the first that ends the episode is the last one taken, or words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Turn {
    /// Its reasoning, never seen by the environment.
    pub thought: Option<String>,
    /// Its words beside calls, which the environment does not see either.
    pub said: Option<String>,
    /// Actions, in order; none ends the episode.
    pub actions: Vec<Action>,
    /// What choosing it took, where the policy knows.
    pub spent: Spent,
    /// By which rules a model's answer could be read as this turn; `None` where no model wrote it.
    pub reading: Option<Reading>,
    /// What a model wrote as this turn and how likely it found each token, where that was asked for.
    pub sampled: Option<SampledTurn>,
}

/// A turn as a model wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SampledTurn {
    /// The message, to the letter.
    pub message: ChatMessage,
    /// Its tokens.
    pub tokens: Vec<TokenLogprob>,
}

/// What choosing took: counted against the budgets of an episode. The library has no clock, so time is
/// what a policy's own client measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Tokens, of prompts and answers.
    pub tokens: u64,
    /// Of them, tokens of answers.
    pub answer_tokens: u64,
    /// Money; `None` where a model has no price.
    pub cost: Option<Cost>,
    /// Milliseconds.
    pub milliseconds: u64,
}

impl From<Action> for Turn {
    fn from(action: Action) -> Self {
        Self { actions: vec![action], ..Self::default() }
    }
}

/// What a policy may be told before it acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// "Reconsider your next action."
    Reconsider,
    /// The diagnosis of what went wrong here, without the right action.
    Diagnosis(String),
}

impl Advice {
    /// What the policy is told, in words.
    pub fn text(&self) -> &str {
        match self {
            Self::Reconsider => "Reconsider your next action before you take it.",
            Self::Diagnosis(text) => text,
        }
    }
}

/// How a policy takes advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TakesAdvice {
    /// It does not read it: the arms `reconsider` and `guided` do not apply.
    Never,
    /// By a rule that was written for it: results are marked synthetic.
    Synthetic,
    /// As a model does, by reading it.
    Read,
}

/// A policy did not choose.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The environment failed while the policy looked at it.
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    /// The policy's model gave no answer.
    #[error("policy `{policy}`: {error}")]
    Model {
        /// Its name.
        policy: String,
        /// Why.
        error: ModelError,
    },
    /// The teacher of a shared run failed: without it there are no labels.
    #[error("the teacher failed: {0}")]
    Teacher(Box<PolicyError>),
    /// The policy itself failed.
    #[error("policy `{policy}`: {message}")]
    Policy {
        /// Its name.
        policy: String,
        /// In words.
        message: String,
    },
}
