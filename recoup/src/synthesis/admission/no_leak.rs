//! What is hidden is not told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::{Battery, Finding, Gate};
use crate::environments::{EnvironmentError, TaskSpec};

/// Shorter texts occur by chance.
const LEAST_LENGTH: usize = 6;

pub(super) struct NoLeak;

impl Gate for NoLeak {
    fn name(&self) -> &'static str {
        "no-leak"
    }

    fn rule(&self) -> &'static str {
        "no text under the task's `hidden` occurs in the goal, the tools, the policy or the first observation"
    }

    fn check(&self, battery: &Battery<'_>) -> Result<Finding, EnvironmentError> {
        let policy = battery.environment.identity().policy.as_deref().unwrap_or_default();
        let hidden = battery.on_solved(|solved, _| Ok(hidden_texts(&solved.task)))?;
        let mut seeds_of: BTreeMap<&str, usize> = BTreeMap::new();
        hidden.iter().flatten().for_each(|text| *seeds_of.entry(text).or_default() += 1);
        // What most seeds hide is a word of the environment, not the secret of one.
        let is_secret = |text: &String| {
            hidden.len() < 3 || 2 * seeds_of.get(text.as_str()).copied().unwrap_or(0) <= hidden.len()
        };
        let leaks = battery.on_solved(|solved, instance| {
            let tools: Vec<&str> = instance
                .tools()
                .iter()
                .flat_map(|tool| [tool.description.as_str(), tool.schema.as_str()])
                .collect();
            let told =
                [solved.task.goal.as_str(), &solved.first_observation, policy, &tools.join("\n")].join("\n");
            Ok(hidden_texts(&solved.task)
                .into_iter()
                .find(|text| is_secret(text) && told.contains(text.as_str())))
        })?;
        let count = leaks.iter().flatten().count();
        let mut figure = format!("{count} of {} seeds leak", leaks.len());
        if let Some(first) = leaks.iter().flatten().next() {
            let _ = write!(figure, ", such as {first:?}");
        }
        Ok(Finding { passed: count == 0, figure })
    }
}

fn hidden_texts(task: &TaskSpec) -> BTreeSet<String> {
    let task: Value = serde_json::from_str(&task.json).unwrap_or_default();
    let mut hidden = BTreeSet::new();
    texts(task.get("hidden").unwrap_or(&Value::Null), &mut hidden);
    hidden
}

fn texts(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if text.chars().count() >= LEAST_LENGTH => _ = found.insert(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(members) => members.values().for_each(|member| texts(member, found)),
        _ => {}
    }
}
