//! The turn of a fork: what an arm did first from the checkpoint, and the state it did it in.

use std::sync::Arc;

use super::input::is_learnable;
use super::{Evidence, Example, Exclusion, Fork, ForkBranch, Lineage, Message, View, ViewInput};
use crate::trajectory::{Part, Role, Status, ToolCall, same_action};
use crate::verdict::{Arm, ArmOutcome};

/// The first continuation of an arm, cut where the arms part.
pub(super) struct Turn<'a> {
    /// Its run.
    pub branch: &'a ForkBranch,
    /// The messages before the fork, without the advice that an arm was given.
    pub state: Vec<Arc<Message>>,
    /// What was done first.
    pub message: Arc<Message>,
    /// Everything after it.
    pub rest: Vec<Arc<Message>>,
}

impl Fork {
    /// The first turn of an arm; `None` where the arm was not run or its run is gone.
    pub(super) fn turn(&self, arm: Arm) -> Option<Turn<'_>> {
        let branch = self.branches.iter().find(|branch| branch.arm == arm)?;
        let mut state = Message::of_branch(&branch.run, &branch.run.main_branch());
        let first = state.iter().position(|message| is_learnable(&branch.run, message))?;
        let mut rest = state.split_off(first);
        let message = rest.remove(0);
        if matches!(arm, Arm::Reconsider | Arm::Guided) {
            // The advice is the last thing said before the turn. It is no part of the state.
            state.pop().filter(|advice| advice.role == Role::User)?;
        }
        Some(Turn { branch, state, message, rest })
    }

    /// The repair's first turn, where its first continuation passed and a verdict says so.
    pub(super) fn repaired(&self) -> Option<Turn<'_>> {
        self.repair?;
        if self.passed(Arm::Repair) != Some(true) {
            return None;
        }
        let turn = self.turn(Arm::Repair)?;
        (turn.branch.run.outcome().status == Status::Success).then_some(turn)
    }

    /// The lineage of what is learned from an arm of it.
    pub(super) fn lineage(&self, view: &dyn View, turn: &Turn<'_>, input: &ViewInput<'_>) -> Lineage {
        Lineage {
            evidence: Evidence::Replay,
            verdicts: self.repair.into_iter().chain([self.id]).collect(),
            ..Lineage::new(view.name(), &turn.branch.run, input.side)
        }
    }

    /// Whether the first continuation of an arm passed; `None` where it was not scored.
    pub(super) fn passed(&self, arm: Arm) -> Option<bool> {
        self.pair.arm(arm).and_then(|outcome| outcome.continuations.first()).and_then(|first| first.passed)
    }
}

/// The forks of an agent's failure whose repair passed, each with the repair's turn.
///
/// # Errors
/// Why there is none.
pub(super) fn repaired<'a>(input: &ViewInput<'a>) -> Result<Vec<(&'a Fork, Turn<'a>)>, Exclusion> {
    input.agents_failure()?;
    if input.forks.is_empty() {
        return Err(Exclusion::because("not-replayed"));
    }
    let turns = input.forks.iter().filter_map(|fork| Some((fork, fork.repaired()?)));
    let turns: Vec<_> = turns.collect();
    if turns.is_empty() { Err(Exclusion::because("no-passing-repair")) } else { Ok(turns) }
}

impl Turn<'_> {
    /// The state and the message, all of which is learned.
    pub(super) fn example(&self, lineage: Lineage) -> Example {
        let context: Vec<Arc<Message>> = self.state.iter().chain([&self.message]).cloned().collect();
        let segments = self.message.segments(self.state.len()).collect();
        Example::new(context, self.branch.run.tools.as_slice().into(), segments, lineage)
    }

    /// Whether two arms did their turns in the same state.
    pub(super) fn same_state(&self, other: &Self) -> bool {
        self.branch.run.tools == other.branch.run.tools
            && self.state.len() == other.state.len()
            && self.state.iter().zip(&other.state).all(|(left, right)| left.reads_as(right))
    }
}

/// Whether two turns do the same: equal calls, or the same words where neither calls a tool.
pub(super) fn same_turn(left: &Message, right: &Message) -> bool {
    let (left_calls, right_calls) = (calls(left), calls(right));
    if left_calls.is_empty() && right_calls.is_empty() {
        return words(left).eq(words(right));
    }
    left_calls.len() == right_calls.len()
        && left_calls.iter().zip(&right_calls).all(|(left, right)| same_action(left, right))
}

/// The calls of a message.
pub(super) fn calls(message: &Message) -> Vec<&ToolCall> {
    message
        .parts
        .iter()
        .filter_map(|part| if let Part::ToolCall(call) = part { Some(call) } else { None })
        .collect()
}

fn words(message: &Message) -> impl Iterator<Item = &str> {
    message.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.text.as_str()),
        _ => None,
    })
}

/// Whether an arm passed so much more often than another that luck is no answer: rates that differ by two
/// thirds or more, over at least three scored continuations of each.
pub(super) fn contrasts(better: &ArmOutcome, worse: &ArmOutcome) -> bool {
    let ((won, of), (lost, out_of)) = (better.passed(), worse.passed());
    of >= 3 && out_of >= 3 && 3 * (won * out_of) >= 3 * (lost * of) + 2 * of * out_of
}

#[cfg(test)]
mod tests {
    use super::contrasts;
    use crate::verdict::{Arm, ArmOutcome, ContinuationOutcome};

    fn outcome(passed: &[Option<bool>]) -> ArmOutcome {
        let one =
            |passed: &Option<bool>| ContinuationOutcome { trajectory: None, passed: *passed, error: None };
        ArmOutcome { arm: Arm::Retry, synthetic: false, continuations: passed.iter().map(one).collect() }
    }

    #[test]
    fn two_thirds_over_three_scored_continuations() {
        let (yes, no) = (Some(true), Some(false));
        assert!(contrasts(&outcome(&[yes, yes, yes]), &outcome(&[no, no, yes])));
        assert!(!contrasts(&outcome(&[yes, yes, no]), &outcome(&[no, no, yes])));
        assert!(!contrasts(&outcome(&[yes, yes]), &outcome(&[no, no, no])));
        assert!(!contrasts(&outcome(&[yes, yes, yes]), &outcome(&[no, no, None])), "an error is no score");
    }
}
