//! The environment's word on a goal: the run is executed again, and the task's own verifier scores the state
//! in which the goal is said to have been completed.

use serde_json::{Map, Value};

use super::proposal::{Proposal, Source};
use super::{episode::Episode, templates};
use crate::environments::{Environment, Goal, Instance};
use crate::replay::{Checkpoints, Reopened, ReplayError};
use crate::trajectory::Trajectory;

/// States behind which the environment is not asked any more what it has achieved.
const ASKED_MAX: usize = 64;

/// Longest line of an observation that an answer repeats, in bytes.
const ANSWER_MAX: usize = 200;

/// A run executed again in its environment.
pub struct World<'w> {
    environment: &'w dyn Environment,
    reopened: Reopened,
    checkpoints: Checkpoints,
}

impl<'w> World<'w> {
    /// Executes a run again.
    ///
    /// # Errors
    /// Why that cannot be done, or what came out differently.
    pub fn open(run: &Trajectory, environment: &'w dyn Environment) -> Result<Self, ReplayError> {
        let mut reopened = Reopened::open(run, environment)?;
        let checkpoints = reopened.execute(None)?;
        Ok(Self { environment, reopened, checkpoints })
    }

    /// Goals that the environment says were achieved: those of the latest state that fulfills any, each
    /// cut after the first turn of those from which on it held.
    ///
    /// # Errors
    /// When the environment fails.
    pub fn achieved(&mut self, episode: &Episode<'_>) -> Result<Vec<Proposal>, ReplayError> {
        let turns = self.checkpoints.turns();
        for turn in (1..=turns).rev().take(ASKED_MAX) {
            let Some(state) = self.checkpoints.state(turn).cloned() else { continue };
            let goals = self.reopened.instance.achieved(&state)?;
            if goals.is_empty() {
                continue;
            }
            let proposals = goals.into_iter().map(|goal| self.cut(goal, turn, episode));
            return proposals.filter_map(Result::transpose).collect();
        }
        Ok(Vec::new())
    }

    /// The goal as a proposal, completed in the first of the turns up to this one in which it holds and after
    /// which it holds on; none where it does not hold here.
    fn cut(
        &mut self,
        goal: Goal,
        turn: usize,
        episode: &Episode<'_>,
    ) -> Result<Option<Proposal>, ReplayError> {
        let mut first = None;
        let mut instance = self.open_with(&goal.task)?;
        for earlier in (1..=turn).rev() {
            if !passes(&mut *instance, &self.checkpoints, earlier)? {
                break;
            }
            first = Some(earlier);
        }
        let Some(last) = first.and_then(|turn| self.exchange_of(turn, episode)) else { return Ok(None) };
        let shown = episode.exchanges.get(last).and_then(|exchange| exchange.success());
        let line = shown.and_then(|shown| shown.text.lines().next()).filter(|line| line.len() <= ANSWER_MAX);
        let is_sentence = line.is_some_and(|line| !line.starts_with(['{', '[']));
        Ok(Some(Proposal {
            answer: line
                .filter(|_| is_sentence)
                .map_or_else(|| "Done.".to_owned(), |line| format!("Done: {line}")),
            goal: goal.goal,
            claims: Vec::new(),
            specification: None,
            task: Some(goal.task.to_string()),
            doubts: Vec::new(),
            last,
            source: Source::Environment,
        }))
    }

    /// The last exchange of the turn that led to a state.
    fn exchange_of(&self, state: usize, episode: &Episode<'_>) -> Option<usize> {
        let turn = self.reopened.recorded.turns.get(state.checked_sub(1)?)?;
        episode.exchanges.iter().rposition(|exchange| exchange.node == turn.node)
    }

    /// The state after an exchange's turn.
    fn state_after(&self, exchange: usize, episode: &Episode<'_>) -> Option<usize> {
        let node = episode.exchanges.get(exchange)?.node;
        Some(self.reopened.recorded.turn_of(node)? + 1)
    }

    /// Whether the verifier passes a proposal where it is said to be completed; `None` where nothing says
    /// what it should check.
    ///
    /// # Errors
    /// When the environment fails.
    pub fn verify(
        &mut self,
        proposal: &Proposal,
        episode: &Episode<'_>,
    ) -> Result<Option<bool>, ReplayError> {
        let Some(state) = self.state_after(proposal.last, episode) else { return Ok(None) };
        let task = match (&proposal.task, &proposal.specification) {
            (Some(task), _) => Some(task.clone()),
            (None, Some(specification)) => self.resolve(specification),
            (None, None) => return Ok(None),
        };
        // A specification of what the task does not have is wrong.
        let Some(task) = task else { return Ok(Some(false)) };
        if self.checkpoints.state(state).is_none() {
            return Ok(Some(false));
        }
        passes(&mut *self.open_with(&task)?, &self.checkpoints, state).map(Some)
    }

    /// Whether the original goal had been reached where a proposal is said to be completed.
    ///
    /// # Errors
    /// When the environment fails.
    pub fn reached_original(
        &mut self,
        proposal: &Proposal,
        episode: &Episode<'_>,
    ) -> Result<bool, ReplayError> {
        match self.state_after(proposal.last, episode) {
            Some(state) => passes(&mut *self.reopened.instance, &self.checkpoints, state),
            None => Ok(false),
        }
    }

    fn resolve(&self, specification: &Value) -> Option<String> {
        let task: Value = serde_json::from_str(&self.reopened.task.json).ok()?;
        let name = &self.environment.identity().manifest.name;
        let keys: Map<String, Value> = templates::resolve(name, specification, &task)?;
        Some(Value::Object(keys).to_string())
    }

    /// The task with these keys replaced.
    fn open_with(&self, keys: &str) -> Result<Box<dyn Instance>, ReplayError> {
        let name = &self.environment.identity().manifest.name;
        let task = self.reopened.task.with(name, keys)?;
        Ok(self.environment.open(&task)?)
    }
}

/// Whether an instance's task is solved in a state.
fn passes(instance: &mut dyn Instance, checkpoints: &Checkpoints, state: usize) -> Result<bool, ReplayError> {
    match checkpoints.state(state) {
        Some(state) => Ok(instance.verify(state, checkpoints.executed())?.success),
        None => Ok(false),
    }
}
