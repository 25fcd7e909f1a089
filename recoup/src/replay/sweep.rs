//! The counterfactual sweep: until when a run could be saved, and which turn decided it.
//!
//! Two questions, because what correcting one turn changes is not monotone in the turn:
//!
//! * *Recoverability*: the expert takes over before turn *t*. For an expert that solves all that can be
//!   solved this never gets better with time, so the last turn that can be saved is found by bisection.
//!   Some turns beside those of the bisection are looked at too, and a later success after an earlier
//!   failure is said.
//! * *Flip*: up to that turn, f(t) = P(success | corrected action at t, policy continues) − P(success |
//!   original action at t, policy continues), the corrected action being the expert's. Turns where the
//!   two are the same action are passed over. The decisive turn is the earliest with f(t) > 0, after
//!   Holm over the tested turns.
//!
//! Continuations stop early only where a confidence sequence has decided, and the p-value is valid
//! whenever they stop. A policy that draws nothing needs one continuation.

use serde::Serialize;

use super::fork::Matched;
use super::reopened::Reopened;
use super::{Checkpoints, ReplayError, continuation_seed};
use crate::environments::Action;
use crate::id::Hash;
use crate::rollout::policies::Expert;
use crate::rollout::{self, Conditions, Turn};
use crate::statistics::{Bounds, Confidence, ConfidenceSequence, holm};
use crate::verdict::{DecisiveStep, Flip, Recoverable, Sweep};

/// Chance of a false decisive turn, over all tested turns together.
const ALPHA: f64 = 0.05;
/// Turns beside those of the bisection at which recoverability is looked at.
const CHECKED: usize = 4;

/// How far a sweep goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SweepPlan {
    /// Most pairs of continuations of one turn; one is enough where nothing is random.
    pub continuations_max: u32,
}

impl Default for SweepPlan {
    fn default() -> Self {
        Self { continuations_max: 24 }
    }
}

/// Sweeps a failed run that was executed again to its end.
///
/// # Errors
/// When the environment fails or has no expert.
pub fn sweep(
    matched: &Matched<'_>,
    reopened: &mut Reopened,
    checkpoints: &Checkpoints,
    plan: SweepPlan,
) -> Result<Sweep, ReplayError> {
    let (recoverability, last_recoverable) = recoverability(matched, reopened, checkpoints)?;
    let is_monotone = recoverability.windows(2).all(|pair| pair[0].recovered || !pair[1].recovered);
    let mut tested: Vec<(usize, Action)> = Vec::new();
    for turn in 0..last_recoverable.map_or(0, |last| last + 1).min(checkpoints.turns()) {
        let Some(state) = checkpoints.state(turn) else { break };
        let corrected = reopened.instance.expert(state)?.ok_or(ReplayError::NoExpert)?;
        if !reopened.recorded.turns.get(turn).is_some_and(|original| original.is(&corrected)) {
            tested.push((turn, corrected));
        }
    }
    let count = tested.len();
    let mut flips = Vec::with_capacity(count);
    let mut p_values = Vec::with_capacity(count);
    for (turn, corrected) in tested {
        let (flip, p) = flip(matched, reopened, checkpoints, turn, &corrected, (plan, count))?;
        flips.push(flip);
        p_values.push(p);
    }
    for (flip, p) in flips.iter_mut().zip(holm(&p_values)) {
        flip.p_holm = p;
    }
    let decisive = flips.iter().find(|flip| flip.effect > 0.0 && flip.p_holm < ALPHA).and_then(|flip| {
        let node = reopened.recorded.turns.get(flip.step)?.node;
        Some(DecisiveStep { step: flip.step, node })
    });
    Ok(Sweep {
        policy: matched.policy.name().to_owned(),
        config_hash: reopened.config_hash(matched.run, matched.environment, matched.policy.name()),
        plan_hash: matched.sweep_hash(plan),
        injected: false,
        recoverability,
        is_monotone,
        last_recoverable,
        flips,
        decisive,
    })
}

impl Matched<'_> {
    /// Hash of everything that decides a sweep, known before it is made.
    pub fn sweep_hash(&self, plan: SweepPlan) -> Hash {
        let version = self.environment.identity().version();
        let seed = self.seed.to_le_bytes();
        let most = plan.continuations_max.to_le_bytes();
        Hash::of_all(&[&self.run.id.0.0, version.as_bytes(), self.policy.name().as_bytes(), &seed, &most])
    }

    /// One episode from the checkpoint before a turn, or nothing behind its end. An error is the
    /// environment's or the policy's, and says nothing about the turn.
    fn passes(
        &self,
        reopened: &mut Reopened,
        checkpoints: &Checkpoints,
        (turn, continuation): (usize, u32),
        policy: &dyn rollout::Policy,
        first: Option<Turn>,
    ) -> Result<bool, ReplayError> {
        let Some(prefix) = checkpoints.before(turn) else { return Ok(false) };
        let conditions = Conditions {
            seed: continuation_seed(self.seed, self.run.id, turn, continuation),
            rules: self.environment.identity().policy.as_deref(),
            limits: reopened.limits,
            from: Some(&prefix),
            first,
            ..Conditions::default()
        };
        let episode = rollout::run(&mut *reopened.instance, &reopened.task, policy, conditions);
        match episode.end {
            rollout::End::Environment(error) => Err(error.into()),
            rollout::End::Policy(_) => Err(ReplayError::UnknownPolicy(policy.name().to_owned())),
            _ => Ok(episode.score.is_some_and(|score| score.success)),
        }
    }
}

/// The turns looked at, in order, and the last one before which the expert could take over.
fn recoverability(
    matched: &Matched<'_>,
    reopened: &mut Reopened,
    checkpoints: &Checkpoints,
) -> Result<(Vec<Recoverable>, Option<usize>), ReplayError> {
    let turns = checkpoints.turns();
    let mut looked: Vec<Option<bool>> = vec![None; turns + 1];
    let mut look = |turn: usize, looked: &mut Vec<Option<bool>>| -> Result<bool, ReplayError> {
        if let Some(&Some(known)) = looked.get(turn) {
            return Ok(known);
        }
        let recovered = matched.passes(reopened, checkpoints, (turn, 0), &Expert, None)?;
        if let Some(entry) = looked.get_mut(turn) {
            *entry = Some(recovered);
        }
        Ok(recovered)
    };
    let mut last = None;
    if look(0, &mut looked)? {
        // Recovered before `saved`, lost before `lost`.
        let (mut saved, mut lost) = (0, turns + 1);
        while lost - saved > 1 {
            let middle = saved + (lost - saved) / 2;
            if look(middle, &mut looked)? { saved = middle } else { lost = middle }
        }
        last = Some(saved);
    }
    for check in 1..=CHECKED {
        look(turns * check / (CHECKED + 1), &mut looked)?;
    }
    let looked = looked.iter().enumerate();
    let curve = looked.filter_map(|(step, entry)| Some(Recoverable { step, recovered: (*entry)? }));
    Ok((curve.collect(), last))
}

/// What correcting one turn changes, with its p-value before Holm over `tested` turns.
fn flip(
    matched: &Matched<'_>,
    reopened: &mut Reopened,
    checkpoints: &Checkpoints,
    turn: usize,
    corrected: &Action,
    (plan, tested): (SweepPlan, usize),
) -> Result<(Flip, f64), ReplayError> {
    let deterministic = matched.policy.is_deterministic();
    let most = if deterministic { 1 } else { plan.continuations_max.max(1) };
    let original = reopened.recorded.turns.get(turn).ok_or(ReplayError::NotATurn(turn))?.as_turn();
    let confidence = Confidence::new(1.0 - ALPHA / tested.max(1) as f64).unwrap_or(Confidence::P95);
    let mut differing = ConfidenceSequence::new(confidence);
    let mut differences = ConfidenceSequence::new(Confidence::P95);
    let mut flip =
        Flip { step: turn, n: 0, corrected: 0, retried: 0, effect: 0.0, low: -1.0, high: 1.0, p_holm: 1.0 };
    let mut wins = 0;
    for continuation in 0..most {
        let at = (turn, continuation);
        let treated = Some(Turn::from(corrected.clone()));
        let better = matched.passes(reopened, checkpoints, at, matched.policy, treated)?;
        let same = matched.passes(reopened, checkpoints, at, matched.policy, Some(original.clone()))?;
        flip.n += 1;
        flip.corrected += u64::from(better);
        flip.retried += u64::from(same);
        wins += u64::from(better && !same);
        // Both are between 0 and 1, so the sequences take them.
        let _ = differences.push(f64::midpoint(1.0, f64::from(better) - f64::from(same)));
        if better != same {
            let _ = differing.push(f64::from(better));
            if differing.side_of(0.5).is_some() {
                break;
            }
        }
    }
    flip.effect = (flip.corrected as f64 - flip.retried as f64) / flip.n as f64;
    if deterministic {
        (flip.low, flip.high) = (flip.effect, flip.effect);
        return Ok((flip.clone(), if flip.effect == 0.0 { 1.0 } else { 0.0 }));
    }
    let Bounds { low, high } = differences.bounds();
    (flip.low, flip.high) = (2.0 * low - 1.0, 2.0 * high - 1.0);
    Ok((flip, anytime_p(wins, differing.outcomes())))
}

/// The p-value of "a differing pair is as likely to go either way" that holds at any time of stopping:
/// the inverse of the mixture likelihood ratio behind [`ConfidenceSequence`], (n + 1) · C(n, wins) / 2ⁿ.
fn anytime_p(wins: u64, n: u64) -> f64 {
    let mut p = n as f64 + 1.0;
    for drawn in 1..=n {
        // C(n, wins) as a product, halved n times on the way, so that nothing overflows.
        p *= 0.5;
        if drawn <= wins {
            p *= (n - wins + drawn) as f64 / drawn as f64;
        }
    }
    p.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::anytime_p;

    #[test]
    fn a_p_value_may_be_looked_at_any_time() {
        assert!((anytime_p(8, 8) - 9.0 / 256.0).abs() < 1e-15);
        assert!((anytime_p(0, 8) - 9.0 / 256.0).abs() < 1e-15);
        assert!((anytime_p(9, 10) - 11.0 * 10.0 / 1024.0).abs() < 1e-15);
        assert!((anytime_p(5, 10) - 1.0).abs() < f64::EPSILON);
        assert!((anytime_p(0, 0) - 1.0).abs() < f64::EPSILON);
        assert!(anytime_p(400, 500).is_finite());
    }
}
