//! A plan: which tasks of an environment are run, how often, with which luck.

use serde::Serialize;

use super::{EpisodeLimits, Keep};
use crate::environments::{Manifest, TaskSpec, rand};
use crate::id::Hash;

/// Tasks of one call fit here with their trials, and a mistyped number does not fill the disk.
const EPISODES_MAX: u64 = 10_000_000;
/// First seeds are drawn below this, so that they and what is added to them stay exact everywhere.
const SEEDS: u64 = 1 << 40;

/// What is run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// How many tasks.
    pub tasks: u64,
    /// Seed of their choice and of the policy's luck.
    pub seed: u64,
    /// Which difficulties.
    pub difficulties: Difficulties,
    /// One family of tasks only.
    pub family: Option<String>,
    /// Runs of each task.
    pub trials: u32,
    /// What a run may spend.
    pub limits: EpisodeLimits,
    /// What of the states is kept on the records.
    pub keep: Keep,
}

/// Difficulties of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difficulties {
    /// 1, 2 and 3 take turns, in every family.
    #[default]
    All,
    /// One of them.
    Only(u8),
}

/// One run to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Seed of the task.
    pub task_seed: u64,
    /// Its difficulty.
    pub difficulty: u8,
    /// Its family.
    pub family: String,
    /// Which run of the task, from 0.
    pub trial: u32,
    /// Seed of the policy's luck. It does not depend on the policy: two policies share it.
    pub seed: u64,
}

/// A plan that cannot be carried out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// The environment has no such family.
    #[error("`{environment}` has no family `{family}`; it has {}", known.join(", "))]
    Family {
        /// Environment.
        environment: String,
        /// What was asked for.
        family: String,
        /// What there is.
        known: Vec<String>,
    },
    /// No environment has such a difficulty.
    #[error("difficulty {0} is none of 1, 2, 3")]
    Difficulty(u8),
    /// More runs than one call makes.
    #[error("{0} runs are more than one call makes ({EPISODES_MAX})")]
    TooMany(u64),
}

impl Plan {
    /// Each task once, of every family and difficulty, with hashes of the states.
    pub fn new(tasks: u64, seed: u64) -> Self {
        Self {
            tasks,
            seed,
            difficulties: Difficulties::All,
            family: None,
            trials: 1,
            limits: EpisodeLimits::default(),
            keep: Keep::Hashes,
        }
    }

    /// The runs, task by task. Families take turns, and so do difficulties within a family.
    ///
    /// # Errors
    /// A [`PlanError`] that names what does not exist.
    pub fn assignments(&self, manifest: &Manifest) -> Result<Vec<Assignment>, PlanError> {
        let count = manifest.families.len().max(1) as u64;
        let (offset, stride) = match &self.family {
            None => (0, 1),
            Some(family) => manifest.seeds_of(family).ok_or_else(|| PlanError::Family {
                environment: manifest.name.clone(),
                family: family.clone(),
                known: manifest.families.clone(),
            })?,
        };
        if let Difficulties::Only(difficulty) = self.difficulties
            && !(1..=3).contains(&difficulty)
        {
            return Err(PlanError::Difficulty(difficulty));
        }
        let episodes = self.tasks.saturating_mul(u64::from(self.trials));
        if episodes > EPISODES_MAX {
            return Err(PlanError::TooMany(episodes));
        }
        let first = rand(self.seed, "tasks", 0, SEEDS) / count * count + offset;
        let mut assignments = Vec::new();
        for number in 0..self.tasks {
            let task_seed = first + number * stride;
            let difficulty = match self.difficulties {
                Difficulties::Only(difficulty) => difficulty,
                Difficulties::All => 1 + (number / if stride == 1 { count } else { 1 } % 3) as u8,
            };
            let family = manifest.family_of(task_seed).unwrap_or_default();
            let key = TaskSpec::key_of(&manifest.name, family, difficulty, task_seed);
            for trial in 0..self.trials {
                let luck = [&self.seed.to_le_bytes()[..], key.as_bytes(), &trial.to_le_bytes()];
                assignments.push(Assignment {
                    task_seed,
                    difficulty,
                    family: family.to_owned(),
                    trial,
                    seed: Hash::of_all(&luck).to_seed(),
                });
            }
        }
        Ok(assignments)
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;
    use crate::environments::{Limits, Manifest};

    fn manifest() -> Manifest {
        Manifest {
            name: "test".to_owned(),
            version: "1".to_owned(),
            description: String::new(),
            interface: String::new(),
            licence: String::new(),
            capability: None,
            families: vec!["walk".to_owned(), "carry".to_owned()],
            policy: None,
            volatile: Vec::new(),
            limits: Limits::default(),
        }
    }

    #[test]
    fn families_and_difficulties_take_turns() {
        let runs = Plan::new(12, 7).assignments(&manifest()).unwrap();
        let shown: Vec<(&str, u8)> = runs.iter().map(|run| (run.family.as_str(), run.difficulty)).collect();
        assert_eq!(
            shown[..6],
            [("walk", 1), ("carry", 1), ("walk", 2), ("carry", 2), ("walk", 3), ("carry", 3)]
        );
        assert_eq!(shown[..6], shown[6..]);
    }

    #[test]
    fn a_family_alone_has_all_difficulties_and_trials_their_own_luck() {
        let runs = Plan { family: Some("carry".to_owned()), trials: 2, ..Plan::new(3, 7) }
            .assignments(&manifest())
            .unwrap();
        assert!(runs.iter().all(|run| run.family == "carry"));
        assert_eq!(runs.iter().map(|run| run.difficulty).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3]);
        assert_eq!(runs[0].task_seed, runs[1].task_seed);
        assert_ne!(runs[0].seed, runs[1].seed);
        let wrong = Plan { family: Some("fly".to_owned()), ..Plan::new(1, 7) }.assignments(&manifest());
        assert_eq!(wrong.unwrap_err().to_string(), "`test` has no family `fly`; it has walk, carry");
    }
}
