//! A task: the goal a run was given, the environment it ran in and the program that scored it.

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;

use crate::id::{Hash, TaskKey};
use crate::json::Json;

/// What a run was asked to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Task {
    /// Identity; trials of one task share it.
    pub key: TaskKey,
    /// The goal in words, as the agent saw it; empty where the source does not say.
    pub goal: String,
    /// The template the task was generated from, where known (strict splits keep it together).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_key: Option<String>,
    /// Other groups it must not be split from in a strict split: repository, database seed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub group_keys: Vec<String>,
    /// True when `key` was made from the goal because the source names no task.
    pub derived: bool,
}

impl Task {
    /// A task that the source names.
    pub fn named(key: impl Into<String>, goal: impl Into<String>) -> Self {
        Self {
            key: TaskKey(key.into()),
            goal: goal.into(),
            template_key: None,
            group_keys: Vec::new(),
            derived: false,
        }
    }

    /// A task known only by its goal, the first user message: runs with the same goal, up to
    /// Unicode form, case and white space, share it.
    pub fn from_goal(goal: impl Into<String>) -> Self {
        let goal = goal.into();
        let hash = goal_hash(&goal).to_string();
        Self { derived: true, ..Self::named(format!("derived/{}", &hash[..24]), goal) }
    }
}

/// Hash of a goal after NFKC, lower case and collapsing of white space: equal for near-identical
/// statements of one goal.
pub fn goal_hash(goal: &str) -> Hash {
    // NFKC leaves ASCII as it is, and takes longer than all the rest.
    let folded = if goal.is_ascii() {
        goal.to_ascii_lowercase()
    } else {
        goal.nfkc().collect::<String>().to_lowercase()
    };
    let words: Vec<&str> = folded.split_whitespace().collect();
    Hash::of(words.join(" ").as_bytes())
}

/// Name, version and initial state of the environment a run happened in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EnvironmentRef {
    /// Environment or domain (`airline`).
    pub name: String,
    /// Its version, where the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What brings it to the run's first state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reset: Option<Json>,
}

/// The program that scored a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerifierRef {
    /// Verifier's or scorer's name.
    pub name: String,
    /// Its version, where the source says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Task;

    #[test]
    fn the_same_goal_is_the_same_task() {
        let first = Task::from_goal("Book a  flight\nto Rome");
        let second = Task::from_goal("book a flight to ROME");
        assert!(first.derived);
        assert_eq!(first.key, second.key);
        assert_ne!(first.key, Task::from_goal("book a flight to Oslo").key);
    }
}
