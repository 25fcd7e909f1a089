//! An episode: what one run of a policy on a task has shown, however it ended.

use super::{PolicyError, Spent};
use crate::environments::{EnvironmentError, Exchange, Score, State};
use crate::id::Hash;
use crate::trajectory::TerminationKind;

/// One run.
#[derive(Debug)]
pub struct Episode {
    /// What the start has shown.
    pub first_observation: String,
    /// All that was done and seen, with the prefix that the run was continued from.
    pub transcript: Vec<Exchange>,
    /// The turns in order, those of the prefix first.
    pub turns: Vec<Taken>,
    /// How many turns belong to the prefix.
    pub prefix_turns: usize,
    /// How it ended.
    pub end: End,
    /// Where it ended; `None` after an error of the environment.
    pub state: Option<State>,
    /// The verifier's word on that state; `None` after any error.
    pub score: Option<Score>,
    /// Hashes of the states: the first one, then one after each exchange that this run added. Empty
    /// where they were not kept.
    pub hashes: Vec<Hash>,
    /// The same states, where they were kept.
    pub checkpoints: Vec<State>,
}

/// A turn that was taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// The reasoning.
    pub thought: Option<String>,
    /// The words beside calls.
    pub said: Option<String>,
    /// What choosing it took.
    pub spent: Spent,
    /// Exchanges of the transcript that belong to it, in order after those of the turns before.
    pub exchanges: usize,
}

/// What a run is continued from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The state to go on from.
    pub state: State,
    /// What the start has shown.
    pub first_observation: String,
    /// All that was done and seen before.
    pub transcript: Vec<Exchange>,
    /// The turns in which it was.
    pub turns: Vec<Taken>,
}

/// How an episode ended.
#[derive(Debug)]
pub enum End {
    /// A call ended it.
    Done,
    /// The policy ended it: by words, or by doing nothing.
    Stopped,
    /// Its turns were used up.
    MaxSteps,
    /// Its tokens were used up.
    MaxTokens,
    /// Its time was used up.
    MaxTime,
    /// The environment failed: nobody knows how it would have ended.
    Environment(EnvironmentError),
    /// The policy failed: nobody knows either.
    Policy(PolicyError),
}

impl End {
    /// The end's word in records and `--json`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Stopped => "stopped",
            Self::MaxSteps => "max_steps",
            Self::MaxTokens => "max_tokens",
            Self::MaxTime => "max_time",
            Self::Environment(_) => "environment_error",
            Self::Policy(_) => "policy_error",
        }
    }

    /// The end in the words of all harnesses.
    pub fn kind(&self) -> TerminationKind {
        match self {
            Self::Done | Self::Stopped => TerminationKind::Completed,
            Self::MaxSteps => TerminationKind::StepLimit,
            Self::MaxTokens => TerminationKind::BudgetExceeded,
            Self::MaxTime => TerminationKind::Timeout,
            Self::Environment(_) | Self::Policy(_) => TerminationKind::InfrastructureError,
        }
    }

    /// The error, with its code, where one ended the episode.
    pub fn error(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Environment(error) => Some((error.fault.code(), error.to_string())),
            Self::Policy(error) => Some(("policy", error.to_string())),
            _ => None,
        }
    }
}

impl Episode {
    /// True where the verifier passed it.
    pub fn succeeded(&self) -> bool {
        self.score.as_ref().is_some_and(|score| score.success)
    }

    /// What the environment has really done: the transcript up to the exchange that ended it. Calls of
    /// the same turn that came too late stand behind.
    pub fn executed(&self) -> &[Exchange] {
        executed(&self.transcript)
    }

    /// What a run continues from that goes on before a turn, where the states were kept. Turns of the
    /// prefix that this episode was itself continued from cannot be named.
    pub fn prefix_before(&self, turn: usize) -> Option<Prefix> {
        let turns = self.turns.get(..turn)?;
        let count = |turns: &[Taken]| turns.iter().map(|turn| turn.exchanges).sum::<usize>();
        let old = count(self.turns.get(..self.prefix_turns)?);
        let exchanges = count(turns);
        Some(Prefix {
            state: self.checkpoints.get(exchanges.checked_sub(old)?)?.clone(),
            first_observation: self.first_observation.clone(),
            transcript: self.transcript.get(..exchanges)?.to_vec(),
            turns: turns.to_vec(),
        })
    }
}

pub(super) fn executed(transcript: &[Exchange]) -> &[Exchange] {
    let end = transcript.iter().position(|exchange| exchange.step.done).map_or(transcript.len(), |at| at + 1);
    &transcript[..end]
}
