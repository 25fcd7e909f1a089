//! The runner: one episode of a policy on an opened task.
//!
//! A turn with several calls is as many steps of the environment and one turn of the budget. The first
//! call that ends the episode is the last one taken; those behind it in the same turn are answered
//! with an error, as a harness would.

use std::collections::VecDeque;

use serde::Serialize;

use super::episode::executed;
use super::{
    Advice, End, Episode, EpisodeLimits, Policy, PolicyError, Prefix, Situation, Spent, Taken, Turn,
};
use crate::environments::{
    Action, Driver, EnvironmentError, Exchange, Instance, Scene, State, Step, TaskSpec, ToolSpec,
};
use crate::id::Hash;

/// What a call gets that comes behind the end of the episode in its turn.
pub(crate) const TOO_LATE: &str = "Error: the episode has ended; this was not done.";

/// Under what conditions an episode is run.
#[derive(Clone, Debug, Default)]
pub struct Conditions<'a> {
    /// Seed of all chance of the policy.
    pub seed: u64,
    /// The written policy that it must follow.
    pub rules: Option<&'a str>,
    /// What the run may spend.
    pub limits: EpisodeLimits,
    /// What of the states is kept.
    pub keep: Keep,
    /// Where it continues from; the start of the task where absent.
    pub from: Option<&'a Prefix>,
    /// What the policy is told before its first turn here.
    pub advice: Option<&'a Advice>,
    /// The first turn here, taken without asking the policy.
    pub first: Option<Turn>,
}

/// What of the states is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Keep {
    /// The last one only: the fastest.
    #[default]
    Nothing,
    /// The hash of each.
    Hashes,
    /// Each.
    States,
}

/// Runs one episode. It never fails: what goes wrong is how it ended.
pub fn run(
    instance: &mut dyn Instance,
    task: &TaskSpec,
    policy: &dyn Policy,
    conditions: Conditions<'_>,
) -> Episode {
    let tools = instance.tools().clone();
    let turns = conditions.limits.turns_of(task);
    let from = conditions.from;
    let mut runner = Runner {
        policy,
        goal: &task.goal,
        tools: &tools,
        budget: turns,
        first_observation: from.map_or_else(String::new, |prefix| prefix.first_observation.clone()),
        transcript: from.map_or_else(Vec::new, |prefix| prefix.transcript.clone()),
        turns: from.map_or_else(Vec::new, |prefix| prefix.turns.clone()),
        prefix_turns: from.map_or(0, |prefix| prefix.turns.len()),
        begun: false,
        queue: VecDeque::new(),
        running: None,
        spent: Spent::default(),
        end: None,
        hashes: Vec::new(),
        checkpoints: Vec::new(),
        conditions,
    };
    for turn in from.iter().flat_map(|prefix| &prefix.turns) {
        runner.spend(turn.spent);
    }
    let played = instance.run(from.map(|prefix| &prefix.state), &mut runner);
    let Runner { first_observation, transcript, turns, prefix_turns, end, hashes, checkpoints, .. } = runner;
    let mut episode = Episode {
        first_observation,
        transcript,
        turns,
        prefix_turns,
        end: end.unwrap_or(End::Stopped),
        state: None,
        score: None,
        hashes,
        checkpoints,
    };
    match played {
        Ok(state) => {
            if episode.end.error().is_none() {
                match instance.verify(&state, executed(&episode.transcript)) {
                    Ok(score) => episode.score = Some(score),
                    Err(error) => episode.end = End::Environment(error),
                }
            }
            episode.state = Some(state);
        }
        Err(error) => episode.end = End::Environment(error),
    }
    episode
}

/// A policy at the wheel.
struct Runner<'a> {
    policy: &'a dyn Policy,
    goal: &'a str,
    tools: &'a [ToolSpec],
    conditions: Conditions<'a>,
    budget: u64,
    first_observation: String,
    transcript: Vec<Exchange>,
    turns: Vec<Taken>,
    prefix_turns: usize,
    /// Whether the start has been seen.
    begun: bool,
    /// Actions of the turn that are still to be taken.
    queue: VecDeque<Action>,
    /// The action under way.
    running: Option<Action>,
    spent: Spent,
    end: Option<End>,
    hashes: Vec<Hash>,
    checkpoints: Vec<State>,
}

impl Driver for Runner<'_> {
    fn act(&mut self, step: Step, scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError> {
        let done = step.done;
        self.see(step);
        if self.conditions.keep != Keep::Nothing {
            let state = scene.state()?;
            self.hashes.push(state.hash());
            if self.conditions.keep == Keep::States {
                self.checkpoints.push(state);
            }
        }
        if done {
            self.close();
            return Ok(None);
        }
        if self.queue.is_empty() {
            match self.turn(scene) {
                Ok(turn) => self.begin(turn),
                Err(end) => self.end = Some(end),
            }
        }
        self.running = self.queue.pop_front();
        if let (Some(turn), true) = (self.turns.last_mut(), self.running.is_some()) {
            turn.exchanges += 1;
        }
        Ok(self.running.clone())
    }
}

impl Runner<'_> {
    /// Takes in what a step has shown.
    fn see(&mut self, step: Step) {
        if let Some(action) = self.running.take() {
            self.transcript.push(Exchange { action, step });
        } else if !self.begun && self.conditions.from.is_none() {
            self.first_observation = step.observation;
        }
        self.begun = true;
    }

    /// The next turn, or how the episode ends instead.
    fn turn(&mut self, scene: &mut dyn Scene) -> Result<Turn, End> {
        let taken = self.turns.len() as u64;
        if taken >= self.budget {
            return Err(End::MaxSteps);
        }
        let limits = self.conditions.limits;
        if limits.tokens.is_some_and(|most| self.spent.tokens >= most) {
            return Err(End::MaxTokens);
        }
        if limits.milliseconds.is_some_and(|most| self.spent.milliseconds >= most) {
            return Err(End::MaxTime);
        }
        if let Some(turn) = self.conditions.first.take() {
            return Ok(turn);
        }
        let situation = Situation {
            goal: self.goal,
            rules: self.conditions.rules,
            tools: self.tools,
            first_observation: &self.first_observation,
            transcript: &self.transcript,
            turns: &self.turns,
            turn: taken,
            turns_left: self.budget - taken,
            seed: self.conditions.seed,
            advice: self.conditions.advice.filter(|_| self.turns.len() == self.prefix_turns),
        };
        self.policy.act(&situation, scene).map_err(|error| match error {
            PolicyError::Environment(error) => End::Environment(error),
            // What the model was shown has used up all the tokens that it takes.
            PolicyError::Model { error, .. } if error.is_context_full() => End::MaxTokens,
            error => End::Policy(error),
        })
    }

    fn spend(&mut self, spent: Spent) {
        self.spent.tokens = self.spent.tokens.saturating_add(spent.tokens);
        self.spent.milliseconds = self.spent.milliseconds.saturating_add(spent.milliseconds);
    }

    fn begin(&mut self, turn: Turn) {
        self.spend(turn.spent);
        if turn.actions.is_empty() {
            self.end = Some(End::Stopped);
        }
        self.queue = turn.actions.into();
        if !self.queue.is_empty() || turn.thought.is_some() {
            let Turn { thought, said, spent, .. } = turn;
            self.turns.push(Taken { thought, said, spent, exchanges: 0 });
        }
    }

    /// The episode is done: what the turn still holds comes too late.
    fn close(&mut self) {
        let by_words = matches!(self.transcript.last(), Some(Exchange { action: Action::Say(_), .. }));
        self.end = Some(if by_words { End::Stopped } else { End::Done });
        if let Some(turn) = self.turns.last_mut() {
            turn.exchanges += self.queue.len();
        }
        self.transcript.extend(self.queue.drain(..).map(|action| Exchange {
            action,
            step: Step { observation: TOO_LATE.to_owned(), is_error: true, done: true },
        }));
    }
}
