//! An episode at hand: an opened task, where it stands, and what has happened since its start.

use recoup::environments::{
    Action, Environment, EnvironmentError, Exchange, Instance, Score, State, Step, TaskSpec, ToolSpec,
};

/// One run of a task, taken action by action.
pub(super) struct Episode {
    task: TaskSpec,
    instance: Box<dyn Instance>,
    first_observation: String,
    state: State,
    transcript: Vec<Exchange>,
}

/// Where an episode stood.
pub(super) struct Checkpoint {
    state: State,
    exchanges: usize,
}

impl Episode {
    /// Starts a task.
    pub(super) fn start(
        environment: &dyn Environment,
        seed: u64,
        difficulty: u8,
    ) -> Result<Self, EnvironmentError> {
        let task = environment.generate(seed, difficulty)?;
        let mut instance = environment.open(&task)?;
        let (state, first_observation) = instance.start()?;
        Ok(Self { task, instance, first_observation, state, transcript: Vec::new() })
    }

    pub(super) fn task(&self) -> &TaskSpec {
        &self.task
    }

    pub(super) fn tools(&self) -> &[ToolSpec] {
        self.instance.tools()
    }

    pub(super) fn state(&self) -> &State {
        &self.state
    }

    /// Steps taken.
    pub(super) fn steps(&self) -> u64 {
        self.transcript.len() as u64
    }

    /// What was seen last.
    pub(super) fn observation(&self) -> &str {
        self.transcript.last().map_or(&self.first_observation, |exchange| &exchange.step.observation)
    }

    /// Why no action can be taken any more; `None` while one can.
    pub(super) fn over(&self) -> Option<String> {
        if self.transcript.last().is_some_and(|exchange| exchange.step.done) {
            return Some("the episode has ended".to_owned());
        }
        let most = self.task.max_steps;
        (self.steps() >= most).then(|| format!("the {most} steps of the episode are used up"))
    }

    /// Takes an action. Where the episode is [`over`](Self::over), the answer says so and nothing happens.
    pub(super) fn act(&mut self, action: Action) -> Result<Step, EnvironmentError> {
        if let Some(why) = self.over() {
            return Ok(Step { observation: format!("Error: {why}."), is_error: true, done: true });
        }
        let (state, step) = self.instance.step(&self.state, &action)?;
        self.state = state;
        self.transcript.push(Exchange { action, step: step.clone() });
        Ok(step)
    }

    /// The verifier's word on where it stands.
    pub(super) fn score(&mut self) -> Result<Score, EnvironmentError> {
        self.instance.verify(&self.state, &self.transcript)
    }

    /// What the teacher would do; `None` where there is no teacher.
    pub(super) fn expert(&mut self) -> Result<Option<Action>, EnvironmentError> {
        self.instance.expert(&self.state)
    }

    pub(super) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { state: self.state.clone(), exchanges: self.transcript.len() }
    }

    /// Goes back to where it stood.
    pub(super) fn restore(&mut self, checkpoint: Checkpoint) {
        self.state = checkpoint.state;
        self.transcript.truncate(checkpoint.exchanges);
    }
}
