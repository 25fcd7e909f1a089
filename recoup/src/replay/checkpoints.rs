//! Strict prefix replay: a stored run executed again, every observation compared, a checkpoint before
//! every turn in one pass.
//!
//! The first difference is a [`Divergence`], and nothing is built on such a run: a replay never
//! guesses. Nothing is executed but the environment's own step.

use super::ReplayError;
use super::recorded::{Recorded, Seen};
use super::volatile::Volatile;
use crate::environments::{Action, Driver, EnvironmentError, Exchange, Instance, Scene, State, Step};
use crate::rollout::{Prefix, TOO_LATE, Taken};
use crate::verdict::Divergence;

/// A stored run executed again.
#[derive(Clone, Debug)]
pub struct Checkpoints {
    first_observation: String,
    /// The state before each turn, and after the last one.
    states: Vec<State>,
    transcript: Vec<Exchange>,
    turns: Vec<Taken>,
    done: bool,
}

impl Checkpoints {
    /// Executes a stored run up to, not including, turn `until`, or to its end.
    ///
    /// # Errors
    /// [`ReplayError::Diverged`] at the first difference, and what the environment fails with.
    pub fn take(
        instance: &mut dyn Instance,
        recorded: &Recorded,
        volatile: &Volatile,
        until: Option<usize>,
    ) -> Result<Self, ReplayError> {
        let count = recorded.turns.len();
        let mut executor = Executor {
            recorded,
            volatile,
            until: until.map_or(count, |until| until.min(count)),
            turn: 0,
            action: 0,
            running: None,
            taken: Self {
                first_observation: String::new(),
                states: Vec::with_capacity(count + 1),
                transcript: Vec::new(),
                turns: Vec::with_capacity(count),
                done: false,
            },
            divergence: None,
        };
        instance.run(None, &mut executor)?;
        match executor.divergence {
            Some(divergence) => Err(ReplayError::Diverged(Box::new(divergence))),
            None => Ok(executor.taken),
        }
    }

    /// Turns executed. There is a checkpoint before each and one after the last.
    pub fn turns(&self) -> usize {
        self.turns.len()
    }

    /// The state before a turn, or after the last one.
    pub fn state(&self, turn: usize) -> Option<&State> {
        self.states.get(turn)
    }

    /// What a run is continued from that goes on before a turn; none behind the end of the episode.
    pub fn before(&self, turn: usize) -> Option<Prefix> {
        let turns = self.turns.get(..turn)?;
        if self.done && turn == self.turns.len() {
            return None;
        }
        let exchanges = turns.iter().map(|turn| turn.exchanges).sum();
        Some(Prefix {
            state: self.states.get(turn)?.clone(),
            first_observation: self.first_observation.clone(),
            transcript: self.transcript.get(..exchanges)?.to_vec(),
            turns: turns.to_vec(),
        })
    }

    /// What the environment has really done: everything up to the exchange that ended the episode.
    pub fn executed(&self) -> &[Exchange] {
        let end = self.transcript.iter().position(|exchange| exchange.step.done);
        end.and_then(|end| self.transcript.get(..=end)).unwrap_or(&self.transcript)
    }
}

/// Takes the recorded actions and compares what they show.
struct Executor<'a> {
    recorded: &'a Recorded,
    volatile: &'a Volatile,
    until: usize,
    turn: usize,
    /// Index within the turn of the action to take next.
    action: usize,
    running: Option<Action>,
    taken: Checkpoints,
    divergence: Option<Divergence>,
}

impl Driver for Executor<'_> {
    fn act(&mut self, step: Step, scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError> {
        let recorded = self.recorded;
        let Some(action) = self.running.take() else {
            self.compare(&recorded.start, &step, scene)?;
            self.taken.first_observation = step.observation;
            self.taken.states.push(scene.state()?);
            return self.next(scene);
        };
        let Some(turn) = recorded.turns.get(self.turn) else { return Ok(None) };
        match turn.seen.get(self.action) {
            Some(seen) => self.compare(seen, &step, scene)?,
            None => self.diverge(turn.node, "no observation", &step.observation),
        }
        let done = step.done;
        self.taken.transcript.push(Exchange { action, step });
        self.action += 1;
        if done {
            self.taken.done = true;
            self.pass_over();
        }
        self.next(scene)
    }
}

impl Executor<'_> {
    /// The next recorded action, closing the turns that have none left.
    fn next(&mut self, scene: &mut dyn Scene) -> Result<Option<Action>, EnvironmentError> {
        let recorded = self.recorded;
        while self.divergence.is_none() && self.turn < self.until {
            let Some(turn) = recorded.turns.get(self.turn) else { break };
            if let Some(action) = turn.actions.get(self.action) {
                if self.taken.done {
                    self.diverge(turn.node, "another action", "the end of the episode");
                    break;
                }
                self.running = Some(action.clone());
                return Ok(self.running.clone());
            }
            self.taken.turns.push(Taken {
                thought: turn.thought.clone(),
                said: turn.said.clone(),
                spent: turn.spent,
                exchanges: self.action,
            });
            self.taken.states.push(scene.state()?);
            (self.turn, self.action) = (self.turn + 1, 0);
        }
        Ok(None)
    }

    /// Actions behind the one that ended the episode were not taken, and the record must say so.
    fn pass_over(&mut self) {
        let Some(turn) = self.recorded.turns.get(self.turn) else { return };
        for action in turn.actions.iter().skip(self.action) {
            match turn.seen.get(self.action) {
                Some(seen) if seen.observation == TOO_LATE => {}
                Some(seen) => self.diverge(seen.node, &seen.observation, TOO_LATE),
                None => self.diverge(turn.node, "no observation", TOO_LATE),
            }
            let step = Step { observation: TOO_LATE.to_owned(), is_error: true, done: true };
            self.taken.transcript.push(Exchange { action: action.clone(), step });
            self.action += 1;
        }
    }

    fn compare(&mut self, seen: &Seen, step: &Step, scene: &mut dyn Scene) -> Result<(), EnvironmentError> {
        let word = |is_error| if is_error { "an error" } else { "no error" };
        if !self.volatile.same(&seen.observation, &step.observation) {
            self.diverge(seen.node, &seen.observation, &step.observation);
        } else if seen.is_error.is_some_and(|is_error| is_error != step.is_error) {
            self.diverge(seen.node, word(!step.is_error), word(step.is_error));
        } else if let Some(recorded) = seen.state_hash {
            let found = scene.state()?.hash();
            if found != recorded {
                self.diverge(seen.node, &format!("state {recorded}"), &format!("state {found}"));
            }
        }
        Ok(())
    }

    fn diverge(&mut self, node: usize, expected: &str, observed: &str) {
        if self.divergence.is_none() {
            let (expected, observed) = (expected.to_owned(), observed.to_owned());
            self.divergence = Some(Divergence { step: self.turn, node, expected, observed });
        }
    }
}
