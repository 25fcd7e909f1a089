//! A task of an environment, as its generator wrote it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::{EnvironmentError, Fault};

/// A task: the goal and everything static about its world. Equal text, equal task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskSpec {
    /// Seed it was generated from.
    pub seed: u64,
    /// 1, 2 or 3.
    pub difficulty: u8,
    /// Kind of task, one of the manifest's families.
    pub family: String,
    /// What the agent is told.
    pub goal: String,
    /// Most steps of an episode.
    pub max_steps: u64,
    /// The whole task as JSON in insertion order. It holds hidden facts: never shown to a policy.
    pub json: Arc<str>,
}

impl TaskSpec {
    /// Reads the fields that every task has.
    ///
    /// # Errors
    /// A [`Fault::Contract`] that names the field which is missing or of a wrong type.
    pub fn new(
        environment: &str,
        seed: u64,
        difficulty: u8,
        json: impl Into<Arc<str>>,
    ) -> Result<Self, EnvironmentError> {
        let json = json.into();
        let broken = |what: &str| {
            EnvironmentError::new(environment, Fault::Contract, format!("the task of seed {seed} {what}"))
        };
        let value: Value =
            serde_json::from_str(&json).map_err(|error| broken(&format!("is no JSON: {error}")))?;
        let text = |name: &str| {
            let found = value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
            found.map(str::to_owned).ok_or_else(|| broken(&format!("has no text `{name}`")))
        };
        let max_steps = value.get("max_steps").and_then(Value::as_u64);
        Ok(Self {
            seed,
            difficulty,
            family: text("family")?,
            goal: text("goal")?,
            max_steps: max_steps
                .filter(|steps| *steps > 0)
                .ok_or_else(|| broken("has no positive `max_steps`"))?,
            json,
        })
    }

    /// The task with some keys replaced: what makes its verifier check another goal.
    ///
    /// # Errors
    /// As [`TaskSpec::new`], and where `changes` is no object.
    pub fn with(&self, environment: &str, changes: &str) -> Result<Self, EnvironmentError> {
        let no_object =
            || EnvironmentError::new(environment, Fault::Contract, "a goal's `task` is no object".to_owned());
        let object = |text: &str| serde_json::from_str::<Map<String, Value>>(text).map_err(|_| no_object());
        let mut task = object(&self.json)?;
        task.extend(object(changes)?);
        Self::new(environment, self.seed, self.difficulty, Value::Object(task).to_string())
    }

    /// Identity of the task among all of all environments.
    pub fn key(&self, environment: &str) -> String {
        Self::key_of(environment, &self.family, self.difficulty, self.seed)
    }

    /// The same, before the task is generated.
    pub fn key_of(environment: &str, family: &str, difficulty: u8, seed: u64) -> String {
        format!("{environment}/{family}/{difficulty}/{seed}")
    }
}
