//! Labels of an episode that has ended: where in the record each stands, and what the end says of it.

use super::shared::{Pairing, Visit};
use crate::environments::{Action, CheckpointKind, Environment, Exchange, TaskSpec};
use crate::rollout::forms::{Form, ToolTypes, written};
use crate::rollout::{Conditions, End, Episode, EpisodeLimits, PolicyError, Turn, run};
use crate::trajectory::{Tool, Trajectory};
use crate::verdict::{LabelCost, LabelMark, LabelRefusal, RefusalCode, StateLabel, TurnAst};

/// Whether the student's form says the same of a turn when it is read again.
pub(super) fn has_a_place(turn: &TurnAst, tools: &[Tool], form: &dyn Form) -> Result<(), LabelRefusal> {
    match written(form, turn, &ToolTypes::of(tools), 0) {
        Ok(_) => Ok(()),
        Err(error) => Err(LabelRefusal { code: RefusalCode::ParseBack, reason: error.to_string() }),
    }
}

/// An episode with the states that were visited in it.
pub(super) struct Visited<'a> {
    pub environment: &'a dyn Environment,
    pub task: &'a TaskSpec,
    pub pairing: Pairing<'a>,
    pub round: u32,
    /// Seed of the episode's luck.
    pub seed: u64,
    /// What the episode may spend.
    pub limits: EpisodeLimits,
    /// With every state kept.
    pub episode: &'a Episode,
    pub visits: &'a [Visit],
}

impl Visited<'_> {
    /// A label for every visited state, by its place in the run's record.
    ///
    /// # Errors
    /// The teacher's, where a label is executed and it fails.
    pub(super) fn labels(&self, run: &Trajectory) -> Result<Vec<StateLabel>, PolicyError> {
        let branch = run.main_branch();
        let (steps, last) = (branch.steps(), branch.positions().last().copied());
        let mut labels = Vec::with_capacity(self.visits.len());
        for visit in self.visits {
            let turn = usize::try_from(visit.turn).unwrap_or(usize::MAX);
            let executed = steps.get(turn).copied();
            let before = executed.map_or(last, |node| run.nodes.get(node)?.parent);
            // A task without words has no state that could be shown.
            let Some(state) = before else { continue };
            labels.push(self.label(visit, turn, state, executed)?);
        }
        Ok(labels)
    }

    fn label(
        &self,
        visit: &Visit,
        turn: usize,
        state: usize,
        executed: Option<usize>,
    ) -> Result<StateLabel, PolicyError> {
        let action = visit.label.as_ref().ok();
        let agrees = action.map(|label| visit.executed.as_ref().is_some_and(|did| did.does_the_same(label)));
        let mut marks = visit.marks.clone();
        if action.is_some() && self.ends_unsolved(visit, turn, agrees == Some(true)) {
            marks.push(LabelMark::UnsolvedFinish);
        }
        let verified = match action {
            Some(_) if self.pairing.verify => self.verify(visit, turn)?,
            _ => None,
        };
        let spent = visit.taught.spent;
        Ok(StateLabel {
            state,
            executed,
            turn: visit.turn,
            round: self.round,
            actor: visit.actor,
            teacher: self.pairing.teacher.name().to_owned(),
            action: action.cloned(),
            reasoning: visit.taught.thought.clone(),
            agrees,
            refused: visit.label.as_ref().err().cloned(),
            marks,
            verified,
            cost: LabelCost {
                prompt_tokens: spent.tokens.saturating_sub(spent.answer_tokens),
                completion_tokens: spent.answer_tokens,
                usd: spent.cost.map(crate::models::Cost::to_usd),
            },
            shift: visit.shift.and_then(Result::ok),
            unscored: visit.shift.and_then(Result::err),
        })
    }

    /// Whether the teacher would end the run here without the task being solved.
    fn ends_unsolved(&self, visit: &Visit, turn: usize, is_executed: bool) -> bool {
        if is_executed {
            let is_last = self.episode.turns.len() == turn + 1;
            return is_last
                && matches!(self.episode.end, End::Done | End::Stopped)
                && !self.episode.succeeded();
        }
        let says = visit.taught.actions.iter().all(|action| matches!(action, Action::Say(_)));
        // Where restoring means taking all actions again, only words are tried: they end most runs.
        let is_cheap = self.environment.identity().checkpoint == CheckpointKind::Snapshot;
        // What cannot be tried is not known to be wrong.
        (says || is_cheap) && self.is_failing_end(&visit.taught, turn).unwrap_or(false)
    }

    fn is_failing_end(&self, taught: &Turn, turn: usize) -> Option<bool> {
        let prefix = self.episode.prefix_before(turn)?;
        let mut instance = self.environment.open(self.task).ok()?;
        let (state, shown) = instance.run_actions(Some(&prefix.state), &taught.actions).ok()?;
        if !shown.last()?.done {
            return Some(false);
        }
        let mut transcript = prefix.transcript;
        // What is shown first is where it continues from.
        let steps = shown.into_iter().skip(1);
        transcript.extend(
            taught.actions.iter().cloned().zip(steps).map(|(action, step)| Exchange { action, step }),
        );
        Some(!instance.verify(&state, &transcript).ok()?.success)
    }

    /// Whether the label, executed from its state and continued by the teacher, passes; `None` where that cannot
    /// be tried.
    fn verify(&self, visit: &Visit, turn: usize) -> Result<Option<bool>, PolicyError> {
        if self.pairing.teacher.is_deterministic() && self.is_teachers_from(turn) {
            return Ok(Some(self.episode.succeeded()));
        }
        let Some(prefix) = self.episode.prefix_before(turn) else { return Ok(None) };
        let Ok(mut instance) = self.environment.open(self.task) else { return Ok(None) };
        let conditions = Conditions {
            seed: self.seed,
            rules: self.environment.identity().policy.as_deref(),
            limits: self.limits,
            from: Some(&prefix),
            first: Some(Turn { thought: None, ..visit.taught.clone() }),
            ..Conditions::default()
        };
        let continued = run(&mut *instance, self.task, self.pairing.teacher, conditions);
        let passed = continued.succeeded();
        match continued.end {
            End::Policy(error) => Err(PolicyError::Teacher(Box::new(error))),
            End::Environment(_) => Ok(None),
            _ => Ok(Some(passed)),
        }
    }

    /// Whether the teacher acted from a turn to the end, or the student just as it.
    fn is_teachers_from(&self, turn: usize) -> bool {
        self.visits.iter().skip(turn).all(Visit::is_teachers)
    }
}
