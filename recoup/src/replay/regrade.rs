//! Re-grading: a run executed again to its end and scored anew. The same actions must show the same and
//! score the same; where they do not, the failure is not the agent's.

use super::ReplayError;
use super::reopened::Reopened;
use crate::environments::Environment;
use crate::trajectory::{Outcome, Status, Trajectory};
use crate::verdict::{Blame, Party};

/// What a run came to when it was executed again.
#[derive(Clone, Debug, PartialEq)]
pub enum Regraded {
    /// Observations and score as recorded.
    Same,
    /// The environment answered otherwise.
    Environment(String),
    /// The verifier scored otherwise.
    Verifier(String),
}

/// Executes a scored run again and compares what it shows and how it scores.
///
/// # Errors
/// Where the run cannot be executed at all: that says nothing about anybody's fault.
pub fn regrade(run: &Trajectory, environment: &dyn Environment) -> Result<Regraded, ReplayError> {
    let mut reopened = Reopened::open(run, environment)?;
    let checkpoints = match reopened.execute(None) {
        Ok(checkpoints) => checkpoints,
        Err(ReplayError::Diverged(divergence)) => {
            let reason = format!("the same actions showed something else in turn {}", divergence.step);
            return Ok(Regraded::Environment(reason));
        }
        Err(error) => return Err(error),
    };
    let Some(state) = checkpoints.state(checkpoints.turns()) else { return Ok(Regraded::Same) };
    let score = reopened.instance.verify(state, checkpoints.executed())?;
    let Outcome { status, score: recorded, .. } = *run.outcome();
    let passes = status == Status::Success;
    // The same program over the same state gives the same bits.
    if score.success == passes && recorded.is_none_or(|recorded| recorded.to_bits() == score.score.to_bits())
    {
        return Ok(Regraded::Same);
    }
    let word = |passes| if passes { "passes" } else { "fails" };
    let found = format!("scored again, the run {} with {}", word(score.success), score.score);
    Ok(Regraded::Verifier(match recorded {
        Some(recorded) => format!("{found}; recorded is that it {} with {recorded}", word(passes)),
        None => format!("{found}; recorded is that it {}", word(passes)),
    }))
}

impl Regraded {
    /// Who is to blame instead of the agent.
    pub fn blame(&self) -> Option<Blame> {
        let (party, reason) = match self {
            Self::Same => return None,
            Self::Environment(reason) => (Party::Environment, reason),
            Self::Verifier(reason) => (Party::Verifier, reason),
        };
        let (rule, reason) = ("regrade".to_owned(), reason.clone());
        Some(Blame { party, rule, reason, suspected: false })
    }
}
