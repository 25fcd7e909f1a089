//! Fault injection: failures whose decisive step is known because it was put there.
//!
//! One turn of a successful run is replaced by what a weak policy would do there, and the run's own
//! policy continues. The place is a label only where the injected run fails and the original turn passes
//! from the same checkpoint under the same seed. Such runs say in their origin, in their label and in
//! `extra` that their fault was put in.

use super::fork::Matched;
use super::reopened::Reopened;
use super::{Checkpoints, ReplayError, continuation_seed};
use crate::environments::{Action, rand};
use crate::json::Json;
use crate::rollout::policies::{self, STYLES};
use crate::rollout::{self, Conditions, EpisodeLimits, Keep, Turn};
use crate::trajectory::{Origin, Sealed};
use crate::verdict::ReferenceLabel;

/// The label's source, and the arm in the origin of an injected run.
pub const INJECTION: &str = "injection";
/// Places and faults that are tried on one run.
const ATTEMPTS: u64 = 12;

/// A run with a fault whose place is known.
#[derive(Clone, Debug)]
pub struct Injected {
    /// The injected run, with its label.
    pub run: Sealed,
    /// The fault's style (`wrong-variant`).
    pub style: &'static str,
    /// The turn that holds it.
    pub step: usize,
    /// Position of its node.
    pub node: usize,
}

/// Puts a fault into a successful run that was executed again to its end; nothing where every attempt
/// was made up for, or failed without it too.
///
/// # Errors
/// When the environment fails.
pub fn inject(
    matched: &Matched<'_>,
    reopened: &mut Reopened,
    checkpoints: &Checkpoints,
) -> Result<Option<Injected>, ReplayError> {
    let turns = checkpoints.turns();
    if turns == 0 {
        return Ok(None);
    }
    for attempt in 0..ATTEMPTS {
        let draw = |what: &str, n: usize| {
            let seed = continuation_seed(matched.seed, matched.run.id, 0, 0);
            rand(seed, what, attempt, n as u64) as usize
        };
        let turn = draw("turn", turns);
        let Some(style) = STYLES.get(draw("style", STYLES.len())) else { continue };
        let Some(fault) = fault(matched, reopened, checkpoints, turn, style.name())? else { continue };
        if let Some(injected) = keep(matched, reopened, checkpoints, (turn, attempt), style.name(), fault)? {
            return Ok(Some(injected));
        }
    }
    Ok(None)
}

/// What a policy with this habit alone would do before a turn, where it is not what was done.
fn fault(
    matched: &Matched<'_>,
    reopened: &mut Reopened,
    checkpoints: &Checkpoints,
    turn: usize,
    style: &str,
) -> Result<Option<Action>, ReplayError> {
    let Ok(weak) = policies::parse(&format!("weak:{style}@1")) else { return Ok(None) };
    let Some(prefix) = checkpoints.before(turn) else { return Ok(None) };
    let before = prefix.transcript.len();
    let conditions = Conditions {
        seed: continuation_seed(matched.seed, matched.run.id, turn, 0),
        rules: matched.environment.identity().policy.as_deref(),
        limits: EpisodeLimits { turns: Some(turn as u64 + 1), ..EpisodeLimits::default() },
        from: Some(&prefix),
        ..Conditions::default()
    };
    let episode = rollout::run(&mut *reopened.instance, &reopened.task, &*weak, conditions);
    if let rollout::End::Environment(error) = episode.end {
        return Err(error.into());
    }
    let taken = episode.transcript.get(before).map(|exchange| exchange.action.clone());
    let original = reopened.recorded.turns.get(turn);
    Ok(taken.filter(|action| original.is_some_and(|original| !original.is(action))))
}

/// The injected run, where it fails and the original turn passes.
fn keep(
    matched: &Matched<'_>,
    reopened: &mut Reopened,
    checkpoints: &Checkpoints,
    (turn, attempt): (usize, u64),
    style: &'static str,
    fault: Action,
) -> Result<Option<Injected>, ReplayError> {
    let Some(original) = reopened.recorded.turns.get(turn).cloned() else { return Ok(None) };
    let Some(prefix) = checkpoints.before(turn) else { return Ok(None) };
    let seed = continuation_seed(matched.seed, matched.run.id, turn, 0);
    let mut play = |first: Turn| {
        let conditions = Conditions {
            seed,
            rules: matched.environment.identity().policy.as_deref(),
            limits: reopened.limits,
            keep: Keep::Hashes,
            from: Some(&prefix),
            first: Some(first),
            ..Conditions::default()
        };
        rollout::run(&mut *reopened.instance, &reopened.task, matched.policy, conditions)
    };
    let injected = play(fault.into());
    if injected.score.as_ref().is_none_or(|score| score.success) {
        return Ok(None);
    }
    if !play(original.as_turn()).succeeded() {
        return Ok(None);
    }
    let origin = Origin {
        trajectory: matched.run.id,
        node: original.node,
        arm: INJECTION.to_owned(),
        continuation: attempt as u32,
    };
    let (mut run, native) = matched.record(reopened, &injected, seed, &origin, None);
    run.extra.insert("injected".to_owned(), Json::string(style));
    // Nothing in it is copied as far as a diagnosis is concerned: it may look for the fault anywhere.
    for node in &mut run.nodes {
        node.occurrence.copied_context = false;
    }
    let Some(&node) = run.main_branch().steps().get(turn) else { return Ok(None) };
    let label = ReferenceLabel {
        source: INJECTION.to_owned(),
        index_base: 0,
        native: Json::from_foreign(&format!("{{\"step\":{turn},\"style\":\"{style}\"}}")),
        node: Some(node),
        agent: None,
        reason: None,
    };
    let sealed = run.seal(&native, vec![label]);
    let sealed =
        sealed.map_err(|_| ReplayError::Record { node, reason: "the injected run is not well formed" })?;
    Ok(Some(Injected { run: sealed, style, step: turn, node }))
}
