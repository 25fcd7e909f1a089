//! Matched arms: from one checkpoint, the same policy, settings, verifier and remaining budget; only the
//! first turn differs.
//!
//! | arm | first turn |
//! | --- | --- |
//! | `retry` | the original one again |
//! | `resample` | what the policy does at that state now |
//! | `reconsider` | the policy, told to reconsider its next action |
//! | `guided` | the policy, told the diagnosis but not the action |
//! | `repair` | the candidate |
//!
//! Continuation *k* of every arm draws from the same seed. A policy that does not take advice has no
//! `reconsider` and no `guided`. Nothing is chosen by its result: the candidate is one, and the rate
//! that counts is that of continuation 0.

use super::reopened::Reopened;
use super::{Checkpoints, ReplayError, continuation_seed};
use crate::environments::{Action, Environment};
use crate::rollout::{self, Advice, Conditions, Episode, Keep, Policy, Recording, TakesAdvice, Turn};
use crate::trajectory::{NativeId, Origin, Sealed, Trajectory};
use crate::verdict::{Arm, ArmOutcome, ContinuationOutcome};

/// What is the same in all arms, beside the checkpoint.
#[derive(Clone, Copy)]
pub struct Matched<'a> {
    /// The run forked from.
    pub run: &'a Trajectory,
    /// Where it happened.
    pub environment: &'a dyn Environment,
    /// Who continues.
    pub policy: &'a dyn Policy,
    /// The project's seed.
    pub seed: u64,
    /// Continuations of each arm.
    pub continuations: u32,
}

/// What differs: the first turn of each arm.
#[derive(Clone, Debug, Default)]
pub struct Treatments<'a> {
    /// The arms to run.
    pub arms: &'a [Arm],
    /// The diagnosis, for `guided`.
    pub explanation: Option<&'a str>,
    /// The candidate, for `repair`.
    pub candidate: Option<Action>,
}

impl Matched<'_> {
    /// Runs the arms from the checkpoint before a turn. Returns what they led to, and their runs.
    ///
    /// # Errors
    /// Where there is no such turn, or the episode had ended before it.
    pub fn fork(
        &self,
        reopened: &mut Reopened,
        checkpoints: &Checkpoints,
        turn: usize,
        treatments: &Treatments<'_>,
    ) -> Result<(Vec<ArmOutcome>, Vec<Sealed>), ReplayError> {
        let original = reopened.recorded.turns.get(turn).ok_or(ReplayError::NotATurn(turn))?.clone();
        let prefix = checkpoints.before(turn).ok_or(ReplayError::NotATurn(original.node))?;
        let takes_advice = self.policy.advice();
        let (mut outcomes, mut runs) = (Vec::new(), Vec::new());
        for &arm in treatments.arms {
            let (mut first, mut advice) = (None, None);
            match arm {
                Arm::Retry => first = Some(original.as_turn()),
                Arm::Resample => {}
                Arm::Reconsider => advice = Some(Advice::Reconsider),
                Arm::Guided => {
                    let Some(explanation) = treatments.explanation else { continue };
                    advice = Some(Advice::Diagnosis(explanation.to_owned()));
                }
                Arm::Repair => {
                    let Some(candidate) = &treatments.candidate else { continue };
                    first = Some(Turn::from(candidate.clone()));
                }
            }
            if advice.is_some() && takes_advice == TakesAdvice::Never {
                continue;
            }
            let mut outcome = ArmOutcome {
                arm,
                synthetic: advice.is_some() && takes_advice == TakesAdvice::Synthetic,
                continuations: Vec::new(),
            };
            for continuation in 0..self.continuations {
                let seed = continuation_seed(self.seed, self.run.id, turn, continuation);
                let conditions = Conditions {
                    seed,
                    rules: self.environment.identity().policy.as_deref(),
                    limits: reopened.limits,
                    keep: Keep::Hashes,
                    from: Some(&prefix),
                    advice: advice.as_ref(),
                    first: first.clone(),
                };
                let episode = rollout::run(&mut *reopened.instance, &reopened.task, self.policy, conditions);
                let origin = Origin {
                    trajectory: self.run.id,
                    node: original.node,
                    arm: arm.as_str().to_owned(),
                    continuation,
                };
                let (run, native) = self.record(reopened, &episode, seed, &origin, advice.as_ref());
                let sealed = run.seal(&native, Vec::new());
                outcome.continuations.push(said(&episode, &sealed));
                runs.extend(sealed.ok());
            }
            outcomes.push(outcome);
        }
        Ok((outcomes, runs))
    }

    /// The trajectory of an episode that was continued from this run.
    pub(super) fn record(
        &self,
        reopened: &Reopened,
        episode: &Episode,
        seed: u64,
        origin: &Origin,
        advice: Option<&Advice>,
    ) -> (Trajectory, NativeId) {
        let recording = Recording {
            identity: self.environment.identity(),
            task: &reopened.task,
            tools: reopened.instance.tools(),
            policy: self.policy,
            seed,
            trial: origin.continuation,
            limits: reopened.limits,
            origin: Some(origin),
            advice,
        };
        let (mut run, native) = rollout::record(episode, &recording);
        run.licence.clone_from(&self.run.licence);
        (run, native)
    }
}

/// How a continuation ended. An error of the environment or the policy has no word of the verifier.
fn said(episode: &Episode, sealed: &Result<Sealed, String>) -> ContinuationOutcome {
    ContinuationOutcome {
        trajectory: sealed.as_ref().ok().map(|sealed| sealed.head.id),
        passed: episode.score.as_ref().map(|score| score.success),
        error: episode.end.error().map(|(_, message)| message).or_else(|| sealed.as_ref().err().cloned()),
    }
}
