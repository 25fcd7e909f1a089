//! The same actions show the same, however the state is kept.

use super::{Battery, Finding, Gate};
use crate::environments::{
    Action, Driver, EnvironmentError, Instance, Scene, State, Step, rand, run_by_value,
};
use crate::rollout::policies::Random;
use crate::rollout::{Conditions, run};

pub(super) struct Deterministic;

impl Gate for Deterministic {
    fn name(&self) -> &'static str {
        "deterministic"
    }

    fn rule(&self) -> &'static str {
        "the teacher's and random actions give the same bytes again in memory, restored before every step, and forked where a coin says"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let different = battery.on_solved(|solved, instance| {
            let random = run(
                instance,
                &solved.task,
                &Random,
                Conditions { seed: solved.task.seed, ..Conditions::default() },
            );
            let random: Vec<Action> = random.transcript.into_iter().map(|exchange| exchange.action).collect();
            let seed = solved.task.seed;
            Ok(!alike(instance, &solved.actions, seed)? || !alike(instance, &random, seed)?)
        })?;
        let count = different.iter().filter(|different| **different).count();
        Ok(Finding { passed: count == 0, figure: format!("{count} of {} seeds differ", different.len()) })
    }
}

fn alike(instance: &mut dyn Instance, actions: &[Action], seed: u64) -> Result<bool, EnvironmentError> {
    let mut runs = [Replay::new(actions), Replay::new(actions), Replay::new(actions)];
    let ends = [
        instance.run(None, &mut runs[0])?,
        instance.run(None, &mut runs[1])?,
        run_by_value(instance, None, &mut runs[2])?,
    ];
    let [first, others @ ..] = &runs;
    if others.iter().any(|other| other.seen != first.seen) || ends.iter().any(|end| *end != ends[0]) {
        return Ok(false);
    }
    // Back to an earlier state, as a replay goes there. What a driver sees first then is nothing new.
    let at = rand(seed, "fork", 0, first.seen.len() as u64) as usize;
    let Some((_, state)) = first.seen.get(at) else { return Ok(true) };
    let mut forked = Replay::new(actions.get(at..).unwrap_or_default());
    let end = instance.run(Some(state), &mut forked)?;
    let rest = forked.seen.get(1..).unwrap_or_default();
    Ok(end == ends[0] && rest == &first.seen[at + 1..])
}

/// Takes given actions and keeps every byte that it sees.
struct Replay<'a> {
    actions: std::slice::Iter<'a, Action>,
    seen: Vec<(Step, State)>,
}

impl<'a> Replay<'a> {
    fn new(actions: &'a [Action]) -> Self {
        Self { actions: actions.iter(), seen: Vec::new() }
    }
}

impl Driver for Replay<'_> {
    fn act(&mut self, step: Step, scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError> {
        self.seen.push((step, scene.state()?));
        Ok(self.actions.next().cloned())
    }
}
